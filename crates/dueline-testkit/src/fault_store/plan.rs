use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use dueline::store::{Group, Partition, StoreError, StoreErrorKind, WakeStore};

use super::CallCounts;

/// How a commit fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommitFault {
    /// Nothing is written and the error has this kind. With `Unknown`: the commit whose outcome is
    /// not known and that did not happen.
    NotWritten(StoreErrorKind),
    /// Everything is done as without the fault, then the answer is lost: `Unknown`.
    AnswerLost,
    /// The first batches of the group commit, then an error of this kind stops it; its settles do
    /// not run. A group that has nothing behind those batches is let through.
    StoppedAfter {
        /// How many batches are let through.
        batches: usize,
        /// The kind of the error behind them.
        kind: StoreErrorKind,
    },
}

/// Which reading call it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadCall {
    /// `get`.
    Get,
    /// `get_many`.
    GetMany,
    /// `scan`.
    Scan,
    /// `scan_many`.
    ScanMany,
    /// `due_wakes`.
    DueWakes,
    /// `partitions`.
    Partitions,
    /// `audit_wakes`.
    AuditWakes,
    /// `stats`.
    Stats,
    /// `probe`.
    Probe,
}

pub(super) type Race = Box<dyn FnOnce(&dyn WakeStore, &Partition, &Group) + Send>;
type Watch = dyn FnMut(&Partition, &Group) + Send;
type DecideCommit = dyn FnMut(&Partition, &Group) -> Option<CommitFault> + Send;
type DecideRead = dyn FnMut(ReadCall) -> Option<StoreErrorKind> + Send;

/// A closure of the test with a lock of its own, so that it runs without the plan's.
pub(super) type Shared<F> = Arc<Mutex<Box<F>>>;

pub(super) fn shared<F: ?Sized>(closure: Box<F>) -> Shared<F> {
    Arc::new(Mutex::new(closure))
}

pub(super) fn with<F: ?Sized, R>(closure: &Shared<F>, call: impl FnOnce(&mut F) -> R) -> R {
    call(&mut closure.lock().unwrap_or_else(PoisonError::into_inner))
}

/// What was asked and what is to fail.
#[derive(Default)]
pub(super) struct Plan {
    pub(super) counts: CallCounts,
    pub(super) commits: u64,
    pub(super) reads: u64,
    pub(super) commit_faults: BTreeMap<u64, CommitFault>,
    pub(super) read_faults: BTreeMap<u64, StoreErrorKind>,
    pub(super) races: BTreeMap<u64, Vec<Race>>,
    pub(super) watch: Option<Shared<Watch>>,
    pub(super) decide_commit: Option<Shared<DecideCommit>>,
    pub(super) decide_read: Option<Shared<DecideRead>>,
    pub(super) unclean_opened_at_ms: Option<Option<u64>>,
    pub(super) shared: Option<bool>,
}

impl Plan {
    pub(super) fn count_read(&mut self, call: ReadCall) {
        let counts = &mut self.counts;
        *match call {
            ReadCall::Get => &mut counts.gets,
            ReadCall::GetMany => &mut counts.get_manys,
            ReadCall::Scan => &mut counts.scans,
            ReadCall::ScanMany => &mut counts.scan_manys,
            ReadCall::DueWakes => &mut counts.due_wakes,
            ReadCall::Partitions | ReadCall::AuditWakes | ReadCall::Stats | ReadCall::Probe => {
                &mut counts.upkeep
            }
        } += 1;
        self.reads += 1;
    }
}

pub(super) fn injected(kind: StoreErrorKind) -> StoreError {
    StoreError::new(kind, "injected by the fault store")
}
