//! One store that several nodes may share, and what goes wrong with it.
//!
//! A commit is submitted, becomes durable at one instant, and is answered. A crash between the first
//! two leaves it done or not done, each commit for itself: any subset of what was not yet durable. A
//! store on another machine may do it later still. After an I/O error at a commit the store on the
//! node's own disk settles the doubt before it serves anybody: it overwrites the pages, or it is
//! closed until it has been opened again and has found out what is there.

mod fate;
mod node_store;
mod record;

pub use fate::StoreFaults;
pub use node_store::NodeStore;
pub(crate) use record::{commit_of, lane_wakes, lane_wakes_of, octets};

use std::collections::BTreeMap;
use std::fmt;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use dueline::BoxFuture;
use dueline::memory::MemoryStore;
use dueline::runtime::Clock;
use dueline::store::{
    Batch, BatchOutcome, Group, GroupOutcome, NamespaceStore, Partition, StoreError, StoreErrorKind,
};
use dueline_testkit::model::{Random, Source};

use crate::recorder::{Actor, Recorder};
use crate::tag::Tag;
use crate::time::{NodeClock, TrueTime};

/// Is told of every batch that is committed, and when by the store's clock.
pub type Watcher = Box<dyn FnMut(Source, &Partition, &Batch, u64) + Send>;

/// The store of a simulation.
pub struct Disk {
    time: TrueTime,
    clock: NodeClock,
    memory: Arc<MemoryStore>,
    recorder: Recorder,
    is_remote: bool,
    state: Mutex<State>,
    watcher: Mutex<Option<Watcher>>,
}

#[derive(Debug)]
struct State {
    random: Random,
    faults: StoreFaults,
    next_flight: u64,
    in_flight: BTreeMap<u64, Flight>,
    late: Vec<Flight>,
    doubt: Option<Flight>,
    closed_until_us: u64,
    /// Whether only what may use the reserve still finds room.
    is_full: bool,
}

/// Who asks for a commit.
#[derive(Clone, Debug)]
pub(crate) struct Origin {
    pub(crate) actor: Actor,
    pub(crate) node: u16,
    pub(crate) epoch: u64,
    pub(crate) tag: Tag,
    pub(crate) late: bool,
    /// When it was asked for, by the true time.
    pub(crate) asked_ms: u64,
}

/// A commit that is not durable yet.
#[derive(Clone, Debug)]
struct Flight {
    origin: Origin,
    partition: Partition,
    group: Group,
}

impl Disk {
    /// An empty store whose own clock is this. A remote one may finish a commit of a node that has
    /// died; a local one dies with its node.
    pub fn new(
        time: &TrueTime,
        clock: &NodeClock,
        recorder: &Recorder,
        is_remote: bool,
        seed: u64,
    ) -> Arc<Self> {
        Arc::new(Self {
            time: time.clone(),
            clock: clock.clone(),
            memory: Arc::new(MemoryStore::new(Arc::new(clock.clone()))),
            recorder: recorder.clone(),
            is_remote,
            state: Mutex::new(State {
                random: Random::new(seed),
                faults: StoreFaults::default(),
                next_flight: 0,
                in_flight: BTreeMap::new(),
                late: Vec::new(),
                doubt: None,
                closed_until_us: 0,
                is_full: false,
            }),
            watcher: Mutex::new(None),
        })
    }

    /// From now on this is told of every commit.
    pub fn watch(&self, watcher: Watcher) {
        *self.watcher.lock().unwrap_or_else(PoisonError::into_inner) = Some(watcher);
    }

