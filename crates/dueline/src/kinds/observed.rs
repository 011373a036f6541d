//! Rows as they were read, with the guard that says so.

use super::row::Row;
use crate::store::{Batch, Key, Partition, ReadStore, StoreError, Value};

/// A row as it was read: what a batch that depends on it must guard.
#[derive(Clone, Debug)]
pub(crate) struct Observed<T> {
    pub(crate) key: Key,
    /// The bytes that were read, `None` for an absent row.
    pub(crate) bytes: Option<Value>,
    pub(crate) row: Option<T>,
}

impl<T: Row> Observed<T> {
    /// Reads one row.
    pub(crate) async fn read(
        reads: &dyn ReadStore,
        partition: &Partition,
        key: Key,
    ) -> Result<Self, StoreError> {
        let bytes = reads.get(partition, &key).await?;
        Self::of(key, bytes)
    }

    /// A row from the answer of a read.
    pub(crate) fn of(key: Key, bytes: Option<Value>) -> Result<Self, StoreError> {
        let row = bytes.as_ref().map(T::read).transpose()?;
        Ok(Self { key, bytes, row })
    }

    /// Requires that the row is as it was read.
    pub(crate) fn guard(&self, batch: Batch) -> Batch {
        batch.require_unchanged(self.key.clone(), self.bytes.clone())
    }

    /// Requires that the row is as it was read, and gives it a new value; `None` deletes it.
    pub(crate) fn replace(&self, batch: Batch, row: Option<&T>) -> Batch {
        let batch = self.guard(batch);
        match row {
            Some(row) => batch.put(self.key.clone(), row.encode()),
            None if self.bytes.is_none() => batch,
            None => batch.delete(self.key.clone()),
        }
    }
}
