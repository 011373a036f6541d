use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use dueline::MaybeSend;
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

/// A trait for each kind of closure, which is `Send` except on `wasm32`.
macro_rules! closures {
    ($($name:ident: $closure:ident($($argument:ty),*) $(-> $answer:ty)?;)*) => {$(
        pub(super) trait $name: $closure($($argument),*) $(-> $answer)? + MaybeSend {}
        impl<F: $closure($($argument),*) $(-> $answer)? + MaybeSend> $name for F {}
    )*};
}

closures! {
    RaceFn: FnOnce(&dyn WakeStore, &Partition, &Group);
    Watch: FnMut(&Partition, &Group);
    DecideCommit: FnMut(&Partition, &Group) -> Option<CommitFault>;
    DecideRead: FnMut(ReadCall) -> Option<StoreErrorKind>;
}

pub(super) type Race = Box<dyn RaceFn>;

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
    pub(super) watch: Option<Shared<dyn Watch>>,
    pub(super) decide_commit: Option<Shared<dyn DecideCommit>>,
    pub(super) decide_read: Option<Shared<dyn DecideRead>>,
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
