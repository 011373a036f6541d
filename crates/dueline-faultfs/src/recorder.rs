//! A store that keeps what every commit left behind.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dueline::BoxFuture;
use dueline::store::{
    Batch, BatchOutcome, Capabilities, Group, GroupOutcome, Key, NamespaceStore, Partition,
    PartitionStats, ReadStore, ScanPage, ScanRange, StoreError, Value, WakeStore,
};

use dueline_history::Recorder as History;

use crate::folder::Watched;
use crate::world::{Rows, read_all};

/// The rows after each commit that was acknowledged; the first entry is the empty database.
#[derive(Debug)]
pub(crate) struct Commits {
    watched: Arc<Watched>,
    history: Arc<History>,
    rows: Mutex<Vec<Rows>>,
    /// How many events the history had behind each.
    lengths: Mutex<Vec<usize>>,
}

impl Commits {
    pub(crate) fn new(watched: Arc<Watched>, history: Arc<History>) -> Self {
        Self {
            watched,
            rows: Mutex::new(vec![Rows::new()]),
            lengths: Mutex::new(vec![history.len()]),
            history,
        }
    }

    fn lengths(&self) -> MutexGuard<'_, Vec<usize>> {
        self.lengths.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Rows>> {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many there have been.
    pub(crate) fn count(&self) -> usize {
        self.lock().len() - 1
    }

    pub(crate) fn take(&self) -> (Vec<Rows>, Vec<usize>) {
        let rows = std::mem::take(&mut *self.lock());
        (rows, std::mem::take(&mut *self.lengths()))
    }

    async fn add(&self, store: &dyn WakeStore) -> Result<(), StoreError> {
        // Acknowledged first: the answer is out, whatever the reading below takes.
        self.watched.acknowledge(self.count() + 1);
        self.lengths().push(self.history.len());
        let rows = read_all(store).await?;
        self.lock().push(rows);
        Ok(())
    }
}

/// The store of the script. Its calls run one at a time.
#[derive(Debug)]
pub(crate) struct Recorder {
    pub(crate) inner: Arc<dyn WakeStore>,
    pub(crate) commits: Arc<Commits>,
}

impl ReadStore for Recorder {
    fn get<'a>(
        &'a self,
        partition: &'a Partition,
        key: &'a Key,
    ) -> BoxFuture<'a, Result<Option<Value>, StoreError>> {
        self.inner.get(partition, key)
    }

    fn get_many<'a>(
        &'a self,
        partition: &'a Partition,
        keys: &'a [Key],
    ) -> BoxFuture<'a, Result<Vec<Option<Value>>, StoreError>> {
        self.inner.get_many(partition, keys)
    }

    fn scan<'a>(
        &'a self,
        partition: &'a Partition,
        range: &'a ScanRange,
    ) -> BoxFuture<'a, Result<ScanPage, StoreError>> {
        self.inner.scan(partition, range)
    }

    fn scan_many<'a>(
        &'a self,
        partition: &'a Partition,
        ranges: &'a [ScanRange],
    ) -> BoxFuture<'a, Result<Vec<ScanPage>, StoreError>> {
        self.inner.scan_many(partition, ranges)
    }
}

impl NamespaceStore for Recorder {
    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    fn apply<'a>(
        &'a self,
        partition: &'a Partition,
        batch: Batch,
    ) -> BoxFuture<'a, Result<BatchOutcome, StoreError>> {
        Box::pin(async move {
            let outcome = self.inner.apply(partition, batch).await?;
            self.commits.add(self.inner.as_ref()).await?;
            Ok(outcome)
        })
    }

    fn apply_all<'a>(
        &'a self,
        partition: &'a Partition,
        group: Group,
    ) -> BoxFuture<'a, GroupOutcome> {
        Box::pin(async move {
            let mut outcome = self.inner.apply_all(partition, group).await;
            if outcome.stopped_by.is_none() {
                outcome.stopped_by = self.commits.add(self.inner.as_ref()).await.err();
            }
            outcome
        })
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
