//! Goal: what the contract's traits do by default keeps the contract too. Method: the suite over a
//! store that implements only what it must, in memory; it keeps no wakes.
#![cfg(test)]

use std::sync::Arc;

use dueline::BoxFuture;
use dueline::memory::MemoryStore;
use dueline::store::{
    Batch, BatchOutcome, Capabilities, Group, Key, NamespaceStore, Partition, PartitionStats,
    ReadStore, ScanPage, ScanRange, StoreError, StoreErrorKind, Value, WakeSettle,
};
use dueline::timers::TimerKind;
use dueline_testkit::conformance::{Setup, Subject};
use dueline_testkit::{ManualClock, block_on, partition};

#[derive(Debug)]
struct Defaults(MemoryStore);

impl ReadStore for Defaults {
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
        self.0.scan(partition, range)
    }
}

impl NamespaceStore for Defaults {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            wakes: false,
            shared: false,
        }
    }

    fn apply<'a>(
        &'a self,
        partition: &'a Partition,
        batch: Batch,
    ) -> BoxFuture<'a, Result<BatchOutcome, StoreError>> {
        self.0.apply(partition, batch)
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

fn defaults(setup: Setup) -> Subject {
    let store = Defaults(MemoryStore::new(Arc::new(setup.clock.clone())));
    Subject::without_wakes(Arc::new(store), setup.clock)
}

dueline_testkit::conformance_suite!(defaults;);

#[test]
fn a_store_without_wakes_refuses_settles_before_it_writes_anything() {
    let store = Defaults(MemoryStore::new(Arc::new(ManualClock::new(0))));
    let p = partition("p");
    let settles = vec![WakeSettle {
        kind: TimerKind(16),
        served_ms: vec![],
    }];
    let group = Group {
        batches: vec![Batch::new().put("k", "v")],
        settles,
    };
    let done = block_on(store.apply_all(&p, group));
    assert_eq!(done.outcomes, []);
    assert_eq!(
        done.stopped_by.map(|error| error.kind()),
        Some(StoreErrorKind::Unsupported)
    );
    assert_eq!(store.0.rows(&p), []);
}
