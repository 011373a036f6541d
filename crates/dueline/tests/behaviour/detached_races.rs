//! Detached calls against other owners, lost answers, and clocks that are apart.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use dueline::store::{Batch, Group, NamespaceStore, StoreErrorKind};
use dueline::timers::{
    ClaimedCall, Engine, Fired, Registration, Registry, RetryPolicy, TickBudget,
};
use dueline_testkit::{CommitFault, ManualClock, ReadCall, block_on, test_runtime};

use crate::world::handlers::{Calls, Seen, complete};
use crate::world::{A, World};

fn claim_one(world: &World, engine: &Engine) -> ClaimedCall {
    let mut calls = world.woken_tick(engine, TickBudget::default()).calls;
    assert_eq!(calls.len(), 1);
    calls.pop().unwrap()
}

/// Puts its attempt under the reference, guarded by nothing: only the claim keeps it to one effect.
fn marks(seen: &Seen) -> Calls {
    Calls::noting(seen).settle(|timer, _| {
        let mark = format!("effect/{}", timer.attempt());
        Ok(Fired::Done(Batch::new().put(mark, "yes")))
    })
}

#[test]
fn a_stale_owner_is_refused_after_another_has_taken_over() {
    for b_commits_first in [true, false] {
        let world = World::at(1_000);
        let seen = Seen::default();
        let a = world.engine([(A, Registration::detached(marks(&seen)))]);
        let b = world.engine([(A, Registration::detached(marks(&seen)))]);
        world.put_named(A, "x", 900);
        let stale = block_on(claim_one(&world, &a).run());
        // A stops past the end of its claim; B takes over.
        world.clock.advance_ms(40_000);
        let taken = claim_one(&world, &b);
        assert_eq!(taken.claim().timer().attempt(), 2);
        let taken = block_on(taken.run());
        if b_commits_first {
            assert_eq!(block_on(b.settle(taken)).fired, 1);
            assert_eq!(block_on(a.settle(stale)).raced, 1);
        } else {
            assert_eq!(block_on(a.settle(stale)).raced, 1);
            assert_eq!(block_on(b.settle(taken)).fired, 1);
        }
        assert_eq!(world.get("effect/1"), None, "A has no effect");
        assert!(world.get("effect/2").is_some());
        assert!(
            world.timers().is_empty(),
            "a completed timer never moves back"
        );
        assert_eq!(world.memory.rows(&world.partition).len(), 1);
    }
}

#[test]
fn a_claim_lost_to_a_replacement_makes_no_call() {
    let world = World::at(1_000);
    let seen = Seen::default();
    let engine = world.engine([(A, Registration::detached(marks(&seen)))]);
    world.put_named(A, "x", 900);
    let other = world.clone();
    world.store.before_commit(1, move |_, _, _| {
        other.kick(A, "x", 950);
    });
    let tick = world.woken_tick(&engine, TickBudget::default());
    assert_eq!((tick.report.total.raced, tick.calls.len()), (1, 0));
    assert_eq!(engine.slots().used(), 0);
    world.check_names();
    let call = claim_one(&world, &engine);
    assert_eq!(block_on(engine.settle(block_on(call.run()))).fired, 1);
}

#[test]
fn a_lost_guard_of_a_settle_is_planned_again_three_times_and_the_call_never() {
    for losses in [1u32, 3, 4] {
        let world = World::at(1_000);
        let seen = Seen::default();
        let planned = Arc::new(AtomicU32::new(0));
        let count = Arc::clone(&planned);
        let calls = Calls::noting(&seen).settle(move |_, _| {
            let batch = Batch::new().put("effect", "yes");
            Ok(Fired::Done(
                if count.fetch_add(1, Ordering::SeqCst) < losses {
                    batch.require_present("gone")
                } else {
                    batch
                },
            ))
        });
        let engine = world.engine([(A, Registration::detached(calls))]);
        world.put_named(A, "x", 900);
        let finished = block_on(claim_one(&world, &engine).run());
        let counts = block_on(engine.settle(finished));
        assert_eq!(seen.len(), 1, "one call");
        assert_eq!(planned.load(Ordering::SeqCst), (losses + 1).min(4));
        let expected = if losses > 3 { (0, 1) } else { (1, 0) };
        assert_eq!((counts.fired, counts.failed), expected, "{losses} losses");
        assert_eq!(world.get("effect").is_some(), losses <= 3);
        if losses > 3 {
            assert_eq!(world.timers()[0].1.header.attempt, 1);
        }
        world.check_names();
    }
}

