use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::activity::Activity;
use super::call::ClaimedCall;
use super::slots::Slots;
use super::tick::TickRun;
use super::{KindSet, Registry, RunReport, TickBudget, TickState, TimerError, TimerKind, Timers};
use crate::runtime::Runtime;
use crate::store::{LaneWake, NamespaceStore, Partition};

/// Most detached calls at a time, unless said otherwise.
pub const CALLS_MAX: u32 = 256;

/// Timers and the handlers that fire them. Cheap to clone; clones share slots and activity.
#[derive(Clone, Debug)]
pub struct Engine {
    pub(crate) timers: Timers,
    pub(crate) tick_store: Arc<dyn NamespaceStore>,
    pub(crate) registry: Arc<Registry>,
    pub(crate) slots: Slots,
    pub(crate) activity: Activity,
    slow: Arc<Mutex<KindSet>>,
}

/// What a tick is to look at.
#[derive(Clone, Copy, Debug)]
pub struct TickRequest<'a> {
    /// The partition whose due timers run.
    pub partition: &'a Partition,
    /// The stored wakes that are served, in the order of their times: only these lanes are looked
    /// at, and their wakes are settled in the tick's last commit. `None` looks at every lane and
    /// settles nothing: for stores without wakes.
    pub wakes: Option<&'a [LaneWake]>,
    /// Lanes whose served wake is not later than this (all lanes, without wakes) run cautiously:
    /// each timer claimed and counted before its handler runs. `None` after a clean stop.
    pub cautious_until_ms: Option<u64>,
}

/// What a tick did, and the calls it claimed for the driver to run.
#[derive(Debug, Default)]
#[must_use]
pub struct Tick {
    /// What became of the timers, counted in all and per kind.
    pub report: RunReport,
    /// Detached calls to be run now.
    pub calls: Vec<ClaimedCall>,
    /// For each lane of the request, the wake its settle left; empty if the settles did not run
    /// (the served wakes then stand).
    pub next_wakes: Vec<(TimerKind, Option<u64>)>,
}

impl Engine {
    /// An engine over a store.
    pub fn new(store: Arc<dyn NamespaceStore>, runtime: Runtime, registry: Registry) -> Self {
        let slots = Slots::new(&registry, CALLS_MAX);
        Self {
            timers: Timers::new(Arc::clone(&store), runtime),
            tick_store: store,
            registry: Arc::new(registry),
            slots,
            activity: Activity::default(),
            slow: Arc::default(),
        }
    }

    /// Most detached calls at a time, over all kinds. Set it before the engine is cloned.
    #[must_use]
    pub fn calls_max(mut self, calls_max: u32) -> Self {
        self.slots = Slots::new(&self.registry, calls_max);
        self
    }

    /// The same engine with another handle of the same store for its ticks and settles: one for
    /// threads that may block.
    #[must_use]
    pub fn with_tick_store(mut self, store: Arc<dyn NamespaceStore>) -> Self {
        self.tick_store = store;
        self
    }

    /// The verbs of scheduling.
    pub fn timers(&self) -> &Timers {
        &self.timers
    }

    /// The handlers and how each is run.
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// The places for detached calls.
    pub fn slots(&self) -> &Slots {
        &self.slots
    }

    /// The injected clocks, sleep and entropy.
    pub fn runtime(&self) -> &Runtime {
        self.timers.runtime()
    }

    /// The kinds that passed their share of time when they last ran: they go behind the others. It is
    /// order alone, so it may be forgotten.
    pub(super) fn slow_kinds(&self) -> MutexGuard<'_, KindSet> {
        self.slow.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A full budget that starts now.
    pub fn start_tick(&self, budget: TickBudget) -> TickState {
        TickState::new(budget, self.runtime().monotonic())
    }

    /// Runs the due timers of one partition within what is left of a shared budget.
    ///
    /// Never fails: what the store refuses is counted (`held_back`) and stays due.
    pub async fn tick<'a>(&'a self, request: TickRequest<'a>, state: &'a mut TickState) -> Tick {
        let _running = self.activity.begin(request.partition, None);
        Box::pin(TickRun::new(self, &request, state).run(&request)).await
    }

    /// Pauses a kind of a partition and waits until no run of it that began before is under way in
    /// this process. Returns whether it was not paused before.
    ///
    /// # Errors
    /// What the store says.
    pub async fn pause_and_drain(
        &self,
        partition: &Partition,
        kind: TimerKind,
    ) -> Result<bool, TimerError> {
        let paused = self.timers.pause(partition, kind).await?;
        self.activity.drained(partition, kind).await;
        Ok(paused)
    }
}

/// Runs the due timers of one partition with a fresh budget: all lanes, no wakes settled.
///
/// The short form of [`Engine::tick`] for stores without wakes, tests and hand-driven loops.
pub async fn run_due(engine: &Engine, partition: &Partition, budget: TickBudget) -> Tick {
    let mut state = engine.start_tick(budget);
    run_due_with_state(engine, partition, &mut state).await
}

/// Runs the due timers of one partition with what is left of a budget shared by several.
pub async fn run_due_with_state(
    engine: &Engine,
    partition: &Partition,
    state: &mut TickState,
) -> Tick {
    let request = TickRequest {
        partition,
        wakes: None,
        cautious_until_ms: None,
    };
    engine.tick(request, state).await
}
