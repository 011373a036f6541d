//! A store may serve fewer rows than were asked for and still carry a cursor: the tick reads on.

use std::sync::Arc;

use dueline::BoxFuture;
use dueline::memory::MemoryStore;
use dueline::store::{
    Batch, BatchOutcome, Capabilities, Group, GroupOutcome, Key, LaneWake, NamespaceStore,
    Partition, PartitionStats, ReadStore, ScanPage, ScanRange, StoreError, Value,
};
use dueline::timers::{Engine, Registration, Registry, TickBudget, TickRequest, TimerKind};
use dueline_testkit::block_on;

use crate::world::World;
use crate::world::handlers::{Seen, notes};

/// Serves at most three rows a page and two ranges a call.
#[derive(Debug)]
struct ShortPages(Arc<MemoryStore>);

impl ReadStore for ShortPages {
    fn get<'a>(
        &'a self,
        partition: &'a Partition,
        key: &'a Key,
    ) -> BoxFuture<'a, Result<Option<Value>, StoreError>> {
        self.0.get(partition, key)
    }

    fn scan<'a>(
        &'a self,
        partition: &'a Partition,
        range: &'a ScanRange,
    ) -> BoxFuture<'a, Result<ScanPage, StoreError>> {
        Box::pin(async move {
            let short = ScanRange {
                limit: range.limit.min(3),
                ..range.clone()
            };
            self.0.scan(partition, &short).await
        })
    }

    fn scan_many<'a>(
        &'a self,
        partition: &'a Partition,
        ranges: &'a [ScanRange],
    ) -> BoxFuture<'a, Result<Vec<ScanPage>, StoreError>> {
        Box::pin(async move {
            let mut pages = Vec::new();
            for range in ranges.iter().take(2) {
                pages.push(self.scan(partition, range).await?);
            }
            Ok(pages)
        })
    }
}

impl NamespaceStore for ShortPages {
    fn capabilities(&self) -> Capabilities {
        self.0.capabilities()
    }

    fn apply<'a>(
        &'a self,
        partition: &'a Partition,
        batch: Batch,
    ) -> BoxFuture<'a, Result<BatchOutcome, StoreError>> {
        self.0.apply(partition, batch)
    }

    fn apply_all<'a>(
        &'a self,
        partition: &'a Partition,
        group: Group,
    ) -> BoxFuture<'a, GroupOutcome> {
        self.0.apply_all(partition, group)
    }

    fn stats<'a>(
        &'a self,
        partition: &'a Partition,
    ) -> BoxFuture<'a, Result<PartitionStats, StoreError>> {
        self.0.stats(partition)
    }

    fn probe(&self) -> BoxFuture<'_, Result<u64, StoreError>> {
        self.0.probe()
    }
}

#[test]
fn a_store_of_short_pages_fires_everything_due_and_nothing_that_is_paused() {
    for woken in [false, true] {
        let world = World::at(1_000);
        let seen = Seen::default();
        let mut registry = Registry::new();
        let kinds: Vec<TimerKind> = (16..36).map(TimerKind).collect();
        for kind in &kinds {
            registry
                .register(*kind, Registration::inline(notes(&seen)).group_max(16))
                .unwrap();
        }
        let store: Arc<dyn NamespaceStore> = Arc::new(ShortPages(Arc::clone(&world.memory)));
        let engine = Engine::new(store, world.runtime.clone(), registry);
        for kind in &kinds {
            for n in 0..7 {
                world.put(*kind, &format!("{kind}/{n}"), 900);
            }
            world.put(*kind, "future", 5_000);
            if kind.0 % 2 == 0 {
                block_on(engine.timers().pause(&world.partition, *kind)).unwrap();
            }
        }
        let wakes: Vec<LaneWake> = kinds
            .iter()
            .map(|kind| LaneWake {
                kind: *kind,
                at_ms: 1_000,
            })
            .collect();
        let request = TickRequest {
            partition: &world.partition,
            wakes: woken.then_some(&wakes[..]),
            cautious_until_ms: None,
        };
        let mut state = engine.start_tick(TickBudget::unlimited());
        let report = block_on(engine.tick(request, &mut state)).report;
        assert_eq!(
            (report.total.fired, report.paused_lanes),
            (70, 10),
            "woken {woken}"
        );
        assert_eq!(report.next_wake_ms, Some(5_000), "woken {woken}");
        assert!(
            seen.all()
                .iter()
                .all(|name| name[..2].parse::<u8>().unwrap() % 2 == 1)
        );
    }
}
