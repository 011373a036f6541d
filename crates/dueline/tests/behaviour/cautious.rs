//! Handlers that kill the process: after the attempts of their policy they are dead, everything else
//! has fired, and nobody had to step in.
//!
//! A kill is a tick (or a call) that is dropped while the handler runs; the next process is a new
//! engine over the same store, which was not closed cleanly.

use std::future::pending;
use std::pin::pin;

use dueline::store::{Batch, LaneWake, StoreErrorKind};
use dueline::timers::{Engine, Fired, Registration, RetryPolicy, TickBudget, TickRequest, run_due};
use dueline_testkit::{CommitFault, block_on, handler};

use crate::world::handlers::{Calls, Seen, notes, poll, reference_of};
use crate::world::{A, B, World};

fn policy(attempts: u16) -> RetryPolicy {
    RetryPolicy {
        attempts_max: Some(attempts),
        ..RetryPolicy::default()
    }
}

/// An inline handler that never comes back for the reference `poison`: what a tick that is dropped
/// there has seen is a killed process.
fn poisoned(seen: &Seen) -> impl dueline::timers::TimerHandler + use<> {
    let seen = seen.clone();
    handler(move |_, timer| {
        seen.note(format!(
            "{} attempt {}",
            reference_of(timer),
            timer.attempt()
        ));
        let kills = timer.reference() == "poison";
        Box::pin(async move {
            if kills {
                pending::<()>().await;
            }
            Ok(Fired::Done(Batch::new()))
        })
    })
}

/// Runs ticks as a driver does until one is killed (false) or nothing is due any more (true).
fn live(world: &World, engine: &Engine, woken: bool) -> bool {
    let opened_at_ms = world.clock_ms();
    for _ in 0..100 {
        let wakes: Vec<LaneWake> = world
            .memory
            .wakes()
            .into_iter()
            .filter(|wake| wake.at_ms <= world.clock_ms())
            .map(|wake| LaneWake {
                kind: wake.kind,
                at_ms: wake.at_ms,
            })
            .collect();
        if wakes.is_empty() {
            return true;
        }
        let request = TickRequest {
            partition: &world.partition,
            wakes: woken.then_some(&wakes[..]),
            cautious_until_ms: Some(opened_at_ms),
        };
        let mut state = engine.start_tick(TickBudget::default());
        let tick = pin!(engine.tick(request, &mut state));
        let mut calls = match poll(tick) {
            std::task::Poll::Ready(tick) if woken => tick.calls,
            std::task::Poll::Ready(tick) => {
                assert!(tick.calls.is_empty());
                return true;
            }
            std::task::Poll::Pending => return false,
        };
        // The calls run beside each other: one that kills cuts those behind it.
        for call in calls.drain(..) {
            match poll(pin!(call.run())) {
                std::task::Poll::Ready(finished) => {
                    assert!(poll(pin!(engine.settle(finished))).is_ready());
                }
                std::task::Poll::Pending => return false,
            }
        }
    }
    panic!("a partition that never comes to rest");
}

#[test]
fn an_inline_handler_that_kills_the_process_ends_in_the_dead_class() {
    for woken in [true, false] {
        let world = World::at(1_000);
        let seen = Seen::default();
        for n in 0..100 {
            world.put(A, &format!("x{n:02}"), 800 + n);
            world.put(B, &format!("y{n:02}"), 800 + n);
        }
        world.put_named(A, "poison", 850);
        let mut kills = 0;
        for _ in 0..60 {
            let registration = || {
                Registration::inline(poisoned(&seen))
                    .retry(policy(20))
                    .group_max(16)
            };
            let engine = world.engine([(A, registration()), (B, registration())]);
            if !live(&world, &engine, woken) {
                kills += 1;
            }
            world.clock.advance_ms(20_000);
        }
        // The last attempt is counted by its own claim; the first kill may be of an uncautious tick.
        assert!((20..=21).contains(&kills), "woken {woken}: {kills} kills");
        assert!(world.timers().is_empty(), "everything else has fired");
        let [(key, row)] = &world.dead()[..] else {
            panic!("one dead timer");
        };
        assert_eq!(
            (key.reference.as_ref(), row.header.attempt),
            (&b"poison"[..], 20)
        );
        let error = &row.header.failure.as_ref().unwrap().error;
        assert!(error.contains("attempt 20 was cut"), "{error}");
        world.check_names();
    }
}

