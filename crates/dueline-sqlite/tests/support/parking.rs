//! The handle for blocking threads, used as the native driver uses it.

use std::future::poll_fn;
use std::sync::Arc;

use dueline::BoxFuture;
use dueline::store::{
    AuditPage, Batch, BatchOutcome, Capabilities, Group, GroupOutcome, Key, NamespaceStore,
    Partition, PartitionPage, PartitionStats, ReadStore, ScanPage, ScanRange, StoreError, Value,
    WakeCursor, WakePage, WakeStore,
};
use dueline::timers::KindSet;
use dueline_sqlite::SqliteStore;

/// Calls `before_park` whenever a future of the store waits.
#[derive(Debug)]
pub(crate) struct Parking(Arc<dyn WakeStore>);

impl Parking {
    pub(crate) fn new(store: &SqliteStore) -> Self {
        Self(store.for_blocking_threads().unwrap())
    }

    fn parked<'a, T: 'a>(&'a self, mut future: BoxFuture<'a, T>) -> BoxFuture<'a, T> {
        Box::pin(poll_fn(move |context| {
            let first = future.as_mut().poll(context);
            if first.is_ready() {
                return first;
            }
            self.0.before_park();
            future.as_mut().poll(context)
        }))
    }
}

impl ReadStore for Parking {
    fn get<'a>(
        &'a self,
        partition: &'a Partition,
        key: &'a Key,
    ) -> BoxFuture<'a, Result<Option<Value>, StoreError>> {
        self.0.get(partition, key)
    }

    fn get_many<'a>(
        &'a self,
        partition: &'a Partition,
        keys: &'a [Key],
    ) -> BoxFuture<'a, Result<Vec<Option<Value>>, StoreError>> {
        self.0.get_many(partition, keys)
    }

    fn scan<'a>(
        &'a self,
        partition: &'a Partition,
        range: &'a ScanRange,
    ) -> BoxFuture<'a, Result<ScanPage, StoreError>> {
        self.0.scan(partition, range)
    }

    fn scan_many<'a>(
        &'a self,
        partition: &'a Partition,
        ranges: &'a [ScanRange],
    ) -> BoxFuture<'a, Result<Vec<ScanPage>, StoreError>> {
        self.0.scan_many(partition, ranges)
    }
}

impl NamespaceStore for Parking {
    fn capabilities(&self) -> Capabilities {
        self.0.capabilities()
    }

    fn apply<'a>(
        &'a self,
        partition: &'a Partition,
        batch: Batch,
    ) -> BoxFuture<'a, Result<BatchOutcome, StoreError>> {
        self.parked(self.0.apply(partition, batch))
    }

    fn apply_all<'a>(
        &'a self,
        partition: &'a Partition,
        group: Group,
    ) -> BoxFuture<'a, GroupOutcome> {
        self.parked(self.0.apply_all(partition, group))
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

impl WakeStore for Parking {
    fn due_wakes<'a>(
        &'a self,
        kinds: &'a KindSet,
        until_ms: u64,
        after: Option<&'a WakeCursor>,
        limit: usize,
    ) -> BoxFuture<'a, Result<WakePage, StoreError>> {
        self.0.due_wakes(kinds, until_ms, after, limit)
    }

    fn partitions<'a>(
        &'a self,
        after: Option<&'a Partition>,
        limit: usize,
    ) -> BoxFuture<'a, Result<PartitionPage, StoreError>> {
        self.0.partitions(after, limit)
    }

    fn audit_wakes<'a>(
        &'a self,
        after: Option<&'a Partition>,
        limit: usize,
    ) -> BoxFuture<'a, Result<AuditPage, StoreError>> {
        self.parked(self.0.audit_wakes(after, limit))
    }

    fn unclean_opened_at_ms(&self) -> Option<u64> {
        self.0.unclean_opened_at_ms()
    }
}
