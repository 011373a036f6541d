use std::sync::Arc;

use super::{NamespaceStore, Partition, StoreError};
use crate::future::BoxFuture;
use crate::timers::{KindSet, TimerKind};

/// A stored time at which a lane wants to be looked at.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Wake {
    /// When, in milliseconds since 1970.
    pub at_ms: u64,
    /// The partition whose lane wants to be looked at.
    pub partition: Partition,
    /// The kind of the lane.
    pub kind: TimerKind,
}

/// Where a page of wakes ended: the last wake of it. Opaque.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WakeCursor(Wake);

impl WakeCursor {
    /// The position just behind this wake. For stores.
    pub fn behind(wake: Wake) -> Self {
        Self(wake)
    }

    /// The last wake that was returned. For stores.
    pub fn position(&self) -> &Wake {
        &self.0
    }
}

/// Wakes in the order of their time; between wakes of one time the order is the store's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WakePage {
    /// The wakes in ascending order of their times.
    pub wakes: Vec<Wake>,
    /// Where to go on; `None` when there is none left up to the time asked for.
    pub next: Option<WakeCursor>,
}

/// Partitions in the store's own order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PartitionPage {
    /// The partitions of the page, in the store's order.
    pub partitions: Vec<Partition>,
    /// Where to go on: the last partition; `None` at the end.
    pub next: Option<Partition>,
}

/// A lane of the partition at hand and one stored wake of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaneWake {
    /// The kind of the lane.
    pub kind: TimerKind,
    /// The time of the stored wake, in milliseconds since 1970.
    pub at_ms: u64,
}

/// Says that wakes of a lane were served: they go, and the lane's first row sets the next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WakeSettle {
    /// The kind of the lane.
    pub kind: TimerKind,
    /// The times of the stored wakes that were served, in milliseconds since 1970; may be empty.
    pub served_ms: Vec<u64>,
}

/// A lane whose wake the audit had to set: each is a bug of the store, logged and counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WakeRepair {
    /// The partition whose lane had no wake.
    pub partition: Partition,
    /// The kind of the lane.
    pub kind: TimerKind,
    /// The wake that was missing, in milliseconds since 1970.
    pub at_ms: u64,
}

/// What one step of the audit did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuditPage {
    /// How many partitions were looked at.
    pub partitions: usize,
    /// The wakes that were missing or late and are now set.
    pub repairs: Vec<WakeRepair>,
    /// Where to go on; `None` when the walk is complete.
    pub next: Option<Partition>,
}

/// A store that keeps wakes, so that a driver learns what is due without reading every partition.
///
/// **No caller ever computes a wake.** For every lane that is not paused the store keeps at least
/// one wake at or before `max(now, due of the lane's first row)`; one too many is a spurious look,
/// never a loss. The store sees to it
///
/// 1. in the transaction of every batch that puts a timer row (a wake at `max(now, due)`, unless it
///    knows of one that is not later),
/// 2. in the transaction that deletes the pause row of a lane,
/// 3. when wakes are settled: it removes the wakes that were served and reads the lane's first row
///    *in the same transaction* to set the next, at `max(now, due)`. A paused or empty lane gets
///    none.
///
/// `now` is the backend's clock. A key of the timer class that does not decode counts as a row of
/// the kind its third byte names (0 if there is none), due at what its next eight bytes say, short
/// ones filled with zeros; so it is looked at and set aside.
pub trait WakeStore: NamespaceStore {
    /// Wakes of these kinds at or before `until_ms`, earliest first. Wakes of other kinds cost
    /// nothing and stay.
    ///
    /// # Errors
    /// `Invalid` for a limit of 0; `Corrupt`, `Unavailable`.
    fn due_wakes<'a>(
        &'a self,
        kinds: &'a KindSet,
        until_ms: u64,
        after: Option<&'a WakeCursor>,
        limit: usize,
    ) -> BoxFuture<'a, Result<WakePage, StoreError>>;

    /// Settles one lane in a transaction of its own and returns the wake it left. Within a tick the
    /// settles ride in the [`Group`](super::Group) of the last commit instead.
    ///
    /// # Errors
    /// As [`NamespaceStore::apply`].
    fn settle_wake<'a>(
        &'a self,
        partition: &'a Partition,
        settle: WakeSettle,
    ) -> BoxFuture<'a, Result<Option<u64>, StoreError>> {
        Box::pin(async move {
            let group = super::Group {
                batches: Vec::new(),
                settles: vec![settle],
            };
            let done = self.apply_all(partition, group).await;
            match done.stopped_by {
                Some(error) => Err(error),
                None => Ok(done.next_wakes_ms.first().copied().flatten()),
            }
        })
    }

    /// Partitions that hold rows or wakes, behind the one given.
    ///
    /// # Errors
    /// `Invalid` for a limit of 0; `Corrupt`, `Unavailable`.
    fn partitions<'a>(
        &'a self,
        after: Option<&'a Partition>,
        limit: usize,
    ) -> BoxFuture<'a, Result<PartitionPage, StoreError>>;

    /// Looks at the lanes of up to `limit` partitions behind the one given, and sets each wake that
    /// is missing or late, in one transaction.
    ///
    /// # Errors
    /// As [`partitions`](Self::partitions); `Full` and `Unknown` too.
    fn audit_wakes<'a>(
        &'a self,
        after: Option<&'a Partition>,
        limit: usize,
    ) -> BoxFuture<'a, Result<AuditPage, StoreError>>;

    /// After an unclean stop the time at which the store was opened, in milliseconds since 1970;
    /// `None` after a clean one. Lanes whose served wake is not later than this run *cautiously*:
    /// each timer claimed and counted before its handler runs.
    fn unclean_opened_at_ms(&self) -> Option<u64> {
        None
    }

    /// The same store for threads that may block, if it has a faster way for them: reads on the
    /// thread itself, commits run by the thread when nobody else is committing. A thread that uses
    /// it calls [`before_park`](Self::before_park) whenever it is about to wait.
    fn for_blocking_threads(&self) -> Option<Arc<dyn WakeStore>> {
        None
    }

    /// Ends what this thread holds open (a read transaction), so that its next read sees every commit
    /// so far. Called by a thread of [`for_blocking_threads`](Self::for_blocking_threads) before each
    /// piece of work that must see what was committed before it began: a tick must see a pause.
    fn end_reads(&self) {}

    /// Ends what this thread holds open (a read transaction) and runs the commits it has queued.
    /// Called by a thread of [`for_blocking_threads`](Self::for_blocking_threads) before it waits.
    fn before_park(&self) {}
}