#[test]
fn a_detached_call_that_kills_the_process_ends_in_the_dead_class() {
    let world = World::at(1_000);
    let seen = Seen::default();
    for n in 0..50 {
        world.put_named(A, &format!("x{n:02}"), 900);
    }
    world.put_named(A, "poison", 900);
    let mut kills = 0;
    for _ in 0..80 {
        let noted = seen.clone();
        let calls = Calls::noting(&seen).call(move |timer| {
            noted.note(reference_of(timer));
            let kills = timer.reference() == "poison";
            Box::pin(async move {
                if kills {
                    pending::<()>().await;
                }
                Ok("answer".to_owned())
            })
        });
        let engine = world.engine([(A, Registration::detached(calls).retry(policy(20)))]);
        if !live(&world, &engine, true) {
            kills += 1;
        }
        // Past the claim's end, and past the back-off of a call that was cut again.
        world.clock.advance_ms(800_000);
    }
    assert_eq!(kills, 20);
    assert!(world.timers().is_empty());
    let dead = world.dead();
    assert_eq!((dead.len(), dead[0].1.header.attempt), (1, 20));
    for n in 0..50 {
        assert_eq!(world.get(format!("x{n:02}")).unwrap(), "answer");
    }
    world.check_names();
}

/// Calls that are under way when a process dies have spent an attempt each. Claimed together again at
/// every start, they would die with the one that kills: so from the second cut on each backs off by
/// its own jitter, and only the killer meets itself every time.
#[test]
fn calls_that_were_under_way_with_one_that_kills_do_not_die_with_it() {
    let world = World::at(1_000);
    let seen = Seen::default();
    for n in 0..15 {
        world.put_named(A, &format!("x{n:02}"), 900);
    }
    world.put_named(A, "poison", 900);
    let mut kills = 0;
    for _ in 0..40_000 {
        let registration = Registration::detached(Calls::noting(&seen)).retry(policy(6));
        let engine = world.engine([(A, registration)]);
        let calls = world.woken_tick(&engine, TickBudget::default()).calls;
        if calls
            .iter()
            .any(|call| call.claim().timer().reference() == "poison")
        {
            // The process dies with all that is under way.
            kills += 1;
            drop(calls);
        } else {
            for call in calls {
                assert_eq!(block_on(engine.settle(block_on(call.run()))).fired, 1);
            }
        }
        world.clock.advance_ms(20);
        if world.timers().is_empty() {
            break;
        }
    }
    assert_eq!(kills, 6);
    let dead = world.dead();
    assert_eq!(dead.len(), 1);
    assert_eq!(
        (dead[0].0.reference.as_ref(), dead[0].1.header.attempt),
        (&b"poison"[..], 6)
    );
    for n in 0..15 {
        assert_eq!(world.get(format!("x{n:02}")).unwrap(), "answer");
    }
    world.check_names();
}

#[test]
fn a_cautious_run_that_fails_counts_one_attempt_and_one_that_succeeds_leaves_nothing() {
    let world = World::at(1_000);
    world.store.set_unclean_opened_at_ms(Some(1_000));
    let seen = Seen::default();
    let noted = seen.clone();
    let engine = world.engine([(
        A,
        Registration::inline(handler(move |_, timer| {
            noted.note(format!(
                "{} attempt {}",
                reference_of(timer),
                timer.attempt()
            ));
            let fail = timer.reference() == "fails";
            Box::pin(async move {
                if fail {
                    return Err(dueline::timers::HandlerError::new("no"));
                }
                Ok(Fired::Done(Batch::new()))
            })
        }))
        .group_max(8),
    )]);
    world.put_named(A, "works", 900);
    world.put_named(A, "fails", 900);
    let report = world.woken_tick(&engine, TickBudget::default()).report;
    assert_eq!((report.total.fired, report.total.failed), (1, 1));
    assert_eq!(seen.all(), ["works attempt 1", "fails attempt 1"]);
    let [(key, row)] = &world.timers()[..] else {
        panic!("one timer");
    };
    assert_eq!(row.header.attempt, 1);
    assert!(!row.header.flags.claimed && key.due_ms < 8_000, "{key:?}");
    world.check_names();
    let wakes: Vec<u64> = world.memory.wakes().iter().map(|wake| wake.at_ms).collect();
    assert_eq!(wakes.iter().min(), Some(&key.due_ms));
}

