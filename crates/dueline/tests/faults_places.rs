//! Goal: a move of the engine never writes over another row: it goes a millisecond later.
//! Method: a row lies exactly where the timer is about to go.
#![cfg(test)]
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test that goes wrong here has found something"
)]

mod world;

use dueline::BoxFuture;
use dueline::rows::{DeadKey, TimerKey};
use dueline::store::{Batch, Key, StoreErrorKind};
use dueline::timers::{
    DetachedHandler, DueTimer, Engine, Fired, HandlerError, Registration, RetryPolicy, Tick,
    TickBudget, TickRequest, TimerCtx, TimerHandler,
};
use dueline_testkit::{CommitFault, block_on, handler};
use world::{A, World};

const NOW_MS: u64 = 1_000;
const RETRY_AT_MS: u64 = NOW_MS + 5_000;
const CLAIM_ENDS_MS: u64 = NOW_MS + 30_000 + 10_000;

fn retry() -> RetryPolicy {
    RetryPolicy {
        jitter_percent: 0,
        ..RetryPolicy::default()
    }
}

fn fails() -> impl TimerHandler {
    handler(|_, _| Box::pin(async { Err(HandlerError::new("no")) }))
}

fn done() -> impl TimerHandler {
    handler(|_, _| Box::pin(async { Ok(Fired::Done(Batch::new())) }))
}

fn dies() -> impl TimerHandler {
    handler(|_, _| {
        let dead = Fired::Dead {
            reason: "over".to_owned(),
            batch: Batch::new(),
        };
        Box::pin(async { Ok(dead) })
    })
}

#[derive(Debug)]
struct FailingCalls;

impl DetachedHandler for FailingCalls {
    type Output = ();

    fn call<'a>(
        &'a self,
        _ctx: &'a TimerCtx<'a>,
        _timer: &'a DueTimer,
    ) -> BoxFuture<'a, Result<(), HandlerError>> {
        Box::pin(async { Err(HandlerError::new("no")) })
    }

    fn settle<'a>(
        &'a self,
        _ctx: &'a TimerCtx<'a>,
        _timer: &'a DueTimer,
        (): &'a (),
    ) -> BoxFuture<'a, Result<Fired, HandlerError>> {
        Box::pin(async { Ok(Fired::Done(Batch::new())) })
    }
}

/// A named due timer of generation 1 and a neighbour that commits with it.
fn two_timers(registration: Registration) -> (World, Engine) {
    let world = World::at(NOW_MS as i64);
    let engine = world.engine([(A, registration.retry(retry()))]);
    world.put_named(A, "x", 900);
    world.put(A, "neighbour", 901);
    (world, engine)
}

fn place(due_ms: u64) -> Key {
    let key = TimerKey {
        kind: A,
        due_ms,
        generation: 1,
        reference: "x".into(),
    };
    key.encode()
}

fn occupy(world: &World, place: &Key) {
    world.commit(Batch::new().put(place.clone(), "in the way"));
}

fn assert_went_behind(world: &World, due_ms: u64) {
    assert_eq!(world.get(place(due_ms)).unwrap(), "in the way");
    assert!(world.get(place(due_ms + 1)).is_some());
    let name = dueline::rows::NameKey {
        kind: A,
        reference: "x".into(),
    };
    let row = dueline::rows::NameRow::decode(&world.get(name.encode()).unwrap()).unwrap();
    assert_eq!(row.due_ms, due_ms + 1, "its name says so");
}

fn tick(world: &World, engine: &Engine, cautious: bool) -> Tick {
    let request = TickRequest {
        partition: &world.partition,
        wakes: None,
        cautious_until_ms: cautious.then_some(u64::MAX),
    };
    let mut state = engine.start_tick(TickBudget::default());
    block_on(engine.tick(request, &mut state))
}

#[test]
fn a_retry_goes_behind_a_row_that_lies_in_its_place() {
    for group_max in [1, 64] {
        let (world, engine) = two_timers(Registration::inline(fails()).group_max(group_max));
        occupy(&world, &place(RETRY_AT_MS));
        let report = tick(&world, &engine, false).report;
        assert_eq!((report.total.failed, report.total.raced), (2, 0));
        assert_went_behind(&world, RETRY_AT_MS);
    }
}

#[test]
fn a_timer_set_back_by_a_full_store_goes_behind_a_row_that_lies_in_its_place() {
    let (world, engine) = two_timers(Registration::inline(done()));
    occupy(&world, &place(RETRY_AT_MS));
    world
        .store
        .fail_commit(1, CommitFault::NotWritten(StoreErrorKind::Full));
    let report = tick(&world, &engine, false).report;
    assert_eq!((report.total.failed, report.total.fired), (1, 1));
    assert_went_behind(&world, RETRY_AT_MS);
}

#[test]
fn a_dead_timer_goes_behind_a_row_that_lies_in_its_place() {
    let (world, engine) = two_timers(Registration::inline(dies()).group_max(64));
    let dead_at = |dead_at_ms| {
        let key = DeadKey {
            kind: A,
            dead_at_ms,
            generation: 1,
            reference: "x".into(),
        };
        key.encode()
    };
    occupy(&world, &dead_at(NOW_MS));
    assert_eq!(tick(&world, &engine, false).report.total.dead, 2);
    assert_eq!(world.get(dead_at(NOW_MS)).unwrap(), "in the way");
    assert!(world.get(dead_at(NOW_MS + 1)).is_some());
}

#[test]
fn a_claim_and_the_retry_of_its_call_go_behind_rows_that_lie_in_their_places() {
    let (world, engine) = two_timers(Registration::detached(FailingCalls));
    occupy(&world, &place(CLAIM_ENDS_MS));
    occupy(&world, &place(RETRY_AT_MS));
    let tick = tick(&world, &engine, false);
    assert_eq!(tick.report.total.claimed, 2);
    assert_went_behind(&world, CLAIM_ENDS_MS);
    for call in tick.calls {
        let counts = block_on(async { engine.settle(call.run().await).await });
        assert_eq!(counts.failed, 1);
    }
    assert_went_behind(&world, RETRY_AT_MS);
    assert!(world.get(place(CLAIM_ENDS_MS + 1)).is_none());
}

#[test]
fn a_claim_given_back_goes_behind_a_row_that_lies_in_its_place() {
    let (world, engine) = two_timers(Registration::detached(FailingCalls));
    let calls = tick(&world, &engine, false).calls;
    occupy(&world, &place(NOW_MS));
    for call in calls {
        let claim = call.claim().clone();
        drop(call);
        assert!(block_on(engine.release(&claim)).unwrap());
    }
    assert_went_behind(&world, NOW_MS);
}

#[test]
fn a_cautious_claim_goes_behind_a_row_that_lies_in_its_place() {
    let inline_claim_ends_ms = NOW_MS + 5_000 + 10_000;
    let (world, engine) = two_timers(Registration::inline(done()));
    occupy(&world, &place(inline_claim_ends_ms));
    let report = tick(&world, &engine, true).report;
    assert_eq!(report.total.fired, 2);
    let kept = world.get(place(inline_claim_ends_ms)).unwrap();
    assert_eq!(kept, "in the way");
    assert!(world.get(place(inline_claim_ends_ms + 1)).is_none());
}
