//! Goal: a lane that has to wait for a slot takes nothing from the others, a cautious run that waits
//! for a later time ends, a slow commit counts against nobody's share of time, and a commit in doubt changes nothing about what a tick may fire.
//! Method: the smallest budgets, guards of time, an answer that is lost.
#![cfg(test)]
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test that goes wrong here has found something"
)]

mod world;

use std::sync::{Arc, Mutex};

use dueline::BoxFuture;
use dueline::rows::TimerKey;
use dueline::store::Batch;
use dueline::timers::{
    DetachedHandler, DueTimer, Fired, HandlerError, Registration, TickBudget, TickRequest,
    TimerCtx, TimerHandler,
};
use dueline_testkit::{CommitFault, block_on, commit, handler};
use world::{A, B, World};

#[derive(Debug)]
struct Calls;

impl DetachedHandler for Calls {
    type Output = ();

    fn call<'a>(
        &'a self,
        _ctx: &'a TimerCtx<'a>,
        _timer: &'a DueTimer,
    ) -> BoxFuture<'a, Result<(), HandlerError>> {
        Box::pin(async { Ok(()) })
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

fn one_fire() -> TickBudget {
    TickBudget {
        max_fired: 1,
        ..TickBudget::default()
    }
}

fn done() -> impl TimerHandler {
    handler(|_, _| Box::pin(async { Ok(Fired::Done(Batch::new())) }))
}

#[test]
fn a_lane_that_waits_for_a_slot_takes_no_fire_from_another() {
    let world = World::at(1_000);
    let engine = world.engine([
        (A, Registration::detached(Calls).concurrency(1)),
        (B, Registration::inline(done())),
    ]);
    world.put(A, "first", 800);
    world.put(A, "second", 801);
    world.put(B, "b", 900);
    let first = world.tick_with(&engine, one_fire());
    assert_eq!(first.calls.len(), 1);
    let second = world.tick_with(&engine, one_fire());
    assert_eq!(second.report.per_kind[&B].fired, 1, "{:?}", second.report);
    drop(first.calls);
    let third = world.tick_with(&engine, one_fire());
    assert_eq!(third.report.total.claimed, 1, "the slot is free again");
}

/// Groups of several found this and timers one by one did not: the claim still held the last slot
/// when its lane was closed for want of one.
#[test]
fn a_claim_that_loses_its_timer_gives_its_slot_to_the_next_in_the_same_tick() {
    let world = World::at(1_000);
    let engine = world.engine([(A, Registration::detached(Calls).concurrency(1))]);
    let first = world.put(A, "first", 800);
    world.put(A, "second", 801);
    world.store.before_commit(1, move |store, partition, _| {
        commit(store, partition, Batch::new().delete(first));
    });
    let tick = world.tick_with(&engine, TickBudget::default());
    let counts = tick.report.total;
    assert_eq!((counts.raced, counts.claimed, counts.deferred), (1, 1, 0));
    assert_eq!(tick.calls[0].claim().timer().reference(), "second");
}

#[test]
fn a_cautious_run_whose_handler_waits_for_a_later_time_fails_instead_of_staying_claimed() {
    let world = World::at(1_000);
    let waits = handler(|ctx, _| {
        let later = dueline::store::Precondition::NotBefore(ctx.now_ms() + 3_600_000);
        Box::pin(async { Ok(Fired::Done(Batch::new().require(later).put("x", ""))) })
    });
    let engine = world.engine([(A, Registration::inline(waits))]);
    world.put(A, "a", 900);
    let request = TickRequest {
        partition: &world.partition,
        wakes: None,
        cautious_until_ms: Some(2_000),
    };
    let mut state = engine.start_tick(TickBudget::default());
    let tick = block_on(engine.tick(request, &mut state));
    assert_eq!(tick.report.total.failed, 1, "{:?}", tick.report);
    let (_, row) = world.timers().pop().unwrap();
    assert!(!row.header.flags.claimed);
    assert_eq!(row.header.attempt, 1);
}

#[test]
fn a_timer_put_by_a_commit_in_doubt_waits_for_the_next_tick() {
    let world = World::at(1_000);
    let seen = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&seen);
    let notes = handler(move |_, timer| {
        noted.lock().unwrap().push(timer.reference().clone());
        Box::pin(async { Ok(Fired::Done(Batch::new())) })
    });
    let puts = handler(|_, _| {
        let key = TimerKey {
            kind: B,
            due_ms: 960,
            generation: 7_777,
            reference: "new".into(),
        };
        let row = dueline::rows::TimerRow::default();
        let batch = Batch::new().put(key.encode(), row.encode());
        Box::pin(async { Ok(Fired::Done(batch)) })
    });
    let engine = world.engine([
        (A, Registration::inline(puts)),
        (B, Registration::inline(notes).group_max(64)),
    ]);
    world.put(A, "puts", 900);
    // More than a page, so that the lane is read on behind the commit in doubt.
    for number in 0..70 {
        world.put(B, &number.to_string(), 950);
    }
    world.store.fail_commit(1, CommitFault::AnswerLost);
    let tick = world.tick_with(&engine, TickBudget::unlimited());
    assert_eq!(tick.report.total.unknown_outcome, 1);
    assert_eq!(seen.lock().unwrap().len(), 70, "the new one waits");
    let next = world.tick_with(&engine, TickBudget::unlimited());
    assert_eq!(next.report.total.fired, 1);
    assert_eq!(seen.lock().unwrap()[70], "new");
}

#[test]
fn a_slow_commit_of_others_is_not_counted_as_the_time_of_a_slow_handler() {
    let world = World::at(1_000);
    // Waits once for something else than the store, so that the group before it commits first.
    let slow = handler(|_, _| {
        Box::pin(async {
            let mut waited = false;
            std::future::poll_fn(|context| {
                if std::mem::replace(&mut waited, true) {
                    return std::task::Poll::Ready(());
                }
                context.waker().wake_by_ref();
                std::task::Poll::Pending
            })
            .await;
            Ok(Fired::Done(Batch::new()))
        })
    });
    let engine = world.engine([
        (A, Registration::inline(done()).group_max(64)),
        (B, Registration::inline(slow).group_max(64)),
    ]);
    world.put(A, "quick", 900);
    world.put(B, "slow", 901);
    world.put(B, "slow too", 902);
    let clock = world.clock.clone();
    world
        .store
        .before_commit(1, move |_, _, _| clock.advance_ms(900));
    let budget = TickBudget {
        max_elapsed_ms: 1_000,
        ..TickBudget::default()
    };
    let report = world.tick_with(&engine, budget).report;
    assert_eq!(report.total.fired, 3, "{report:?}");
}
