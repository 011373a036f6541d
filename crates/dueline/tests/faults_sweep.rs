//! Goal: a store call that fails, is in doubt or never returns costs no timer, no effect and no
//! attempt, whichever call it is.
//! Method: one script of verbs, ticks and calls; its n-th store call meets a mishap, for every n
//! until the script ends before it. Every commit is checked, and at the end everything has fired.
#![cfg(test)]
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test that goes wrong here has found something"
)]

mod model;

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use dueline::Bytes;
use dueline::rows::TimerKey;
use dueline::runtime::{Clock, Runtime};
use dueline::store::{Batch, LaneWake, NamespaceStore, Partition, WakeStore};
use dueline::timers::{
    Engine, Policy, RetryPolicy, Tick, TickBudget, TickRequest, Timer, TimerKind, Timers,
};
use dueline_testkit::model::script::{KINDS, Op, payload};
use dueline_testkit::model::{Arena, Mishap, Occurrence, Source};
use dueline_testkit::{ManualClock, SequenceEntropy};
use model::driver::registry;

const START_MS: u64 = 1_000_000;
const MISHAPS: [Mishap; 7] = [
    Mishap::Unavailable,
    Mishap::Full,
    Mishap::UnknownWritten,
    Mishap::UnknownNotWritten,
    Mishap::UnknownLate,
    Mishap::CrashBefore,
    Mishap::CrashAfter,
];

struct Sweep {
    arena: Arc<Arena>,
    clock: ManualClock,
    partition: Partition,
    timers: Timers,
    engine: Engine,
    cautious_until_ms: Option<u64>,
    /// Schedulings that were acknowledged and not taken back.
    acknowledged: Vec<Occurrence>,
    cancelled: Vec<Occurrence>,
    seed: u64,
}

fn runtime(clock: &ManualClock, seed: u64) -> Runtime {
    Runtime::new(
        Arc::new(clock.clone()),
        Arc::new(clock.clone()),
        Arc::new(SequenceEntropy::new(seed)),
    )
}

fn engine(arena: &Arc<Arena>, clock: &ManualClock, seed: u64) -> Engine {
    let store = arena.actor(Source::Engine) as Arc<dyn NamespaceStore>;
    let runtime = runtime(clock, seed);
    let policy = RetryPolicy {
        attempts_max: Some(4),
        initial_ms: 400,
        max_ms: 3_000,
        jitter_percent: 20,
    };
    let registry = registry(&runtime, 8, policy);
    Engine::new(store, runtime, registry)
}

impl Sweep {
    fn new() -> Self {
        let clock = ManualClock::new(START_MS as i64);
        let arena = Arena::new(&clock);
        let store = arena.actor(Source::User) as Arc<dyn NamespaceStore>;
        Self {
            timers: Timers::new(store, runtime(&clock, 0)),
            engine: engine(&arena, &clock, 1),
            partition: Partition::new("p").unwrap(),
            arena,
            clock,
            cautious_until_ms: None,
            acknowledged: Vec::new(),
            cancelled: Vec::new(),
            seed: 1,
        }
    }

    /// Runs one thing to its end; `None` if the process died under it. Then another one takes over,
    /// after the claims of the first have ended.
    fn run<T>(&mut self, what: impl Future<Output = T>) -> Option<T> {
        let ended = {
            let mut what = pin!(what);
            loop {
                let mut context = Context::from_waker(Waker::noop());
                match what.as_mut().poll(&mut context) {
                    Poll::Ready(output) => break Some(output),
                    Poll::Pending if self.arena.has_crashed() => break None,
                    // It gave way, or it sleeps until the store may answer again.
                    Poll::Pending if self.clock.sleepers() > 0 => self.clock.advance_ms(100),
                    Poll::Pending => {}
                }
            }
        };
        if ended.is_none() {
            self.arena.heal();
            self.seed += 1;
            self.engine = engine(&self.arena, &self.clock, self.seed);
            self.clock.advance_ms(15_000);
            self.cautious_until_ms = Some(self.clock.wall_ms() as u64);
        }
        ended
    }

    fn schedule(&mut self, kind: TimerKind, reference: &'static str, named: bool, what: Bytes) {
        let now_ms = self.clock.wall_ms() as u64;
        let mut timer = Timer::new(kind, reference).due_at(now_ms - 5).payload(what);
        if named {
            timer = timer.named();
        }
        let (timers, partition) = (self.timers.clone(), self.partition.clone());
        let made =
            self.run(async move { timers.schedule(&partition, timer, Policy::Replace).await });
        if let Some(Ok(made)) = made {
            let reference = Bytes::from_static(reference.as_bytes());
            self.acknowledged
                .retain(|old| !(named && old.kind == kind && old.reference == reference));
            self.acknowledged.push(Occurrence {
                kind,
                generation: made.generation,
                reference,
            });
        }
    }

    fn cancel(&mut self, kind: TimerKind, reference: &'static str) {
        let reference = Bytes::from_static(reference.as_bytes());
        let (timers, partition, name) = (
            self.timers.clone(),
            self.partition.clone(),
            reference.clone(),
        );
        let done = self.run(async move { timers.cancel(&partition, kind, &name, None).await });
        // Acknowledged or not, it may be gone.
        self.acknowledged
            .retain(|old| old.kind != kind || old.reference != reference);
        if let Some(Ok(Some(cancelled))) = done {
            let occurrence = Occurrence {
                kind,
                generation: cancelled.generation,
                reference,
            };
            let ledger = self.arena.ledger();
            assert!(!ledger.has_effect(&self.partition, &occurrence));
            drop(ledger);
            self.cancelled.push(occurrence);
        }
    }

