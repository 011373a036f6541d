use std::sync::atomic::{AtomicU64, Ordering};

/// What the store has done since it was opened. Figures of one moment are not taken together, but
/// each only grows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counters {
    /// Write transactions begun, those of retries one by one included.
    pub transactions: u64,
    /// Write transactions that were committed: each is one flush under `PowerLoss`.
    pub commits: u64,
    /// Calls of `apply`, `apply_all` and `settle_wake` that were run.
    pub applies: u64,
    /// Read transactions begun; several reads may share one.
    pub read_transactions: u64,
    /// Calls of the reading half of the contract that were answered.
    pub reads: u64,
    /// Commits whose outcome was not known.
    pub doubtful_commits: u64,
    /// Times the file was reopened after a doubt that could not be settled.
    pub reopened: u64,
    /// Checkpoints of the log.
    pub checkpoints: u64,
}

#[derive(Debug, Default)]
pub(crate) struct Counting {
    pub(crate) transactions: AtomicU64,
    pub(crate) commits: AtomicU64,
    pub(crate) applies: AtomicU64,
    pub(crate) read_transactions: AtomicU64,
    pub(crate) reads: AtomicU64,
    pub(crate) doubtful_commits: AtomicU64,
    pub(crate) reopened: AtomicU64,
    pub(crate) checkpoints: AtomicU64,
}

impl Counting {
    pub(crate) fn show(&self) -> Counters {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Counters {
            transactions: read(&self.transactions),
            commits: read(&self.commits),
            applies: read(&self.applies),
            read_transactions: read(&self.read_transactions),
            reads: read(&self.reads),
            doubtful_commits: read(&self.doubtful_commits),
            reopened: read(&self.reopened),
            checkpoints: read(&self.checkpoints),
        }
    }
}

/// Adds one.
pub(crate) fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}
