//! A process of a history, and its sink.

use std::future::pending;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dueline::BoxFuture;
use dueline::kinds::outcome_delivery::{
    Delivery, DeliveryOptions, OUTCOME_DELIVERY, OutboxName, OutcomeDelivery, Relay, Sink,
    SinkError,
};
use dueline::runtime::{Clock, Runtime};
use dueline::store::{LaneWake, NamespaceStore, WakeStore};
use dueline::timers::{Engine, KindSet, Registry, RetryPolicy, Tick, TickBudget, TickRequest};
use dueline_testkit::model::{ActorStore, Arena, Random, Source};
use dueline_testkit::{ManualClock, SequenceEntropy};

use super::judge::{FERRY, Judge, MAIL, source};

/// Shared by everything in a history.
pub(super) struct Shared<T>(Arc<Mutex<T>>);

impl<T> Clone for Shared<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> Shared<T> {
    pub(super) fn new(inner: T) -> Self {
        Self(Arc::new(Mutex::new(inner)))
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How often a sink does not take what it is sent, in percent; 0 at the end.
pub(super) struct Mood {
    pub(super) random: Random,
    pub(super) fails_percent: u64,
}

#[derive(Clone)]
pub(super) struct Moody {
    pub(super) judge: Shared<Judge>,
    pub(super) mood: Shared<Mood>,
}

impl Sink for Moody {
    fn deliver<'a>(&'a self, delivery: &'a Delivery) -> BoxFuture<'a, Result<(), SinkError>> {
        let mut mood = self.mood.lock();
        let percent = mood.fails_percent;
        let fails = mood.random.chance(percent);
        let what = mood.random.below(10);
        drop(mood);
        // One that hangs may have taken it all the same.
        let hangs = fails && what < 2;
        self.judge.lock().called(delivery, !fails || hangs);
        Box::pin(async move {
            match what {
                _ if hangs => pending().await,
                _ if !fails => Ok(()),
                2 => Err(SinkError::refused("never")),
                3 | 4 => Err(SinkError::unavailable("not now").retry_after_ms(3_000)),
                _ => Err(SinkError::failed("no")),
            }
        })
    }
}

/// One process: an engine, its handle of the store and its clock.
pub(super) struct Node {
    store: Arc<ActorStore>,
    pub(super) clock: ManualClock,
    pub(super) engine: Engine,
    pub(super) cautious_until_ms: Option<u64>,
}

fn runtime(clock: &ManualClock, seed: u64) -> Runtime {
    Runtime::new(
        Arc::new(clock.clone()),
        Arc::new(clock.clone()),
        Arc::new(SequenceEntropy::new(seed)),
    )
}

impl Node {
    pub(super) fn new(arena: &Arc<Arena>, clock: ManualClock, seed: u64, sink: &Moody) -> Self {
        let mut random = Random::new(seed);
        let store = arena.actor(Source::Engine);
        let runtime = runtime(&clock, random.next_u64());
        let options = DeliveryOptions::new()
            .rows_max(random.pick(&[1, 2, 3, 80]))
            .call_deadline_ms(700)
            .run_budget_ms(random.pick(&[0, 1_000, 10_000]))
            .retry(RetryPolicy {
                attempts_max: Some(4),
                initial_ms: 300,
                max_ms: 4_000,
                jitter_percent: 20,
            });
        let as_store = Arc::clone(&store) as Arc<dyn NamespaceStore>;
        let delivery = OutcomeDelivery::new(runtime.clone())
            .sink_with(OutboxName::new(MAIL).unwrap(), sink.clone(), options)
            .relay(
                OutboxName::new(FERRY).unwrap(),
                Relay::new(Arc::clone(&as_store)).options(options),
            );
        let mut registry = Registry::new();
        registry
            .register(OUTCOME_DELIVERY, delivery.registration())
            .unwrap();
        Self {
            engine: Engine::new(as_store, runtime, registry),
            store,
            clock,
            cautious_until_ms: None,
        }
    }

    /// The verbs of a client with a clock like this node's.
    pub(super) fn client(
        arena: &Arc<Arena>,
        clock: &ManualClock,
        seed: u64,
    ) -> dueline::timers::Timers {
        let store = arena.actor(Source::User) as Arc<dyn NamespaceStore>;
        dueline::timers::Timers::new(store, runtime(clock, seed))
    }

    /// A tick by the stored wakes.
    pub(super) fn tick(&self) -> impl Future<Output = Option<Tick>> + use<> {
        let (engine, store) = (self.engine.clone(), Arc::clone(&self.store));
        let cautious_until_ms = self.cautious_until_ms;
        async move {
            let kinds: KindSet = engine.slots().runnable(&engine.registry().kinds());
            let now_ms = engine.runtime().now_ms();
            let page = store.due_wakes(&kinds, now_ms, None, 64).await.ok()?;
            let partition = source();
            let wakes = page.wakes.iter().filter(|wake| wake.partition == partition);
            let wakes: Vec<LaneWake> = wakes
                .map(|wake| LaneWake {
                    kind: wake.kind,
                    at_ms: wake.at_ms,
                })
                .collect();
            if wakes.is_empty() {
                return None;
            }
            let request = TickRequest {
                partition: &partition,
                wakes: Some(&wakes),
                cautious_until_ms,
            };
            let mut state = engine.start_tick(TickBudget::default());
            Some(engine.tick(request, &mut state).await)
        }
    }

    /// This process has died; another begins in its place.
    pub(super) fn restart(&mut self, arena: &Arc<Arena>, seed: u64, sink: &Moody) {
        let opened_at_ms = u64::try_from(self.clock.wall_ms()).unwrap();
        *self = Self::new(arena, self.clock.clone(), seed, sink);
        self.cautious_until_ms = Some(opened_at_ms);
    }
}
