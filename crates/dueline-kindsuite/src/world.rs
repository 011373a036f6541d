//! The world of a case.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use dueline::memory::MemoryStore;
use dueline::rows::{class, class_end, class_start};
use dueline::runtime::Runtime;
use dueline::store::{
    Batch, BatchOutcome, Group, Key, NamespaceStore, Partition, ScanRange, Value, WakeStore, Write,
};
use dueline::timers::{
    Counts, Engine, Registration, Registry, RunReport, TickBudget, TimerKind, Timers, run_due,
};
use dueline_testkit::model::Tasks;
use dueline_testkit::{CallCounts, FaultStore, ManualClock, block_on, test_runtime};

/// Makes a fresh store that goes by this clock.
pub type Make<'a> = &'a dyn Fn(ManualClock) -> Arc<dyn WakeStore>;

/// The store in memory.
pub fn memory(clock: ManualClock) -> Arc<dyn WakeStore> {
    Arc::new(MemoryStore::new(Arc::new(clock)))
}

/// When a world begins, in milliseconds since 1970.
pub const START_MS: u64 = 1_700_000_000_000;

/// A store with faults and counts, and a clock that only the case moves.
#[derive(Clone, Debug)]
pub struct World {
    pub clock: ManualClock,
    pub store: Arc<FaultStore>,
    pub runtime: Runtime,
    pub timers: Timers,
    /// The partition that the short forms below work on.
    pub partition: Partition,
    written: Arc<Written>,
}

#[derive(Debug, Default)]
struct Written {
    puts: AtomicU64,
    deletes: AtomicU64,
    most_ops: AtomicU64,
    most_bytes: AtomicU64,
}

/// What was asked of the store between two moments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Costs {
    pub calls: CallCounts,
    /// Rows put by batches, whether they committed or not.
    pub puts: u64,
    /// Rows deleted by batches, whether they committed or not.
    pub deletes: u64,
}

impl Costs {
    /// Single rows that were read (calls of `get` and `get_many`: those of the kind, for a tick reads
    /// pages), commits, rows put and rows deleted.
    pub fn of_kind(&self) -> [u64; 4] {
        let reads = self.calls.gets + self.calls.get_manys;
        [reads, self.calls.commits(), self.puts, self.deletes]
    }
}

impl World {
    pub fn new(make: Make<'_>) -> Self {
        let clock = ManualClock::new(i64::try_from(START_MS).unwrap());
        let store = Arc::new(FaultStore::new(make(clock.clone())));
        let written = Arc::new(Written::default());
        let counted = Arc::clone(&written);
        store.on_commit(move |_, group| counted.count(group));
        let runtime = test_runtime(&clock);
        let shared: Arc<dyn NamespaceStore> = Arc::clone(&store) as Arc<dyn NamespaceStore>;
        Self {
            timers: Timers::new(shared, runtime.clone()),
            clock,
            store,
            runtime,
            partition: Partition::new("p").unwrap(),
            written,
        }
    }

    /// The same world, looking at another partition.
    pub fn in_partition(&self, name: impl Into<Bytes>) -> Self {
        Self {
            partition: Partition::new(name).unwrap(),
            ..self.clone()
        }
    }

    pub fn now_ms(&self) -> u64 {
        self.runtime.now_ms()
    }

    /// The store as a caller holds it, faults and counts included.
    pub fn shared(&self) -> Arc<dyn NamespaceStore> {
        Arc::clone(&self.store) as Arc<dyn NamespaceStore>
    }

    pub fn engine(&self, kind: TimerKind, registration: Registration) -> Engine {
        self.engine_of([(kind, registration)])
    }

    pub fn engine_of(&self, kinds: impl IntoIterator<Item = (TimerKind, Registration)>) -> Engine {
        let mut registry = Registry::new();
        for (kind, registration) in kinds {
            registry.register(kind, registration).unwrap();
        }
        Engine::new(self.shared(), self.runtime.clone(), registry)
    }

    /// One tick of the partition with its calls run and settled: what the tick counted, with the calls'
    /// ends added (a call that ends counts as `claimed` too).
    pub fn tick(&self, engine: &Engine) -> RunReport {
        self.tick_within(engine, TickBudget::default())
    }

    pub fn tick_within(&self, engine: &Engine, budget: TickBudget) -> RunReport {
        block_on(async {
            let mut tick = run_due(engine, &self.partition, budget).await;
            for call in std::mem::take(&mut tick.calls) {
                let kind = call.kind();
                let settled: Counts = engine.settle(call.run().await).await;
                tick.report.total.add(&settled);
                tick.report.per_kind.entry(kind).or_default().add(&settled);
            }
            tick.report
        })
    }

