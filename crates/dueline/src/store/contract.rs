use std::fmt;

use super::{
    Batch, BatchOutcome, GroupOutcome, Key, Partition, ScanPage, ScanRange, StoreError, Value,
    WakeSettle,
};
use crate::future::{BoxFuture, MaybeSendSync};

/// What a store can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// Whether the store keeps wakes, that is, implements [`WakeStore`](super::WakeStore) and takes
    /// settles in a [`Group`].
    pub wakes: bool,
    /// Whether other processes may write the same data; a driver then polls for wakes it did not
    /// cause.
    pub shared: bool,
}

/// Batches of one partition that commit together, with the settles of its lanes.
#[derive(Clone, Debug, Default)]
pub struct Group {
    /// Applied in order, each atomic, stopping at the first that does not commit.
    pub batches: Vec<Batch>,
    /// Lanes whose wakes were served. They run behind the batches, in the same transaction, even
    /// when a batch lost a precondition: a settle reads what is there. They do not run when the
    /// group ends in an error.
    pub settles: Vec<WakeSettle>,
}

impl From<Vec<Batch>> for Group {
    fn from(batches: Vec<Batch>) -> Self {
        Self {
            batches,
            settles: Vec::new(),
        }
    }
}

/// Size of a partition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PartitionStats {
    /// Rows, the engine's own included.
    pub rows: u64,
    /// Bytes of keys and values; may be approximate, and up to 60 s old.
    pub bytes: u64,
}

/// The reading half of a store.
///
/// Reads see every batch committed before the call. No read transaction outlives one call, except
/// between calls of one thread that promises [`WakeStore::before_park`](super::WakeStore::before_park):
/// such a thread sees what was committed before its last write or
/// [`WakeStore::end_reads`](super::WakeStore::end_reads), and all that itself has written.
pub trait ReadStore: MaybeSendSync + fmt::Debug {
    /// The value of one key.
    ///
    /// # Errors
    /// `Invalid` for an oversized key; `Corrupt`, `Unavailable` as the backend says.
    fn get<'a>(
        &'a self,
        partition: &'a Partition,
        key: &'a Key,
    ) -> BoxFuture<'a, Result<Option<Value>, StoreError>>;

    /// The values of several keys, in the order of the keys; a key may be named twice.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    fn get_many<'a>(
        &'a self,
        partition: &'a Partition,
        keys: &'a [Key],
    ) -> BoxFuture<'a, Result<Vec<Option<Value>>, StoreError>> {
        Box::pin(async move {
            let mut values = Vec::with_capacity(keys.len());
            for key in keys {
                values.push(self.get(partition, key).await?);
            }
            Ok(values)
        })
    }

    /// One page of a range.
    ///
    /// # Errors
    /// `Invalid` for a limit of 0 or a cursor outside the range; else as [`get`](Self::get).
    fn scan<'a>(
        &'a self,
        partition: &'a Partition,
        range: &'a ScanRange,
    ) -> BoxFuture<'a, Result<ScanPage, StoreError>>;

    /// A page each of a prefix of the ranges: at least the first, at most all (256).
    ///
    /// # Errors
    /// `Invalid` for more than 256 ranges; else as [`scan`](Self::scan).
    fn scan_many<'a>(
        &'a self,
        partition: &'a Partition,
        ranges: &'a [ScanRange],
    ) -> BoxFuture<'a, Result<Vec<ScanPage>, StoreError>> {
        Box::pin(async move {
            super::validate_ranges(ranges)?;
            let mut pages = Vec::with_capacity(ranges.len());
            for range in ranges {
                pages.push(self.scan(partition, range).await?);
            }
            Ok(pages)
        })
    }
}

/// A partitioned, ordered key-value space with one write, the guarded batch.
///
/// Dropping a future leaves the partition fully before or fully after the batch; it may still
/// commit later. Once "after" has been seen, "before" never comes back.
pub trait NamespaceStore: ReadStore {
    /// What the store can do. Does not change.
    fn capabilities(&self) -> Capabilities;

    /// Commits one batch: the preconditions in order against committed state, then the writes.
    ///
    /// Time bounds hold at equality and read the backend's own clock inside the transaction; on a
    /// clock before 1970 every bound fails.
    ///
    /// # Errors
    /// Every [`StoreErrorKind`](super::StoreErrorKind): `Invalid` as
    /// [`validate_batch`](super::validate_batch) says. Only `Unknown` leaves open whether the batch was
    /// written.
    fn apply<'a>(
        &'a self,
        partition: &'a Partition,
        batch: Batch,
    ) -> BoxFuture<'a, Result<BatchOutcome, StoreError>>;

    /// Commits several batches of one partition in order, each atomic, all of those that commit
    /// durable together on return; then the settles. Stops at the first batch that does not commit.
    ///
    /// The default loops over [`apply`](Self::apply) and refuses settles as `Unsupported`.
    fn apply_all<'a>(
        &'a self,
        partition: &'a Partition,
        group: Group,
    ) -> BoxFuture<'a, GroupOutcome> {
        Box::pin(async move {
            let mut done = GroupOutcome::default();
            if !group.settles.is_empty() {
                done.stopped_by = Some(StoreError::unsupported("this store keeps no wakes"));
                return done;
            }
            for batch in group.batches {
                match self.apply(partition, batch).await {
                    Ok(outcome) => {
                        let committed = outcome.is_committed();
                        done.outcomes.push(outcome);
                        if !committed {
                            break;
                        }
                    }
                    Err(error) => {
                        done.stopped_by = Some(error);
                        break;
                    }
                }
            }
            done
        })
    }

    /// Whether other commits are waiting just now, so that a caller with many batches had better
    /// send them in smaller groups.
    fn is_contended(&self) -> bool {
        false
    }

    /// Size of a partition.
    ///
    /// # Errors
    /// `Corrupt`, `Unavailable`.
    fn stats<'a>(
        &'a self,
        partition: &'a Partition,
    ) -> BoxFuture<'a, Result<PartitionStats, StoreError>>;

    /// A cheap check that the store answers, with the backend's clock in milliseconds since 1970.
    ///
    /// # Errors
    /// What every other call would now end in.
    fn probe(&self) -> BoxFuture<'_, Result<u64, StoreError>>;
}
