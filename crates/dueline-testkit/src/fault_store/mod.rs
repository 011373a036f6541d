//! A store that fails on demand, counts what it is asked and shows every commit to the test.

mod counts;
mod plan;
mod store;

pub use counts::CallCounts;
pub use plan::{CommitFault, ReadCall};

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dueline::store::{Group, Partition, StoreErrorKind, WakeStore};
use dueline::{BoxFuture, MaybeSend};
use plan::{Plan, shared};

/// Wraps a store and makes chosen calls fail, as a disk or a network would.
///
/// Commits (`apply`, `apply_all`, `settle_wake`) and reads (all other calls but `capabilities`) are
/// numbered apart, from 1, beginning at the call that follows the plan: `fail_commit(1, ..)` is the
/// next commit.
///
/// ```
/// use std::sync::Arc;
/// use dueline::memory::MemoryStore;
/// use dueline::store::{Batch, NamespaceStore, Partition, ReadStore, StoreErrorKind};
/// use dueline_testkit::{CommitFault, FaultStore, ManualClock, block_on};
///
/// let memory = Arc::new(MemoryStore::new(Arc::new(ManualClock::new(0))));
/// let store = FaultStore::new(memory);
/// let order = Partition::new("order-42")?;
///
/// store.fail_commit(1, CommitFault::AnswerLost);
/// let error = block_on(store.apply(&order, Batch::new().put("state", "paid"))).unwrap_err();
/// assert_eq!(error.kind(), StoreErrorKind::Unknown);
/// assert!(block_on(store.get(&order, &"state".into()))?.is_some(), "it was written all the same");
/// assert_eq!(store.counts().applies, 1);
/// # Ok::<(), dueline::store::StoreError>(())
/// ```
///
/// A closure given to it runs inside the call it is about, so it must not call this store itself;
/// [`inner`](FaultStore::inner) is free. The wrapper offers no store for blocking threads, so that every call passes through it.
pub struct FaultStore {
    inner: Arc<dyn WakeStore>,
    plan: Mutex<Plan>,
    under_way: AtomicUsize,
}

impl FaultStore {
    /// A wrapper that lets everything through.
    pub fn new(inner: Arc<dyn WakeStore>) -> Self {
        Self {
            inner,
            plan: Mutex::new(Plan::default()),
            under_way: AtomicUsize::new(0),
        }
    }

    /// The store inside, for reads and writes that are neither counted nor harmed.
    pub fn inner(&self) -> &Arc<dyn WakeStore> {
        &self.inner
    }

    /// Makes the n-th commit from now fail; 1 is the next.
    pub fn fail_commit(&self, nth: u64, fault: CommitFault) {
        let mut plan = self.plan();
        let number = plan.commits.saturating_add(nth);
        plan.commit_faults.insert(number, fault);
    }

    /// Asks this for a fault at every commit that has none of its own, until [`heal`](Self::heal).
    pub fn fail_commits_with(
        &self,
        decide: impl FnMut(&Partition, &Group) -> Option<CommitFault> + MaybeSend + 'static,
    ) {
        self.plan().decide_commit = Some(shared(Box::new(decide)));
    }

    /// Makes the n-th read from now fail with an error of this kind; 1 is the next.
    pub fn fail_read(&self, nth: u64, kind: StoreErrorKind) {
        let mut plan = self.plan();
        let number = plan.reads.saturating_add(nth);
        plan.read_faults.insert(number, kind);
    }

    /// Asks this for an error at every read that has none of its own, until [`heal`](Self::heal).
    pub fn fail_reads_with(
        &self,
        decide: impl FnMut(ReadCall) -> Option<StoreErrorKind> + MaybeSend + 'static,
    ) {
        self.plan().decide_read = Some(shared(Box::new(decide)));
    }

    /// Forgets every fault and race that is still to come.
    pub fn heal(&self) {
        let mut plan = self.plan();
        plan.commit_faults.clear();
        plan.read_faults.clear();
        plan.races.clear();
        plan.decide_commit = None;
        plan.decide_read = None;
    }

    /// Runs this just before the n-th commit from now, with the store inside: what another writer
    /// does between a caller's reads and its commit. Several of one commit run in their order.
    pub fn before_commit(
        &self,
        nth: u64,
        race: impl FnOnce(&dyn WakeStore, &Partition, &Group) + MaybeSend + 'static,
    ) {
        let mut plan = self.plan();
        let number = plan.commits.saturating_add(nth);
        plan.races.entry(number).or_default().push(Box::new(race));
    }

    /// Shows every commit to this, before any fault, as it was asked for.
    pub fn on_commit(&self, watch: impl FnMut(&Partition, &Group) + MaybeSend + 'static) {
        self.plan().watch = Some(shared(Box::new(watch)));
    }

    /// What was asked so far.
    pub fn counts(&self) -> CallCounts {
        self.plan().counts
    }

    /// How many calls the store inside has not answered: while it is at work on a thread of its own, a test
    /// that moves the clock would let deadlines pass that have nothing to do with it.
    pub fn calls_under_way(&self) -> usize {
        self.under_way.load(Ordering::Acquire)
    }

    async fn asked<T>(&self, call: BoxFuture<'_, T>) -> T {
        let _under_way = UnderWay::begin(&self.under_way);
        call.await
    }

    /// Lets the store claim an unclean stop: see
    /// [`unclean_opened_at_ms`](WakeStore::unclean_opened_at_ms).
    pub fn set_unclean_opened_at_ms(&self, opened_at_ms: Option<u64>) {
        self.plan().unclean_opened_at_ms = Some(opened_at_ms);
    }

    /// Lets the store claim that other processes write it too.
    pub fn set_shared(&self, shared: bool) {
        self.plan().shared = Some(shared);
    }

    fn plan(&self) -> MutexGuard<'_, Plan> {
        self.plan.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for FaultStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FaultStore")
            .field("inner", &self.inner)
            .finish_non_exhaustive()
    }
}

/// A call that the store inside has not answered; one that is dropped is none any more.
struct UnderWay<'a>(&'a AtomicUsize);

impl<'a> UnderWay<'a> {
    fn begin(calls: &'a AtomicUsize) -> Self {
        calls.fetch_add(1, Ordering::AcqRel);
        Self(calls)
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}