    /// Whether somebody is told of every commit.
    pub(crate) fn is_watched(&self) -> bool {
        let watcher = self.watcher.lock();
        watcher.unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// What is stored.
    pub fn memory(&self) -> &Arc<MemoryStore> {
        &self.memory
    }

    /// The store's own clock, in milliseconds since 1970.
    pub fn now_ms(&self) -> u64 {
        u64::try_from(self.clock.wall_ms()).unwrap_or(0)
    }

    /// The store's own clock.
    pub fn clock(&self) -> &NodeClock {
        &self.clock
    }

    /// Goes wrong this often from now on.
    pub fn set_faults(&self, faults: StoreFaults) {
        self.state().faults = faults;
    }

    /// From now on there is room for what uses the reserve alone, or for everything again.
    pub fn set_full(&self, is_full: bool) {
        self.state().is_full = is_full;
    }

    /// Nothing goes wrong any more. Commits that are late are done now or never.
    pub fn heal(&self) {
        let late = {
            let mut state = self.state();
            state.faults = StoreFaults::default();
            state.is_full = false;
            state.closed_until_us = 0;
            std::mem::take(&mut state.late)
        };
        for flight in late {
            if self.state().random.chance(50) {
                self.land(flight);
            }
        }
        self.reopen();
    }

    /// The node of a local store has died and opens it again: what was in doubt is found or not.
    pub fn reopen(&self) {
        let doubt = {
            let mut state = self.state();
            state.closed_until_us = 0;
            let found = state.random.chance(50);
            state.doubt.take().filter(|_| found)
        };
        if let Some(flight) = doubt {
            self.recorder
                .mark("a commit in doubt is found at the next opening");
            if serves_in_doubt() {
                self.land_unguarded(flight);
            } else {
                // Nothing was committed since, so its guards say what they said then; and the wakes
                // among its pages are those of that time.
                let ago_ms = self.time.now_ms().saturating_sub(flight.origin.asked_ms);
                let ago_ms = i64::try_from(ago_ms).unwrap_or(0);
                self.clock.jump_ms(-ago_ms);
                self.land(flight);
                self.clock.jump_ms(ago_ms);
            }
        }
    }

    /// One commit that is late is done, if there is one.
    pub fn land_late(&self) {
        let late = self.state().late.pop();
        if let Some(flight) = late {
            self.land(flight);
        }
    }

    fn land(&self, mut flight: Flight) {
        self.recorder.mark("a commit lands late");
        flight.origin.late = true;
        let _unheard = self.commit_now(&flight.origin, &flight.partition, flight.group);
    }

    /// Pages that come back ask for no guard. While nothing else was committed they are what the
    /// commit was; a store that served others meanwhile gets what it deserves.
    fn land_unguarded(&self, mut flight: Flight) {
        flight.origin.late = true;
        for batch in &mut flight.group.batches {
            batch.preconditions.clear();
        }
        let _unheard = self.commit_now(&flight.origin, &flight.partition, flight.group);
    }

    /// Commits at this instant, and takes it down.
    fn commit_now(&self, origin: &Origin, partition: &Partition, group: Group) -> GroupOutcome {
        let batches: Vec<Batch> = group.batches.clone();
        let settles = !group.settles.is_empty();
        let done = at_once(self.memory.apply_all(partition, group));
        if done.committed() > 0 && serves_in_doubt() {
            // Its pages have taken the place of those in doubt.
            self.state().doubt = None;
        }
        let committed = batches.get(..done.committed()).unwrap_or_default();
        if !committed.is_empty() {
            self.record(origin, partition, committed);
            self.tell(origin, partition, committed);
        } else if settles {
            // The wakes alone have changed.
            self.record(origin, partition, &[Batch::new()]);
        }
        for outcome in &done.outcomes {
            match outcome {
                BatchOutcome::Committed => {}
                BatchOutcome::PreconditionFailed { .. } => self.recorder.mark("a guard is lost"),
                BatchOutcome::DeadlinePassed { .. } => self.recorder.mark("a deadline is passed"),
                BatchOutcome::TooEarly { .. } => self.recorder.mark("a commit is too early"),
            }
        }
        done
    }

    fn tell(&self, origin: &Origin, partition: &Partition, committed: &[Batch]) {
        let mut watcher = self.watcher.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(watcher) = watcher.as_mut() else {
            return;
        };
        let source = match origin.tag {
            Tag::Request(_) => Source::User,
            Tag::Engine | Tag::Turn(_) => Source::Engine,
        };
        for batch in committed {
            watcher(source, partition, batch, self.now_ms());
        }
    }

    /// Settles a commit in doubt before anybody is served; refuses while the store is closed.
    fn gate(&self) -> Result<(), StoreError> {
        let now_us = self.time.now_us();
        let mut state = self.state();
        if now_us < state.closed_until_us {
            return Err(injected(StoreErrorKind::Unavailable));
        }
        if state.doubt.is_none() || serves_in_doubt() {
            return Ok(());
        }
        if state.closed_until_us == 0 && state.random.chance(60) {
            // A commit of its own has overwritten the pages.
            state.doubt = None;
            drop(state);
            self.recorder.mark("a commit in doubt is overwritten");
            return Ok(());
        }
        if state.closed_until_us == 0 {
            state.closed_until_us = now_us + 1 + state.random.below(2_000_000);
            drop(state);
            self.recorder.mark("the store is closed in doubt");
            return Err(injected(StoreErrorKind::Unavailable));
        }
        drop(state);
        self.reopen();
        Ok(())
    }

    fn submit(&self, flight: Flight) -> u64 {
        let mut state = self.state();
        state.next_flight += 1;
        let number = state.next_flight;
        state.in_flight.insert(number, flight);
        number
    }

    fn take_flight(&self, number: u64) -> Option<Flight> {
        self.state().in_flight.remove(&number)
    }

    /// Whoever waited for this commit has gone: it is done, or it is not, or a remote store does it
    /// later.
    fn abandon(&self, number: u64) {
        let Some(flight) = self.take_flight(number) else {
            return;
        };
        let draw = self.state().random.below(3);
        match draw {
            0 if self.gate().is_ok() => {
                let _unheard = self.commit_now(&flight.origin, &flight.partition, flight.group);
            }
            1 if self.is_remote => self.state().late.push(flight),
            _ => {}
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A future of the memory store, which is ready at its first poll.
pub(crate) fn at_once<T>(mut future: BoxFuture<'_, T>) -> T {
    let mut context = Context::from_waker(Waker::noop());
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return output;
        }
    }
}

/// Lets every other task have a step.
async fn give_way() {
    let mut given = false;
    poll_fn(|context| {
        if given {
            return Poll::Ready(());
        }
        given = true;
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

impl fmt::Debug for Disk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Disk")
            .field("is_remote", &self.is_remote)
            .field("state", &self.state)
            .finish_non_exhaustive()
    }
}

fn injected(kind: StoreErrorKind) -> StoreError {
    StoreError::new(kind, "simulated")
}

/// Whether a planted bug lets a store serve others while a commit is in doubt.
#[cfg(dueline_mutants)]
fn serves_in_doubt() -> bool {
    use dueline::mutants::{Mutant, planted};
    planted(Mutant::PlainReadAfterFailedCommit)
}

#[cfg(not(dueline_mutants))]
fn serves_in_doubt() -> bool {
    false
}
