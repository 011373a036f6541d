//! The reference's memory store, failing on demand.

use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use dueline_testkit::block_on;
use mkit_server::store::{PartitionStats, StoreCapabilities};
use mkit_server::{
    Batch, BatchOutcome, Cursor, Key, MemoryKv, NamespaceStore, Partition, ScanPage, StoreError,
    Value, Write,
};

use super::timer_of;
use crate::Fault;

/// The reference's memory store with one fault at the commit of one timer.
#[derive(Debug)]
pub(super) struct Faulty {
    pub(super) inner: MemoryKv,
    fault: Mutex<Option<Fault>>,
}

impl Faulty {
    pub(super) fn new(inner: MemoryKv) -> Self {
        Self {
            inner,
            fault: Mutex::new(None),
        }
    }

    /// Sets the fault that is to come, or none.
    pub(super) fn arm(&self, fault: Option<Fault>) {
        *self.fault.lock().unwrap_or_else(PoisonError::into_inner) = fault;
    }

    /// The fault of this batch, taken, if it deletes the timer that the fault is about.
    fn take_fault(&self, batch: &Batch) -> Option<Fault> {
        let mut fault = self.fault.lock().unwrap_or_else(PoisonError::into_inner);
        let id = fault.as_ref()?.id().clone();
        let nothing = Value::new(Bytes::new());
        let hit = batch.writes.iter().any(|write| match write {
            Write::Delete(key) => timer_of(key, &nothing).is_some_and(|(found, _)| found == id),
            Write::Put(..) => false,
        });
        if hit { fault.take() } else { None }
    }

    /// Every row of a partition.
    pub(super) fn rows(&self, partition: &Partition) -> Vec<(Key, Value)> {
        let (start, end) = (Key::new(vec![0x01]), Key::new(vec![0xff]));
        let mut rows = Vec::new();
        let mut after = None;
        loop {
            let page = block_on(
                self.inner
                    .scan(partition, &start, &end, after.as_ref(), 1_000),
            );
            let Ok(page) = page else { return rows };
            rows.extend(page.entries);
            match page.next {
                Some(next) => after = Some(next),
                None => return rows,
            }
        }
    }
}

impl NamespaceStore for Faulty {
    fn capabilities(&self) -> StoreCapabilities {
        self.inner.capabilities()
    }

    async fn get(&self, p: &Partition, key: &Key) -> Result<Option<Value>, StoreError> {
        self.inner.get(p, key).await
    }

    async fn scan(
        &self,
        p: &Partition,
        start: &Key,
        end: &Key,
        after: Option<&Cursor>,
        limit: u32,
    ) -> Result<ScanPage, StoreError> {
        self.inner.scan(p, start, end, after, limit).await
    }

    async fn apply(&self, p: &Partition, batch: Batch) -> Result<BatchOutcome, StoreError> {
        let failed = || StoreError::Unavailable("as the script says".into());
        match self.take_fault(&batch) {
            None => self.inner.apply(p, batch).await,
            Some(Fault::Refused(_)) => Err(failed()),
            Some(Fault::AnswerLost(_)) => {
                self.inner.apply(p, batch).await?;
                Err(failed())
            }
        }
    }

    async fn stats(&self, p: &Partition) -> Result<PartitionStats, StoreError> {
        self.inner.stats(p).await
    }

    async fn probe(&self) -> Result<(), StoreError> {
        self.inner.probe().await
    }
}
