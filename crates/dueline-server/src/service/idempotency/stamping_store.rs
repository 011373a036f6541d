use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use dueline::BoxFuture;
use dueline::store::{
    Batch, BatchOutcome, Capabilities, Key, NamespaceStore, Partition, PartitionStats, ReadStore,
    ScanPage, ScanRange, StoreError, Value,
};

/// What is to be written beside a batch: given the batch, the guards and writes to append.
pub(super) type Stamp = dyn Fn(&Batch) -> Result<Batch, StoreError> + Send + Sync;

/// A store that appends a stamp to every batch that is applied through it.
///
/// Given to the verbs of scheduling, it makes each of them write the record of its request in the
/// batch that carries the request out, whichever verb it is and however often it plans anew.
pub(super) struct StampingStore {
    store: Arc<dyn NamespaceStore>,
    stamp: Box<Stamp>,
    written: AtomicBool,
}

impl StampingStore {
    pub(super) fn new(store: Arc<dyn NamespaceStore>, stamp: Box<Stamp>) -> Self {
        Self {
            store,
            stamp,
            written: AtomicBool::new(false),
        }
    }

    /// The store without the stamp.
    pub(super) fn unstamped(&self) -> &Arc<dyn NamespaceStore> {
        &self.store
    }

    /// Whether a stamped batch has committed.
    pub(super) fn has_written(&self) -> bool {
        self.written.load(Ordering::Acquire)
    }
}

impl fmt::Debug for StampingStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StampingStore")
            .field("store", &self.store)
            .field("written", &self.written)
            .finish_non_exhaustive()
    }
}

impl ReadStore for StampingStore {
    fn get<'a>(
        &'a self,
        partition: &'a Partition,
        key: &'a Key,
    ) -> BoxFuture<'a, Result<Option<Value>, StoreError>> {
        self.store.get(partition, key)
    }

    fn get_many<'a>(
        &'a self,
        partition: &'a Partition,
        keys: &'a [Key],
    ) -> BoxFuture<'a, Result<Vec<Option<Value>>, StoreError>> {
        self.store.get_many(partition, keys)
    }

    fn scan<'a>(
        &'a self,
        partition: &'a Partition,
        range: &'a ScanRange,
    ) -> BoxFuture<'a, Result<ScanPage, StoreError>> {
        self.store.scan(partition, range)
    }

    fn scan_many<'a>(
        &'a self,
        partition: &'a Partition,
        ranges: &'a [ScanRange],
    ) -> BoxFuture<'a, Result<Vec<ScanPage>, StoreError>> {
        self.store.scan_many(partition, ranges)
    }
}

impl NamespaceStore for StampingStore {
    fn capabilities(&self) -> Capabilities {
        self.store.capabilities()
    }

    fn apply<'a>(
        &'a self,
        partition: &'a Partition,
        batch: Batch,
    ) -> BoxFuture<'a, Result<BatchOutcome, StoreError>> {
        Box::pin(async move {
            let stamp = (self.stamp)(&batch)?;
            let own_guards = batch.preconditions.len();
            let outcome = self.store.apply(partition, batch.append(stamp)).await?;
            match &outcome {
                BatchOutcome::Committed => self.written.store(true, Ordering::Release),
                BatchOutcome::PreconditionFailed { index, .. } if *index >= own_guards => {
                    return Err(StoreError::unavailable(
                        "the idempotency record changed meanwhile; repeat the request",
                    ));
                }
                _ => {}
            }
            Ok(outcome)
        })
    }

    fn stats<'a>(
        &'a self,
        partition: &'a Partition,
    ) -> BoxFuture<'a, Result<PartitionStats, StoreError>> {
        self.store.stats(partition)
    }

    fn probe(&self) -> BoxFuture<'_, Result<u64, StoreError>> {
        self.store.probe()
    }
}
