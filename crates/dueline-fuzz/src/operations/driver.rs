use std::sync::Arc;

use dueline::runtime::Runtime;
use dueline::store::{LaneWake, NamespaceStore, Partition, WakeStore};
use dueline::timers::{
    Engine, KindSet, Registration, Registry, RetryPolicy, Tick, TickBudget, TickRequest, TimerKind,
};
use dueline_testkit::model::{Arena, Source};
use dueline_testkit::{ManualClock, SequenceEntropy};

use super::Disguise;
use super::handler::Told;

/// Two kinds that run in the tick and one that calls out.
pub(super) const KINDS: [TimerKind; 3] = [TimerKind(16), TimerKind(17), TimerKind(18)];

/// One process: an engine, its handle of the store and its clock.
pub(super) struct Driver {
    store: Arc<dyn WakeStore>,
    disguise: Disguise,
    pub(super) clock: ManualClock,
    pub(super) engine: Engine,
    cautious_until_ms: Option<u64>,
}

/// The host of an actor.
pub(super) fn runtime(clock: &ManualClock, seed: u64) -> Runtime {
    Runtime::new(
        Arc::new(clock.clone()),
        Arc::new(clock.clone()),
        Arc::new(SequenceEntropy::new(seed)),
    )
}

impl Driver {
    pub(super) fn start(
        arena: &Arc<Arena>,
        disguise: Disguise,
        clock: ManualClock,
        seed: u64,
    ) -> Self {
        let retry = RetryPolicy {
            attempts_max: Some(4),
            initial_ms: 400,
            max_ms: 3_000,
            jitter_percent: 20,
        };
        let detached = Registration::detached(Told)
            .concurrency(2)
            .deadline_ms(2_000);
        let registry = Registry::new()
            .with(
                KINDS[0],
                Registration::inline(Told).group_max(8).retry(retry),
            )
            .and_then(|it| it.with(KINDS[1], Registration::inline(Told).retry(retry)))
            .and_then(|it| it.with(KINDS[2], detached.retry(retry)))
            .expect("three kinds of the application");
        // No two starts have one seed, so it tells one process from another.
        let store = disguise(arena.actor_of(Source::Engine, seed));
        let verbs = Arc::clone(&store) as Arc<dyn NamespaceStore>;
        Self {
            engine: Engine::new(verbs, runtime(&clock, seed), registry),
            store,
            disguise,
            clock,
            cautious_until_ms: None,
        }
    }

    /// A new process in the place of one that crashed.
    pub(super) fn restart(&mut self, arena: &Arc<Arena>, seed: u64) {
        let opened_at_ms = self.engine.runtime().now_ms();
        *self = Self::start(arena, self.disguise, self.clock.clone(), seed);
        self.cautious_until_ms = Some(opened_at_ms);
    }

    /// Ticks by the wakes that are due; nothing without one.
    pub(super) fn tick(
        &self,
        partition: &Partition,
        budget: TickBudget,
    ) -> impl Future<Output = Option<Tick>> + use<> {
        let (engine, store) = (self.engine.clone(), Arc::clone(&self.store));
        let (partition, cautious_until_ms) = (partition.clone(), self.cautious_until_ms);
        async move {
            let mut kinds: KindSet = engine.slots().runnable(&engine.registry().kinds());
            kinds.insert(TimerKind::INVALID);
            let now_ms = engine.runtime().now_ms();
            let page = store.due_wakes(&kinds, now_ms, None, 64).await.ok()?;
            let lane = |wake: &dueline::store::Wake| LaneWake {
                kind: wake.kind,
                at_ms: wake.at_ms,
            };
            let wakes: Vec<LaneWake> = page.wakes.iter().map(lane).collect();
            if wakes.is_empty() {
                return None;
            }
            let request = TickRequest {
                partition: &partition,
                wakes: Some(&wakes),
                cautious_until_ms,
            };
            let mut state = engine.start_tick(budget);
            Some(engine.tick(request, &mut state).await)
        }
    }
}
