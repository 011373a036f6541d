//! A partition on a memory store under a clock that the test moves.
#![allow(dead_code, unreachable_pub, reason = "each test uses its part")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test helper fails the test"
)]

pub mod handlers;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use dueline::Bytes;
use dueline::memory::MemoryStore;
use dueline::rows::{
    DeadKey, DeadRow, Flags, Header, NameKey, NameRow, TimerKey, TimerRow, class, class_end,
    class_start,
};
use dueline::runtime::Runtime;
use dueline::store::{
    Batch, Key, LaneWake, NamespaceStore, Partition, ReadStore, ScanRange, Value, WakeStore,
};
use dueline::timers::{
    Engine, Policy, Registration, Registry, RunReport, Scheduled, Tick, TickBudget, TickRequest,
    Timer, TimerKind, Timers, run_due,
};
use dueline_testkit::{FaultStore, ManualClock, block_on, commit, test_runtime};

pub const A: TimerKind = TimerKind(16);
pub const B: TimerKind = TimerKind(17);
pub const C: TimerKind = TimerKind(18);

#[derive(Clone)]
pub struct World {
    pub clock: ManualClock,
    pub memory: Arc<MemoryStore>,
    pub store: Arc<FaultStore>,
    pub runtime: Runtime,
    pub partition: Partition,
    generations: Arc<AtomicU64>,
}

impl World {
    /// The clock stands at this wall time.
    pub fn at(now_ms: i64) -> Self {
        Self::on(now_ms, |store| store)
    }

    pub fn on(now_ms: i64, make: impl FnOnce(MemoryStore) -> MemoryStore) -> Self {
        let clock = ManualClock::new(now_ms);
        let memory = Arc::new(make(MemoryStore::new(Arc::new(clock.clone()))));
        let inner: Arc<dyn WakeStore> = Arc::clone(&memory) as Arc<dyn WakeStore>;
        Self {
            runtime: test_runtime(&clock),
            store: Arc::new(FaultStore::new(inner)),
            clock,
            memory,
            partition: Partition::new("p").unwrap(),
            generations: Arc::new(AtomicU64::new(1)),
        }
    }

    pub fn engine(&self, kinds: impl IntoIterator<Item = (TimerKind, Registration)>) -> Engine {
        let mut registry = Registry::new();
        for (kind, registration) in kinds {
            registry.register(kind, registration).unwrap();
        }
        let store: Arc<dyn NamespaceStore> = Arc::clone(&self.store) as Arc<dyn NamespaceStore>;
        Engine::new(store, self.runtime.clone(), registry)
    }

    /// The same world, looking at another partition.
    pub fn in_partition(&self, name: impl Into<Bytes>) -> Self {
        Self {
            partition: Partition::new(name).unwrap(),
            ..self.clone()
        }
    }

    /// The wall clock, in milliseconds since 1970.
    pub fn clock_ms(&self) -> u64 {
        self.runtime.now_ms()
    }

    pub fn next_generation(&self) -> u64 {
        self.generations.fetch_add(1, Ordering::Relaxed)
    }

    /// Puts an anonymous timer and returns its key.
    pub fn put(&self, kind: TimerKind, reference: &str, due_ms: u64) -> Key {
        self.put_with(kind, reference, due_ms, Header::default(), b"payload")
    }

    /// Puts a named timer and returns its key.
    pub fn put_named(&self, kind: TimerKind, reference: &str, due_ms: u64) -> Key {
        let flags = Flags {
            named: true,
            ..Flags::default()
        };
        self.put_with(
            kind,
            reference,
            due_ms,
            Header {
                flags,
                ..Header::default()
            },
            b"payload",
        )
    }

    pub fn put_with(
        &self,
        kind: TimerKind,
        reference: &str,
        due_ms: u64,
        header: Header,
        payload: &'static [u8],
    ) -> Key {
        let key = TimerKey {
            kind,
            due_ms,
            generation: self.next_generation(),
            reference: Bytes::copy_from_slice(reference.as_bytes()),
        };
        let header = Header {
            original_due_ms: due_ms,
            ..header
        };
        let row = TimerRow {
            header,
            payload: Bytes::from_static(payload),
        };
        let mut batch = Batch::new().put(key.encode(), row.encode());
        if row.header.flags.named {
            let name = NameKey {
                kind,
                reference: key.reference.clone(),
            };
            batch = batch.put(name.encode(), NameRow::of(&key, &row.header).encode());
        }
        self.commit(batch);
        key.encode()
    }

    pub fn commit(&self, batch: Batch) {
        commit(self.memory.as_ref(), &self.partition, batch);
    }