#[test]
fn a_claim_whose_answer_was_lost_is_not_run_and_comes_back_when_the_claim_ends() {
    for fault in [
        CommitFault::AnswerLost,
        CommitFault::NotWritten(StoreErrorKind::Unknown),
    ] {
        let world = World::at(1_000);
        let seen = Seen::default();
        let engine = world.engine([(A, Registration::detached(marks(&seen)))]);
        world.put_named(A, "x", 900);
        world.store.fail_commit(1, fault);
        let tick = world.woken_tick(&engine, TickBudget::default());
        assert_eq!(
            (tick.calls.len(), tick.report.total.unknown_outcome),
            (0, 1)
        );
        assert_eq!(engine.slots().used(), 0);
        let claimed = world.timers()[0].1.header.flags.claimed;
        assert_eq!(claimed, fault == CommitFault::AnswerLost);
        if claimed {
            assert!(
                world
                    .woken_tick(&engine, TickBudget::default())
                    .calls
                    .is_empty()
            );
            world.clock.advance_ms(40_000);
        }
        let call = claim_one(&world, &engine);
        assert_eq!(call.claim().timer().attempt(), if claimed { 2 } else { 1 });
        assert_eq!(block_on(engine.settle(block_on(call.run()))).fired, 1);
        assert_eq!(seen.len(), 1);
        world.check_names();
    }
}

#[test]
fn a_settle_whose_answer_was_lost_offers_the_same_batch_again_and_never_calls() {
    for (fault, counted) in [
        (CommitFault::AnswerLost, (0, 1)),
        (CommitFault::NotWritten(StoreErrorKind::Unknown), (1, 0)),
        (CommitFault::NotWritten(StoreErrorKind::Unavailable), (1, 0)),
    ] {
        let world = World::at(1_000);
        let seen = Seen::default();
        let planned = Arc::new(AtomicU32::new(0));
        let count = Arc::clone(&planned);
        let calls = Calls::noting(&seen).settle(move |_, _| {
            let n = count.fetch_add(1, Ordering::SeqCst);
            Ok(Fired::Done(Batch::new().put(format!("effect {n}"), "yes")))
        });
        let engine = world.engine([(A, Registration::detached(calls))]);
        world.put_named(A, "x", 900);
        let finished = block_on(claim_one(&world, &engine).run());
        world.store.fail_commit(1, fault);
        let counts = complete(&world.clock, engine.settle(finished));
        assert_eq!((counts.fired, counts.unknown_outcome), counted, "{fault:?}");
        assert_eq!(
            (seen.len(), planned.load(Ordering::SeqCst)),
            (1, 1),
            "{fault:?}"
        );
        assert!(world.get("effect 0").is_some());
        assert!(world.timers().is_empty());
    }
}

#[test]
fn a_settle_that_the_store_refuses_until_the_claim_ends_leaves_the_timer_to_come_back() {
    let world = World::at(1_000);
    let seen = Seen::default();
    let engine = world.engine([(A, Registration::detached(marks(&seen)))]);
    world.put_named(A, "x", 900);
    let finished = block_on(claim_one(&world, &engine).run());
    let ends_at_ms = finished.claim().ends_at_ms();
    world.store.fail_commits_with(|_, _: &Group| {
        Some(CommitFault::NotWritten(StoreErrorKind::Unavailable))
    });
    let counts = complete(&world.clock, engine.settle(finished));
    assert_eq!((counts.held, counts.fired), (1, 0));
    assert!((ends_at_ms..ends_at_ms + 6_000).contains(&world.clock_ms()));
    world.store.heal();
    let call = claim_one(&world, &engine);
    assert_eq!(call.claim().timer().attempt(), 2);
    assert_eq!(block_on(engine.settle(block_on(call.run()))).fired, 1);
}

/// The store failed a read of the settle's planning: that is not the handler's failure.
#[test]
fn a_settle_whose_reads_fail_is_planned_again_and_no_attempt_is_spent_on_it() {
    let world = World::at(1_000);
    let seen = Seen::default();
    let retry = RetryPolicy {
        attempts_max: Some(1),
        ..RetryPolicy::default()
    };
    let engine = world.engine([(A, Registration::detached(marks(&seen)).retry(retry))]);
    world.put_named(A, "x", 900);
    let finished = block_on(claim_one(&world, &engine).run());
    let failures = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&failures);
    world.store.fail_reads_with(move |call| {
        let fails = call == ReadCall::Get && count.fetch_add(1, Ordering::SeqCst) < 3;
        fails.then_some(StoreErrorKind::Unavailable)
    });
    let counts = complete(&world.clock, engine.settle(finished));
    assert_eq!((counts.fired, counts.failed, counts.dead), (1, 0, 0));
    assert!(failures.load(Ordering::SeqCst) >= 3);
    assert_eq!(seen.len(), 1);
}