    /// A tick whose runs hang: whenever something sleeps, this much time passes.
    pub fn tick_as_time_passes(&self, engine: &Engine, step_ms: u64) -> Counts {
        let (engine, partition) = (engine.clone(), self.partition.clone());
        let mut tasks = Tasks::new();
        tasks.spawn(0, async move {
            let tick = run_due(&engine, &partition, TickBudget::default()).await;
            let mut total = tick.report.total;
            for call in tick.calls {
                total.add(&engine.settle(call.run().await).await);
            }
            total
        });
        loop {
            if let Some((_, counts)) = tasks.step(0) {
                return counts;
            }
            self.let_time_pass(step_ms);
        }
    }

    /// Lets this much time pass if something sleeps for it, and nobody just waits for the store: a deadline
    /// sleeps beside that too.
    pub fn let_time_pass(&self, step_ms: u64) {
        if self.clock.sleepers() > 0 && self.store.calls_under_way() == 0 {
            self.advance_ms(step_ms);
        }
    }

    /// Ticks until one does nothing, at most this many times.
    pub fn tick_until_quiet(&self, engine: &Engine, most: usize) -> RunReport {
        let mut all = RunReport::default();
        for _ in 0..most {
            let report = self.tick(engine);
            if report.total.progressed() == 0 {
                return all;
            }
            all.total.add(&report.total);
        }
        panic!("still at work after {most} ticks: {:?}", all.total);
    }

    pub fn advance_ms(&self, ms: u64) {
        self.clock.advance_ms(ms);
    }

    /// Commits a batch, which must not lose a guard.
    #[track_caller]
    pub fn commit(&self, batch: Batch) {
        let outcome = self.apply(batch);
        assert_eq!(outcome, BatchOutcome::Committed);
    }

    #[track_caller]
    pub fn apply(&self, batch: Batch) -> BatchOutcome {
        block_on(self.store.apply(&self.partition, batch)).unwrap()
    }

    #[track_caller]
    pub fn get(&self, key: &Key) -> Option<Value> {
        block_on(self.store.inner().get(&self.partition, key)).unwrap()
    }

    /// Every row of a range of the partition; not counted.
    #[track_caller]
    pub fn rows(&self, start: impl Into<Key>, end: impl Into<Key>) -> Vec<(Key, Value)> {
        let mut range = ScanRange::new(start, end, 1_000);
        let mut rows = Vec::new();
        loop {
            let page = block_on(self.store.inner().scan(&self.partition, &range)).unwrap();
            rows.extend(page.rows);
            if page.next.is_none() {
                return rows;
            }
            range.after = page.next;
        }
    }

    /// The rows of the built-in kinds in the partition.
    pub fn kind_rows(&self) -> Vec<(Key, Value)> {
        self.rows(class_start(class::BUILT_IN), class_end(class::BUILT_IN))
    }

    /// The keys of the timers that wait in the partition.
    pub fn timer_keys(&self) -> Vec<Key> {
        let rows = self.rows(class_start(class::TIMER), class_end(class::TIMER));
        rows.into_iter().map(|(key, _)| key).collect()
    }

    pub fn costs(&self) -> Costs {
        Costs {
            calls: self.store.counts(),
            puts: self.written.puts.load(Ordering::Relaxed),
            deletes: self.written.deletes.load(Ordering::Relaxed),
        }
    }

    /// What was asked since.
    pub fn costs_since(&self, earlier: &Costs) -> Costs {
        let now = self.costs();
        Costs {
            calls: now.calls - earlier.calls,
            puts: now.puts - earlier.puts,
            deletes: now.deletes - earlier.deletes,
        }
    }

    /// What this costs: see [`Costs::of_kind`].
    pub fn spent(&self, then: impl FnOnce()) -> [u64; 4] {
        let before = self.costs();
        then();
        self.costs_since(&before).of_kind()
    }

    /// The most operations and the most bytes that one batch had so far.
    pub fn largest_batch(&self) -> (u64, u64) {
        (
            self.written.most_ops.load(Ordering::Relaxed),
            self.written.most_bytes.load(Ordering::Relaxed),
        )
    }
}

impl Written {
    fn count(&self, group: &Group) {
        for batch in &group.batches {
            for write in &batch.writes {
                let counter = match write {
                    Write::Put(..) => &self.puts,
                    Write::Delete(_) => &self.deletes,
                };
                counter.fetch_add(1, Ordering::Relaxed);
            }
            self.most_ops
                .fetch_max(batch.ops() as u64, Ordering::Relaxed);
            self.most_bytes
                .fetch_max(batch.bytes() as u64, Ordering::Relaxed);
        }
    }
}