    pub fn get(&self, key: impl Into<Key>) -> Option<Value> {
        block_on(self.memory.get(&self.partition, &key.into())).unwrap()
    }

    /// The rows of a class.
    pub fn rows(&self, class: u8) -> Vec<(Key, Value)> {
        let range = ScanRange::new(class_start(class), class_end(class), 4_096);
        block_on(self.memory.scan(&self.partition, &range))
            .unwrap()
            .rows
    }

    pub fn timers(&self) -> Vec<(TimerKey, TimerRow)> {
        self.rows(class::TIMER)
            .iter()
            .map(|(key, value)| {
                (
                    TimerKey::decode(key).unwrap(),
                    TimerRow::decode(value).unwrap(),
                )
            })
            .collect()
    }

    pub fn dead(&self) -> Vec<(DeadKey, DeadRow)> {
        self.rows(class::DEAD)
            .iter()
            .map(|(key, value)| {
                (
                    DeadKey::decode(key).unwrap(),
                    DeadRow::decode(value).unwrap(),
                )
            })
            .collect()
    }

    /// One tick over every lane with the budget of an object.
    pub fn tick(&self, engine: &Engine) -> Tick {
        self.tick_with(engine, TickBudget::default())
    }

    pub fn tick_with(&self, engine: &Engine, budget: TickBudget) -> Tick {
        block_on(run_due(engine, &self.partition, budget))
    }

    /// What one tick over every lane did, with the budget of an object.
    pub fn run(&self, engine: &Engine) -> RunReport {
        self.tick(engine).report
    }

    /// What one tick over every lane did, with this budget.
    pub fn run_with(&self, engine: &Engine, budget: TickBudget) -> RunReport {
        self.tick_with(engine, budget).report
    }

    /// The verbs, on the store without faults; they share the generations of the engines.
    pub fn verbs(&self) -> Timers {
        Timers::new(
            Arc::clone(&self.memory) as Arc<dyn NamespaceStore>,
            self.runtime.clone(),
        )
    }

    pub fn schedule(&self, timer: Timer, policy: Policy) -> Scheduled {
        block_on(self.verbs().schedule(&self.partition, timer, policy)).unwrap()
    }

    /// A kick of a named timer: there is work, no later than this.
    pub fn kick(&self, kind: TimerKind, reference: &'static str, due_ms: u64) -> Scheduled {
        self.schedule(
            Timer::new(kind, reference).due_at(due_ms).named(),
            Policy::KeepEarliest,
        )
    }

    /// One tick over the lanes whose stored wakes are due, as a driver with wakes makes it.
    pub fn woken_tick(&self, engine: &Engine, budget: TickBudget) -> Tick {
        self.woken_tick_at(engine, budget, engine.runtime().now_ms())
    }

    /// The same by another clock than the engine's: over the wakes due at this time.
    pub fn woken_tick_at(&self, engine: &Engine, budget: TickBudget, now_ms: u64) -> Tick {
        let mut wakes: Vec<LaneWake> = self
            .memory
            .wakes()
            .into_iter()
            .filter(|wake| wake.partition == self.partition && wake.at_ms <= now_ms)
            .map(|wake| LaneWake {
                kind: wake.kind,
                at_ms: wake.at_ms,
            })
            .collect();
        wakes.sort_by_key(|wake| wake.at_ms);
        let request = TickRequest {
            partition: &self.partition,
            wakes: Some(&wakes),
            cautious_until_ms: self.store.unclean_opened_at_ms(),
        };
        let mut state = engine.start_tick(budget);
        block_on(engine.tick(request, &mut state))
    }

    /// Every name row points at its timer or dead row, and every named row has its name.
    pub fn check_names(&self) {
        for (key, value) in self.rows(class::NAME) {
            let name = NameKey::decode(&key).unwrap();
            let row = NameRow::decode(&value).unwrap();
            assert!(
                self.get(row.target(&name)).is_some(),
                "{name:?} points at nothing: {row:?}"
            );
        }
        for (key, row) in self.timers() {
            if row.header.flags.named {
                let name = NameKey {
                    kind: key.kind,
                    reference: key.reference.clone(),
                };
                let found = self
                    .get(name.encode())
                    .expect("a named timer has a name row");
                assert_eq!(
                    NameRow::decode(&found).unwrap(),
                    NameRow::of(&key, &row.header)
                );
            }
        }
        for (key, row) in self.dead() {
            if row.header.flags.named {
                let name = NameKey {
                    kind: key.kind,
                    reference: key.reference.clone(),
                };
                let found = self
                    .get(name.encode())
                    .expect("a named dead timer has a name row");
                assert_eq!(NameRow::decode(&found).unwrap(), NameRow::of_dead(&key));
            }
        }
    }
}
