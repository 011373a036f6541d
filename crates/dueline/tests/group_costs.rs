//! Goal: what a schedule, a fire and a settle cost in calls of the store does not grow unseen.
//! Method: calls are counted, not timed.
#![cfg(test)]
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test that goes wrong here has found something"
)]

mod world;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use dueline::BoxFuture;
use dueline::store::{Batch, NamespaceStore};
use dueline::timers::{
    DetachedHandler, DueTimer, Fired, HandlerError, Policy, Registration, TickBudget, Timer,
    TimerCtx, TimerHandler, Timers,
};
use dueline_testkit::{block_on, handler};
use world::{A, B, World};

/// Row reads and commits of what this does.
fn cost(world: &World, what: impl FnOnce()) -> (u64, u64) {
    let earlier = world.store.counts();
    what();
    let since = world.store.counts() - earlier;
    (since.row_reads(), since.commits())
}

fn done() -> impl TimerHandler {
    handler(|_, timer| {
        let effect = Batch::new().put(format!("seen/{}", timer.generation()), "");
        Box::pin(async { Ok(Fired::Done(effect)) })
    })
}

fn put_64(world: &World, named: bool) {
    for number in 0..64 {
        let reference = number.to_string();
        if named {
            world.put_named(A, &reference, 900);
        } else {
            world.put(A, &reference, 900);
        }
    }
}

/// One tick by the stored wakes over 64 due timers that end in this way.
fn page_of_64(handler: impl TimerHandler + 'static, group_max: u16, named: bool) -> (u64, u64) {
    let world = World::at(1_000);
    let registration = Registration::inline(handler).group_max(group_max);
    let engine = world.engine([(A, registration)]);
    put_64(&world, named);
    let cost = cost(&world, || {
        let tick = world.woken_tick(&engine, TickBudget::unlimited());
        assert_eq!(tick.report.total.progressed(), 64, "{:?}", tick.report);
        assert_eq!(tick.next_wakes.len(), 1, "the settle ran");
    });
    world.check_names();
    cost
}

#[test]
fn a_page_of_64_timers_takes_one_read_and_one_commit_with_its_settle() {
    assert_eq!(page_of_64(done(), 64, false), (1, 1));
    assert_eq!(page_of_64(done(), 64, true), (1, 1), "names cost no call");
}

#[test]
fn a_page_of_64_failures_takes_one_read_and_one_commit() {
    let fails = handler(|_, _| Box::pin(async { Err(HandlerError::new("no")) }));
    assert_eq!(page_of_64(fails, 64, true), (1, 1));
}

#[test]
fn a_page_of_64_reschedules_takes_one_read_and_one_commit() {
    let again = handler(|_, timer| {
        let again = Fired::Reschedule {
            due_at_ms: timer.due_at_ms() + 5_000,
            payload: timer.payload().clone(),
            batch: Batch::new(),
        };
        Box::pin(async { Ok(again) })
    });
    assert_eq!(page_of_64(again, 64, true), (1, 1));
}

#[test]
fn a_page_of_64_deaths_takes_one_read_and_one_commit() {
    let dies = handler(|_, _| {
        let dead = Fired::Dead {
            reason: "over".to_owned(),
            batch: Batch::new(),
        };
        Box::pin(async { Ok(dead) })
    });
    assert_eq!(page_of_64(dies, 64, true), (1, 1));
}

#[test]
fn timers_one_by_one_take_a_commit_each_and_the_last_carries_the_settle() {
    assert_eq!(page_of_64(done(), 1, false), (1, 64));
    assert_eq!(page_of_64(done(), 16, false), (1, 4));
}

#[test]
fn a_second_page_takes_one_read_more() {
    let world = World::at(1_000);
    let engine = world.engine([(A, Registration::inline(done()).group_max(64))]);
    put_64(&world, false);
    put_64(&world, false);
    let cost = cost(&world, || {
        let tick = world.woken_tick(&engine, TickBudget::unlimited());
        assert_eq!(tick.report.total.fired, 128);
    });
    assert_eq!(cost, (2, 2));
}

#[test]
fn two_lanes_share_one_read_and_one_commit() {
    let world = World::at(1_000);
    let engine = world.engine([
        (A, Registration::inline(done()).group_max(64)),
        (B, Registration::inline(done()).group_max(64)),
    ]);
    world.put(A, "a", 900);
    world.put(B, "b", 900);
    let cost = cost(&world, || {
        let tick = world.woken_tick(&engine, TickBudget::unlimited());
        assert_eq!(tick.report.total.fired, 2);
    });
    assert_eq!(cost, (1, 1));
}