#[test]
fn lanes_woken_after_the_opening_run_as_usual() {
    let world = World::at(1_000);
    world.store.set_unclean_opened_at_ms(Some(1_000));
    let seen = Seen::default();
    let engine = world.engine([(A, Registration::inline(poisoned(&seen)).group_max(8))]);
    world.clock.advance_ms(1);
    for n in 0..8 {
        world.put(A, &n.to_string(), 1_001);
    }
    let before = world.store.counts();
    assert_eq!(
        world
            .woken_tick(&engine, TickBudget::default())
            .report
            .total
            .fired,
        8
    );
    assert_eq!((world.store.counts() - before).commits(), 1, "no claims");
}

#[test]
fn a_cut_timer_whose_handler_works_again_fires_once_when_its_claim_ends() {
    let world = World::at(1_000);
    let seen = Seen::default();
    world.put_named(A, "poison", 900);
    let engine = world.engine([(A, Registration::inline(poisoned(&seen)))]);
    world.store.set_unclean_opened_at_ms(Some(1_000));
    assert!(!live(&world, &engine, true));
    let (key, row) = world.timers().pop().unwrap();
    assert!(row.header.flags.claimed);
    assert_eq!(key.due_ms, 1_000 + 5_000 + 10_000, "deadline and slack");
    let healthy = world.engine([(A, Registration::inline(notes(&seen)))]);
    assert_eq!(
        world.run(&healthy).total.progressed(),
        0,
        "not before the claim's end"
    );
    world.clock.advance_ms(15_000);
    assert_eq!(world.run(&healthy).total.fired, 1);
    assert!(world.memory.rows(&world.partition).is_empty());
}

/// A timer whose claim has ended is counted before each further run, also by a driver that knows of
/// no unclean stop: a timer that killed once is not trusted.
#[test]
fn a_cut_timer_is_claimed_before_each_run_whatever_the_stop_was() {
    let world = World::at(1_000);
    let seen = Seen::default();
    world.put_named(A, "poison", 900);
    let engine = world.engine([(A, Registration::inline(poisoned(&seen)).retry(policy(4)))]);
    assert!(!live(&world, &engine, true));
    for attempt in 2..=4 {
        world.clock.advance_ms(20_000);
        let mut tick = Box::pin(run_due(&engine, &world.partition, TickBudget::default()));
        assert!(poll(tick.as_mut()).is_pending());
        drop(tick);
        let (_, row) = world.timers().pop().unwrap();
        assert_eq!(
            (row.header.attempt, row.header.flags.claimed),
            (attempt, true)
        );
    }
    world.clock.advance_ms(20_000);
    assert_eq!(world.run(&engine).total.dead, 1);
    assert_eq!(seen.len(), 4);
    world.check_names();
}

#[test]
fn a_cautious_claim_in_doubt_is_not_run_before_its_claim_ends() {
    for (fault, claimed) in [
        (CommitFault::AnswerLost, true),
        (CommitFault::NotWritten(StoreErrorKind::Unknown), false),
    ] {
        let world = World::at(1_000);
        world.store.set_unclean_opened_at_ms(Some(1_000_000));
        let seen = Seen::default();
        let engine = world.engine([(A, Registration::inline(notes(&seen)))]);
        world.put_named(A, "x", 900);
        world.store.fail_commit(1, fault);
        let report = world.woken_tick(&engine, TickBudget::default()).report;
        assert_eq!(
            (report.total.unknown_outcome, report.total.progressed()),
            (1, 0)
        );
        assert_eq!(seen.len(), 0, "{fault:?}");
        assert_eq!(world.timers()[0].1.header.flags.claimed, claimed);
        world.check_names();
        world.clock.advance_ms(15_000);
        assert_eq!(
            world
                .woken_tick(&engine, TickBudget::default())
                .report
                .total
                .fired,
            1
        );
        assert!(world.timers().is_empty());
    }
}
