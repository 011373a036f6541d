use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use dueline::MaybeSend;
use dueline::memory::MemoryStore;
use dueline::runtime::Clock;
use dueline::store::{
    Batch, BatchOutcome, Group, GroupOutcome, NamespaceStore, Partition, StoreError,
    StoreErrorKind, Wake,
};

use super::{ActorStore, Ledger, Random};
use crate::{ManualClock, block_on};

/// Who asks: the engine is held to more rules than a user, who may remove a timer at will.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// A tick, a settle, a release.
    Engine,
    /// A verb of scheduling, or a write of the test.
    User,
}

/// Who asks, and which of those it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Caller {
    pub(super) source: Source,
    pub(super) owner: u64,
}

/// A batch that was committed, or the settles of a group, as a watcher of the arena sees it.
#[derive(Debug)]
pub struct Committed<'a> {
    /// Who asked.
    pub source: Source,
    /// The number of the handle that asked, as given to [`Arena::actor_of`]; 0 without one.
    pub owner: u64,
    /// The partition.
    pub partition: &'a Partition,
    /// The batch; `None` for settles.
    pub batch: Option<&'a Batch>,
    /// The store's clock, in milliseconds since 1970.
    pub now_ms: u64,
    /// Every wake of the partition as the commit left it.
    pub wakes: Vec<Wake>,
    /// When it was asked for, by the monotonic part of the store's clock, if whoever asked had been told
    /// before that the outcome is not known.
    pub late_since: Option<Duration>,
}

/// A group that is committed later, and when it was asked for.
type Late = (Caller, Partition, Group, Duration);