#[test]
fn a_spurious_wake_takes_one_read_and_one_commit() {
    let world = World::at(1_000);
    let engine = world.engine([(A, Registration::inline(done()))]);
    let key = world.put(A, "a", 900);
    world.commit(Batch::new().delete(key));
    let cost = cost(&world, || {
        let tick = world.woken_tick(&engine, TickBudget::unlimited());
        assert_eq!(tick.next_wakes, [(A, None)]);
    });
    assert_eq!(cost, (1, 1));
}

#[test]
fn a_tick_without_wakes_reads_once_more_for_its_report() {
    let world = World::at(1_000);
    let engine = world.engine([
        (A, Registration::inline(done()).group_max(64)),
        (B, Registration::inline(done())),
    ]);
    world.put(A, "a", 900);
    let cost = cost(&world, || {
        assert_eq!(world.tick(&engine).report.total.fired, 1);
    });
    assert_eq!(cost, (2, 1));
}

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

#[test]
fn detached_timers_share_the_commit_of_their_claims_and_settle_in_one_each() {
    let world = World::at(1_000);
    let engine = world.engine([(A, Registration::detached(Calls).concurrency(64))]);
    put_64(&world, true);
    let mut calls = Vec::new();
    let claims = cost(&world, || {
        calls = world.woken_tick(&engine, TickBudget::unlimited()).calls;
    });
    assert_eq!((calls.len(), claims), (64, (1, 1)));
    let settles = cost(&world, || {
        for call in calls {
            let counts = block_on(async { engine.settle(call.run().await).await });
            assert_eq!(counts.fired, 1);
        }
    });
    assert_eq!(settles, (0, 64));
    assert!(world.memory.wakes().is_empty());
    world.check_names();
}

#[test]
fn a_cautious_run_takes_a_commit_for_its_claim_and_one_for_its_end() {
    let world = World::at(1_000);
    let engine = world.engine([(A, Registration::inline(done()).group_max(64))]);
    world.store.set_unclean_opened_at_ms(Some(1_000));
    for reference in ["1", "2", "3"] {
        world.put(A, reference, 900);
    }
    let cost = cost(&world, || {
        let tick = world.woken_tick(&engine, TickBudget::unlimited());
        assert_eq!(tick.report.total.fired, 3);
    });
    assert_eq!(cost, (1, 6));
}

#[test]
fn a_schedule_takes_one_commit_and_what_it_meets_decides_the_rest() {
    let world = World::at(1_000);
    let store = Arc::clone(&world.store) as Arc<dyn NamespaceStore>;
    let timers = Timers::new(store, world.runtime.clone());
    let schedule = |timer: Timer, policy| {
        cost(&world, || {
            block_on(timers.schedule(&world.partition, timer, policy)).unwrap();
        })
    };
    let anonymous = || Timer::new(A, "x").due_at(2_000);
    let named = || anonymous().named();
    assert_eq!(schedule(anonymous(), Policy::Replace), (0, 1), "anonymous");
    assert_eq!(schedule(named(), Policy::Replace), (0, 1), "a new name");
    assert_eq!(schedule(named(), Policy::Replace), (0, 2), "replaced");
    assert_eq!(schedule(named(), Policy::IfAbsent), (0, 1), "kept");
    assert_eq!(schedule(named(), Policy::KeepEarliest), (1, 2), "kicked");
    let cancel = cost(&world, || {
        let name = "x".into();
        let done = block_on(timers.cancel(&world.partition, A, &name, None));
        assert!(done.unwrap().is_some());
    });
    assert_eq!(cancel, (1, 1), "cancelled");
}

#[test]
fn a_timer_that_an_earlier_member_of_the_group_removes_is_not_run() {
    let world = World::at(1_000);
    let runs = Arc::new(AtomicU64::new(0));
    let victim = world.put(A, "victim", 901);
    let counted = Arc::clone(&runs);
    let removes = handler(move |_, _| {
        counted.fetch_add(1, Ordering::Relaxed);
        let batch = Batch::new().delete(victim.clone());
        Box::pin(async { Ok(Fired::Done(batch)) })
    });
    let engine = world.engine([(A, Registration::inline(removes).group_max(64))]);
    world.put(A, "first", 900);
    let cost = cost(&world, || {
        let report = world.woken_tick(&engine, TickBudget::unlimited()).report;
        assert_eq!((report.total.fired, report.total.raced), (1, 1));
    });
    assert_eq!((runs.load(Ordering::Relaxed), cost), (1, (1, 1)));
}