    /// One tick by the stored wakes, and its calls.
    fn tick(&mut self) {
        let (engine, partition) = (self.engine.clone(), self.partition.clone());
        let store = self.arena.actor(Source::Engine);
        let cautious_until_ms = self.cautious_until_ms;
        let tick = self.run(async move {
            let now_ms = engine.runtime().now_ms();
            let mut kinds = engine.registry().kinds();
            kinds.insert(TimerKind::INVALID);
            let Ok(page) = store.due_wakes(&kinds, now_ms, None, 64).await else {
                return Tick::default();
            };
            let wakes: Vec<LaneWake> = page
                .wakes
                .iter()
                .map(|wake| LaneWake {
                    kind: wake.kind,
                    at_ms: wake.at_ms,
                })
                .collect();
            let request = TickRequest {
                partition: &partition,
                wakes: Some(&wakes),
                cautious_until_ms,
            };
            let mut state = engine.start_tick(TickBudget::default());
            engine.tick(request, &mut state).await
        });
        for call in tick.unwrap_or_default().calls {
            let engine = self.engine.clone();
            let settled = self.run(async move { engine.settle(call.run().await).await });
            if settled.is_none() {
                // The other calls died with the process.
                break;
            }
        }
    }

    fn script(&mut self) {
        let [a, b, c, calls] = KINDS;
        let of = |op, times| payload(op, times, KINDS[0], "victim");
        self.schedule(a, "victim", true, of(Op::Log, 0));
        self.schedule(a, "fails", true, of(Op::Fail, 1));
        for reference in ["1", "2", "3"] {
            self.schedule(a, reference, false, of(Op::Log, 0));
        }
        self.schedule(b, "again", true, of(Op::Reschedule, 2));
        self.schedule(b, "dead", true, of(Op::Dead, 0));
        self.schedule(b, "counts", false, of(Op::Count, 1));
        self.schedule(c, "puts", false, of(Op::Put, 1));
        self.schedule(calls, "call", true, of(Op::Log, 0));
        self.schedule(calls, "call", false, of(Op::Log, 0));
        self.cancel(a, "victim");
        self.tick();
        self.schedule(b, "again", true, of(Op::Cut, 0));
        self.schedule(calls, "fails", true, of(Op::Fail, 1));
        self.clock.advance_ms(600);
        self.tick();
        self.cancel(calls, "call");
        self.clock.advance_ms(600);
        self.tick();
    }

    /// Rows that no verb makes: a key and a header that do not decode.
    fn put_malformed_rows(&mut self) {
        let short = TimerKey::lane_due_end(KINDS[0], START_MS - 100);
        let headless = TimerKey {
            kind: KINDS[1],
            due_ms: START_MS - 7,
            generation: 1,
            reference: "headless".into(),
        };
        let batch = Batch::new()
            .put(short, "short")
            .put(headless.encode(), "no header");
        let (store, partition) = (self.arena.actor(Source::User), self.partition.clone());
        let done = self.run(async move { store.apply(&partition, batch).await });
        assert!(done.unwrap().unwrap().is_committed());
    }

    /// Works off what is left by its wakes, and checks that nothing is missing.
    fn finish(&mut self, which: &str) {
        while self.arena.land_late() {}
        for _ in 0..200 {
            let Some(first) = self.arena.memory().wakes().into_iter().next() else {
                break;
            };
            let now_ms = self.clock.wall_ms() as u64;
            self.clock.advance_ms(first.at_ms.saturating_sub(now_ms));
            self.tick();
        }
        let ledger = self.arena.ledger();
        assert!(
            ledger.broken().is_empty(),
            "{which}: {:#?}",
            ledger.broken()
        );
        let left = ledger.timers(&self.partition);
        assert!(left.is_empty(), "{which}: left at the end: {left:?}");
        for occurrence in &self.acknowledged {
            let dead = occurrence.reference == "dead";
            let fired = ledger.has_effect(&self.partition, occurrence);
            assert!(fired != dead, "{which}: {occurrence:?} fired: {fired}");
        }
        for occurrence in &self.cancelled {
            let fired = ledger.has_effect(&self.partition, occurrence);
            assert!(!fired, "{which}: {occurrence:?} was cancelled and fired");
        }
    }
}

/// How many calls the script makes.
fn sweep(mishap: Mishap, spared: usize) -> u64 {
    for nth in 1..1_000 {
        let mut sweep = Sweep::new();
        sweep.put_malformed_rows();
        sweep.arena.fail_call(nth, spared, mishap);
        sweep.script();
        let unreached = sweep.arena.heal();
        sweep.finish(&format!(
            "call {nth} met {mishap:?}, {spared} batches spared"
        ));
        let all = ["fails", "1", "2", "3", "dead", "counts", "puts"];
        if unreached && !sweep.arena.has_crashed() {
            for reference in all {
                let known = |it: &Occurrence| it.reference == reference;
                assert!(sweep.acknowledged.iter().any(known), "{reference}");
            }
            return nth;
        }
    }
    panic!("the script never ends");
}

#[test]
fn a_fault_at_any_store_call_loses_no_timer_and_repeats_no_effect() {
    for mishap in MISHAPS.into_iter().take(5) {
        assert!(sweep(mishap, 0) > 40);
    }
}

#[test]
fn a_fault_in_the_middle_of_any_group_loses_no_timer_and_repeats_no_effect() {
    for mishap in MISHAPS.into_iter().take(5) {
        for spared in [1, 3] {
            assert!(sweep(mishap, spared) > 40);
        }
    }
}

#[test]
fn a_crash_at_any_store_call_loses_no_timer_and_repeats_no_effect() {
    for mishap in MISHAPS.into_iter().skip(5) {
        assert!(sweep(mishap, 0) > 40);
    }
}