#[test]
fn a_settle_whose_reads_fail_until_the_claim_ends_leaves_the_timer_to_come_back() {
    let world = World::at(1_000);
    let seen = Seen::default();
    let engine = world.engine([(A, Registration::detached(marks(&seen)))]);
    world.put_named(A, "x", 900);
    let finished = block_on(claim_one(&world, &engine).run());
    world
        .store
        .fail_reads_with(|_| Some(StoreErrorKind::Unavailable));
    let counts = complete(&world.clock, engine.settle(finished));
    assert_eq!((counts.held, counts.failed, counts.dead), (1, 0, 0));
    world.store.heal();
    let call = claim_one(&world, &engine);
    assert_eq!(block_on(engine.settle(block_on(call.run()))).fired, 1);
}

#[test]
fn a_call_whose_reads_fail_is_set_back_and_its_attempt_given_back() {
    let world = World::at(1_000);
    let seen = Seen::default();
    let retry = RetryPolicy {
        attempts_max: Some(1),
        ..RetryPolicy::default()
    };
    let engine = world.engine([(A, Registration::detached(marks(&seen)).retry(retry))]);
    world.put_named(A, "x", 900);
    let call = claim_one(&world, &engine);
    world.store.fail_read(1, StoreErrorKind::Unavailable);
    let finished = block_on(call.run());
    assert!(finished.error().is_some());
    let counts = block_on(engine.settle(finished));
    assert_eq!((counts.failed, counts.dead), (1, 0));
    assert_eq!(world.timers()[0].1.header.attempt, 0);
    world.check_names();
    world.clock.advance_ms(10_000);
    let finished = block_on(claim_one(&world, &engine).run());
    assert_eq!(block_on(engine.settle(finished)).fired, 1);
}

fn engine_by(world: &World, clock: &ManualClock, calls: Calls) -> Engine {
    let mut registry = Registry::new();
    registry.register(A, Registration::detached(calls)).unwrap();
    let store: Arc<dyn NamespaceStore> = Arc::clone(&world.store) as Arc<dyn NamespaceStore>;
    Engine::new(store, test_runtime(clock), registry)
}

#[test]
fn a_driver_whose_clock_is_ten_seconds_off_claims_by_the_clock_of_the_store() {
    for skew_ms in [-10_000, 10_000] {
        let world = World::at(1_000_000);
        let driver = ManualClock::new(1_000_000 + skew_ms);
        let seen = Seen::default();
        let engine = engine_by(&world, &driver, marks(&seen));
        for n in 0..3 {
            world.put_named(A, &n.to_string(), 900_000);
        }
        let tick = world.woken_tick_at(&engine, TickBudget::default(), 1_000_000);
        assert_eq!(tick.calls.len(), 3, "skew {skew_ms}");
        for (key, _) in world.timers() {
            assert_eq!(
                key.due_ms,
                1_000_000 + 40_000,
                "by the store's clock, skew {skew_ms}"
            );
        }
        world.check_names();
        for call in tick.calls {
            assert_eq!(call.claim().ends_at_ms(), 1_040_000);
            assert_eq!(block_on(engine.settle(block_on(call.run()))).fired, 1);
        }
    }
}

/// A claim that is planned by the store's clock and then waits in a queue is planned once more, by
/// the store's clock and not by the difference twice.
#[test]
fn a_claim_that_is_late_twice_still_ends_after_its_deadline_and_slack() {
    for skew_ms in [-10_000, 10_000] {
        let world = World::at(1_000_000);
        let driver = ManualClock::new(1_000_000 + skew_ms);
        let seen = Seen::default();
        let engine = engine_by(&world, &driver, marks(&seen));
        world.put_named(A, "x", 900_000);
        for nth in [2, 3] {
            let clock = world.clock.clone();
            world
                .store
                .before_commit(nth, move |_, _, _| clock.advance_ms(8_000));
        }
        let tick = world.woken_tick_at(&engine, TickBudget::default(), 1_000_000);
        assert_eq!(tick.calls.len(), 1);
        let (key, row) = world.timers().pop().unwrap();
        assert_eq!(key.due_ms, world.clock_ms() + 40_000, "skew {skew_ms}");
        assert_eq!(row.header.attempt, 1);
        world.check_names();
    }
}

#[test]
fn a_claim_that_waits_too_long_for_its_commit_is_planned_again() {
    let world = World::at(1_000_000);
    let seen = Seen::default();
    let engine = world.engine([(A, Registration::detached(marks(&seen)))]);
    world.put_named(A, "x", 900_000);
    let clock = world.clock.clone();
    world
        .store
        .before_commit(1, move |_, _, _| clock.advance_ms(6_000));
    let call = claim_one(&world, &engine);
    assert_eq!(call.claim().ends_at_ms(), 1_006_000 + 40_000);
}
