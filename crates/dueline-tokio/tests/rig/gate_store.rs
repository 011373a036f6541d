use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use dueline::BoxFuture;
use dueline::store::{
    AuditPage, Batch, BatchOutcome, Capabilities, Group, GroupOutcome, Key, NamespaceStore,
    Partition, PartitionPage, PartitionStats, ReadStore, ScanPage, ScanRange, StoreError, Value,
    WakeCursor, WakePage, WakeRepair, WakeStore,
};
use dueline::timers::KindSet;

use super::Door;

/// A store whose `apply` waits behind a door before it commits, and which can lose the wakes of a
/// partition until the audit finds them.
#[derive(Debug)]
pub struct GateStore {
    pub inner: Arc<dyn WakeStore>,
    pub door: Door,
    pub lost: Option<Partition>,
    pub found: AtomicBool,
}

impl GateStore {
    pub fn new(inner: Arc<dyn WakeStore>, door: Door) -> Self {
        Self {
            inner,
            door,
            lost: None,
            found: AtomicBool::new(false),
        }
    }
}

impl NamespaceStore for GateStore {
    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    fn apply<'a>(
        &'a self,
        partition: &'a Partition,
        batch: Batch,
    ) -> BoxFuture<'a, Result<BatchOutcome, StoreError>> {
        Box::pin(async move {
            self.door.pass().await;
            self.inner.apply(partition, batch).await
        })
    }

    fn apply_all<'a>(
        &'a self,
        partition: &'a Partition,
        group: Group,
    ) -> BoxFuture<'a, GroupOutcome> {
        self.inner.apply_all(partition, group)
    }

    fn stats<'a>(
        &'a self,
        partition: &'a Partition,
    ) -> BoxFuture<'a, Result<PartitionStats, StoreError>> {
        self.inner.stats(partition)
    }

    fn probe(&self) -> BoxFuture<'_, Result<u64, StoreError>> {
        self.inner.probe()
    }
}

impl ReadStore for GateStore {
    fn get<'a>(
        &'a self,
        partition: &'a Partition,
        key: &'a Key,
    ) -> BoxFuture<'a, Result<Option<Value>, StoreError>> {
        self.inner.get(partition, key)
    }

    fn scan<'a>(
        &'a self,
        partition: &'a Partition,
        range: &'a ScanRange,
    ) -> BoxFuture<'a, Result<ScanPage, StoreError>> {
        self.inner.scan(partition, range)
    }
}

impl WakeStore for GateStore {
    fn due_wakes<'a>(
        &'a self,
        kinds: &'a KindSet,
        until_ms: u64,
        after: Option<&'a WakeCursor>,
        limit: usize,
    ) -> BoxFuture<'a, Result<WakePage, StoreError>> {
        Box::pin(async move {
            let mut page = self.inner.due_wakes(kinds, until_ms, after, limit).await?;
            if !self.found.load(Ordering::Acquire) {
                page.wakes
                    .retain(|wake| Some(&wake.partition) != self.lost.as_ref());
            }
            Ok(page)
        })
    }

    fn partitions<'a>(
        &'a self,
        after: Option<&'a Partition>,
        limit: usize,
    ) -> BoxFuture<'a, Result<PartitionPage, StoreError>> {
        self.inner.partitions(after, limit)
    }

    fn audit_wakes<'a>(
        &'a self,
        after: Option<&'a Partition>,
        limit: usize,
    ) -> BoxFuture<'a, Result<AuditPage, StoreError>> {
        Box::pin(async move {
            let mut page = self.inner.audit_wakes(after, limit).await?;
            if let (Some(lost), false) = (&self.lost, self.found.swap(true, Ordering::AcqRel)) {
                page.repairs.push(WakeRepair {
                    partition: lost.clone(),
                    kind: super::LOGGED,
                    at_ms: super::START_MS,
                });
            }
            Ok(page)
        })
    }
}

/// A store that says it keeps no wakes.
#[derive(Debug)]
pub struct Wakeless(pub Arc<dyn WakeStore>);

impl NamespaceStore for Wakeless {
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

impl ReadStore for Wakeless {
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

impl WakeStore for Wakeless {
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
        self.0.audit_wakes(after, limit)
    }
}
