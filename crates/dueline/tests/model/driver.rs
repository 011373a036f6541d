//! The drivers of a history, as data and futures.

use std::sync::Arc;

use dueline::runtime::{Clock, Runtime};
use dueline::store::{LaneWake, NamespaceStore, Partition, Wake, WakeStore};
use dueline::timers::{
    Counts, Engine, KindSet, Registration, Registry, RetryPolicy, Tick, TickBudget, TickRequest,
    TimerKind,
};
use dueline_testkit::model::{ActorStore, Arena, Source};
use dueline_testkit::{ManualClock, SequenceEntropy};

use dueline_history::{Recorded, What};
use dueline_testkit::model::script::{KINDS, Script};

use super::record::{NodeLog, Record};

/// What a task came to.
pub enum Ended {
    Tick(Tick, TickBudget, Paused),
    Settled(Counts),
    Other,
}

/// What was paused when a tick began, and how many resumes there had been.
pub struct Paused {
    pub kinds: Vec<TimerKind>,
    pub resumes: u64,
}

impl Paused {
    fn now(arena: &Arena, partition: &Partition) -> Self {
        let ledger = arena.ledger();
        Self {
            kinds: ledger.paused(partition),
            resumes: ledger.resumes(),
        }
    }
}

/// One process: an engine, its handle of the store and its clock.
pub struct Driver {
    arena: Arc<Arena>,
    node: usize,
    record: Record,
    store: Arc<ActorStore>,
    pub clock: ManualClock,
    pub engine: Engine,
    pub cautious_until_ms: Option<u64>,
    pub group_max: u16,
}

pub fn policy() -> RetryPolicy {
    RetryPolicy {
        attempts_max: Some(4),
        initial_ms: 400,
        max_ms: 3_000,
        jitter_percent: 20,
    }
}

/// Three inline kinds of different group sizes and a detached one.
pub fn registry(runtime: &Runtime, group_max: u16, policy: RetryPolicy) -> Registry {
    recorded_registry(runtime, group_max, policy, &NodeLog(None))
}

fn recorded_registry(
    runtime: &Runtime,
    group_max: u16,
    policy: RetryPolicy,
    log: &NodeLog,
) -> Registry {
    let script = || {
        let script = Script {
            runtime: runtime.clone(),
        };
        Recorded::new(script, log.clone())
    };
    let mut registry = Registry::new();
    let sizes = [group_max, (group_max / 2).max(1), 1];
    for (kind, size) in KINDS.into_iter().zip(sizes) {
        let inline = Registration::inline(script()).group_max(size).retry(policy);
        registry.register(kind, inline).unwrap();
    }
    let detached = Registration::detached(script())
        .concurrency(3)
        .deadline_ms(2_000)
        .retry(policy);
    registry.register(KINDS[3], detached).unwrap();
    registry
}

impl Driver {
    pub fn new(
        arena: &Arc<Arena>,
        clock: ManualClock,
        (node, seed): (usize, u64),
        group_max: u16,
        record: &Record,
    ) -> Self {
        let owner = record.start(node, &KINDS.map(|kind| kind.0));
        let store = arena.actor_of(Source::Engine, owner);
        let runtime = Runtime::new(
            Arc::new(clock.clone()),
            Arc::new(clock.clone()),
            Arc::new(SequenceEntropy::new(seed)),
        );
        let log = NodeLog(Some((record.clone(), node)));
        let registry = recorded_registry(&runtime, group_max, policy(), &log);
        let as_store = Arc::clone(&store) as Arc<dyn NamespaceStore>;
        Self {
            engine: Engine::new(as_store, runtime, registry),
            arena: Arc::clone(arena),
            node,
            record: record.clone(),
            store,
            clock,
            cautious_until_ms: None,
            group_max,
        }
    }

    pub fn tick(
        &self,
        partition: &Partition,
        budget: TickBudget,
        by_wakes: bool,
    ) -> impl Future<Output = Ended> + use<> {
        let (engine, store) = (self.engine.clone(), Arc::clone(&self.store));
        let arena = Arc::clone(&self.arena);
        let (node, record, clock) = (self.node, self.record.clone(), self.clock.clone());
        let (partition, cautious_until_ms) = (partition.clone(), self.cautious_until_ms);
        async move {
            let paused = Paused::now(&arena, &partition);
            let mut kinds: KindSet = engine.slots().runnable(&engine.registry().kinds());
            kinds.insert(TimerKind::INVALID);
            let mut wakes = Vec::new();
            if by_wakes {
                let now_ms = engine.runtime().now_ms();
                let Ok(page) = store.due_wakes(&kinds, now_ms, None, 64).await else {
                    return Ended::Other;
                };
                wakes = page.wakes.iter().map(lane_wake).collect();
                if wakes.is_empty() {
                    return Ended::Other;
                }
            }
            let request = TickRequest {
                partition: &partition,
                wakes: by_wakes.then_some(wakes.as_slice()),
                cautious_until_ms,
            };
            let turn = record.next_turn();
            let (began_ms, began) = (engine.runtime().now_ms(), clock.monotonic());
            let mut state = engine.start_tick(budget);
            let tick = engine.tick(request, &mut state).await;
            let elapsed = clock.monotonic() - began;
            let told = What::Tick(dueline_history::Tick::of(
                (node as u16, turn),
                (&partition).into(),
                (began_ms, elapsed.as_millis() as u64),
                &budget,
                &tick.report,
            ));
            record.node(node, told);
            Ended::Tick(tick, budget, paused)
        }
    }
}

fn lane_wake(wake: &Wake) -> LaneWake {
    LaneWake {
        kind: wake.kind,
        at_ms: wake.at_ms,
    }
}
