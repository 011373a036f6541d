use super::amounts::Amounts;
use super::window::Window;
use crate::future::MaybeSendSync;
use crate::store::Partition;

/// Counts what goes wrong with a quota; every note is a warning in the log as well.
///
/// A note is about a run, and a run may be repeated after a crash: the counts may be a little high.
pub trait QuotaMeter: MaybeSendSync {
    /// Something to count.
    fn note(&self, note: &QuotaNote<'_>);
}

/// What a [`QuotaMeter`] is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum QuotaNote<'a> {
    /// A shard shows less than was absorbed of it before: it was restored from a backup, or its row was
    /// written by somebody else. The total now counts what it shows.
    Rebaselined {
        /// The shard.
        shard: &'a Partition,
        /// The window.
        window: Window,
        /// What was absorbed of it.
        absorbed: Amounts,
        /// What it shows.
        shown: Amounts,
    },
    /// A roll-up did not come about; it is tried again after one period, a minute at most.
    BackedOff {
        /// The partition of the timer.
        shard: &'a Partition,
        /// The window.
        window: Window,
        /// Why.
        reason: BackOff,
    },
    /// Rows of windows that were not closed in their time were removed, or rows that do not decode were
    /// removed with their window.
    Drained {
        /// The partition they lay in.
        partition: &'a Partition,
        /// How many.
        rows: u64,
    },
}

/// Why a roll-up backed off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum BackOff {
    /// A row does not decode.
    Corrupt,
    /// Others changed the coordinator's rows each of the eight times.
    Contention,
    /// The coordinator's store did not answer.
    Storage,
}

/// Without a meter.
#[derive(Debug)]
pub(super) struct Unmetered;

impl QuotaMeter for Unmetered {
    fn note(&self, _: &QuotaNote<'_>) {}
}