/// What watches the commits.
trait Watch: FnMut(&Committed<'_>) + MaybeSend {}

impl<F: FnMut(&Committed<'_>) + MaybeSend> Watch for F {}

type Watcher = Box<dyn Watch>;

/// What befalls a call of the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mishap {
    /// Nothing is done, the error is `Unavailable`.
    Unavailable,
    /// At capacity; a read ends in `Unavailable`.
    Full,
    /// The commit is done and its answer lost; a read ends in `Unavailable`.
    UnknownWritten,
    /// The commit is not done and the answer is `Unknown`; a read ends in `Unavailable`.
    UnknownNotWritten,
    /// As `UnknownNotWritten`, but the commit is done later, when [`Arena::land_late`] says so.
    UnknownLate,
    /// The call never begins and never ends: its future is to be dropped.
    CrashBefore,
    /// The call is done and never ends: its future is to be dropped.
    CrashAfter,
}

#[derive(Debug, Default)]
pub(super) struct Faults {
    calls: u64,
    planned: Option<(u64, usize, Mishap)>,
    /// How many batches of the group commit before the planned mishap hits.
    spared: Option<usize>,
    random: Option<(Random, u64, Vec<Mishap>)>,
    crashed: bool,
    short: Option<(Random, u64)>,
}

/// A memory store, what goes wrong with it, and the ledger that watches it.
pub struct Arena {
    pub(super) memory: Arc<MemoryStore>,
    clock: ManualClock,
    faults: Mutex<Faults>,
    ledger: Mutex<Ledger>,
    late: Mutex<Vec<Late>>,
    watcher: Mutex<Option<Watcher>>,
}

impl Arena {
    /// An empty store whose own clock is this.
    pub fn new(clock: &ManualClock) -> Arc<Self> {
        Arc::new(Self {
            memory: Arc::new(MemoryStore::new(Arc::new(clock.clone()))),
            clock: clock.clone(),
            faults: Mutex::default(),
            ledger: Mutex::default(),
            late: Mutex::default(),
            watcher: Mutex::default(),
        })
    }

    /// A handle of the store for one actor.
    pub fn actor(self: &Arc<Self>, source: Source) -> Arc<ActorStore> {
        self.actor_of(source, 0)
    }

    /// A handle of the store by whose number a watcher knows its commits.
    pub fn actor_of(self: &Arc<Self>, source: Source, owner: u64) -> Arc<ActorStore> {
        let caller = Caller { source, owner };
        Arc::new(ActorStore::new(Arc::clone(self), caller))
    }

    /// Shows each commit from now on to this watcher, in their order. It must not call the arena.
    pub fn watch(&self, watcher: impl FnMut(&Committed<'_>) + MaybeSend + 'static) {
        *self.watcher() = Some(Box::new(watcher));
    }

    /// The store inside, for looking at its rows.
    pub fn memory(&self) -> &Arc<MemoryStore> {
        &self.memory
    }

    /// What the ledger has seen.
    pub fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets the n-th call from now, of whomever, meet this; 1 is the next. If it commits a group,
    /// this many of its batches are spared, all but the last at most.
    pub fn fail_call(&self, nth: u64, spared: usize, mishap: Mishap) {
        let mut faults = self.faults();
        faults.planned = Some((faults.calls.saturating_add(nth), spared, mishap));
    }

    /// Lets this many of a thousand calls meet one of these.
    pub fn fail_calls(&self, seed: u64, per_mille: u64, mishaps: &[Mishap]) {
        self.faults().random = Some((Random::new(seed), per_mille, mishaps.to_vec()));
    }

    /// Lets this many of a hundred pages be short, as the contract allows: at least one row, and a
    /// cursor.
    pub fn shorten_pages(&self, seed: u64, percent: u64) {
        self.faults().short = Some((Random::new(seed), percent));
    }

    /// How many of these rows or pages are served.
    pub(super) fn served(&self, of: usize) -> usize {
        let mut faults = self.faults();
        let Some((random, percent)) = &mut faults.short else {
            return of;
        };
        if of < 2 || !random.chance(*percent) {
            return of;
        }
        let most = u64::try_from(of).unwrap_or(u64::MAX).saturating_sub(1);
        usize::try_from(random.below(most)).unwrap_or(0) + 1
    }

    /// Nothing goes wrong any more, and a crash is over. Says whether the call that
    /// [`fail_call`](Self::fail_call) named was never reached.
    pub fn heal(&self) -> bool {
        let mut faults = self.faults();
        let unreached = faults.planned.take().is_some();
        faults.random = None;
        faults.crashed = false;
        unreached
    }

    /// Whether a call has crashed since the last [`heal`](Self::heal).
    pub fn has_crashed(&self) -> bool {
        self.faults().crashed
    }

    /// How many calls were made.
    pub fn calls(&self) -> u64 {
        self.faults().calls
    }

    /// Commits one of the commits that were in doubt and are late, if there is one.
    pub fn land_late(&self) -> bool {
        let late = self.late().pop();
        match late {
            Some((caller, partition, group, asked_at)) => {
                let _unheard = self.commit_as(caller, &partition, group, Some(asked_at));
                true
            }
            None => false,
        }
    }

    /// Forgets the commits that are late: they never happen.
    pub fn drop_late(&self) {
        self.late().clear();
    }

    pub(super) fn put_off(&self, caller: Caller, partition: &Partition, group: Group) {
        let asked_at = self.clock.monotonic();
        self.late()
            .push((caller, partition.clone(), group, asked_at));
    }

    /// Counts a call and says what befalls it.
    pub(super) fn next_mishap(&self) -> Option<Mishap> {
        let mut faults = self.faults();
        faults.calls += 1;
        let mut mishap = None;
        if let Some((nth, spared, planned)) = faults.planned
            && nth == faults.calls
        {
            faults.planned = None;
            faults.spared = Some(spared);
            mishap = Some(planned);
        }
        if let Some((random, per_mille, mishaps)) = &mut faults.random
            && random.below(1_000) < *per_mille
        {
            mishap = Some(random.pick(mishaps));
        }
        if matches!(mishap, Some(Mishap::CrashBefore | Mishap::CrashAfter)) {
            faults.crashed = true;
        }
        mishap
    }

    /// How many batches of a group of this many the mishap spares.
    pub(super) fn spared(&self, batches: usize) -> usize {
        let mut faults = self.faults();
        if let Some(spared) = faults.spared.take() {
            return spared.min(batches.saturating_sub(1));
        }
        let drawn = faults
            .random
            .as_mut()
            .map_or(0, |(random, _, _)| random.below(batches as u64));
        usize::try_from(drawn).unwrap_or(0)
    }

    /// Commits a group batch by batch, so that the ledger sees each, then its settles.
    pub(super) fn commit(
        &self,
        caller: Caller,
        partition: &Partition,
        group: Group,
    ) -> GroupOutcome {
        self.commit_as(caller, partition, group, None)
    }

    fn commit_as(
        &self,
        caller: Caller,
        partition: &Partition,
        group: Group,
        late_since: Option<Duration>,
    ) -> GroupOutcome {
        let mut done = GroupOutcome::default();
        let mut ledger = self.ledger();
        for batch in group.batches {
            match block_on(self.memory.apply(partition, batch.clone())) {
                Ok(BatchOutcome::Committed) => {
                    done.outcomes.push(BatchOutcome::Committed);
                    ledger.committed(caller.source, partition, &batch, self.now_ms());
                    ledger.check_wakes(partition, &self.memory.wakes(), self.now_ms());
                    self.show(caller, partition, Some(&batch), late_since);
                }
                Ok(lost) => {
                    done.outcomes.push(lost);
                    break;
                }
                Err(error) => {
                    done.stopped_by = Some(error);
                    return done;
                }
            }
        }
        let settles = Group {
            batches: Vec::new(),
            settles: group.settles,
        };
        let has_settles = !settles.settles.is_empty();
        done.next_wakes_ms = block_on(self.memory.apply_all(partition, settles)).next_wakes_ms;
        ledger.check_wakes(partition, &self.memory.wakes(), self.now_ms());
        if has_settles {
            self.show(caller, partition, None, late_since);
        }
        done
    }

    fn show(
        &self,
        caller: Caller,
        partition: &Partition,
        batch: Option<&Batch>,
        late_since: Option<Duration>,
    ) {
        if let Some(watcher) = self.watcher().as_mut() {
            let mut wakes = self.memory.wakes();
            wakes.retain(|wake| wake.partition == *partition);
            watcher(&Committed {
                source: caller.source,
                owner: caller.owner,
                partition,
                batch,
                now_ms: self.now_ms(),
                wakes,
                late_since,
            });
        }
    }

    fn now_ms(&self) -> u64 {
        u64::try_from(self.clock.wall_ms()).unwrap_or(0)
    }

    fn faults(&self) -> MutexGuard<'_, Faults> {
        self.faults.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn late(&self) -> MutexGuard<'_, Vec<Late>> {
        self.late.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn watcher(&self) -> MutexGuard<'_, Option<Watcher>> {
        self.watcher.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Arena {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Arena").finish_non_exhaustive()
    }
}

pub(super) fn injected(kind: StoreErrorKind) -> StoreError {
    StoreError::new(kind, "injected by the arena")
}
