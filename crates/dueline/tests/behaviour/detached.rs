//! Detached execution: claim, call, settle; deadlines, panics, slots, releases.

use std::future::pending;
use std::pin::pin;
use std::time::Duration;

use dueline::Bytes;
use dueline::rows::{NameKey, NameRow, NameState};
use dueline::store::Batch;
use dueline::timers::{Fired, HandlerError, Registration, RetryPolicy, TickBudget};
use dueline_testkit::block_on;

use crate::world::handlers::{Calls, Seen, complete, poll};
use crate::world::{A, B, World};

fn named_state(world: &World, reference: &'static str) -> NameState {
    let name = NameKey {
        kind: A,
        reference: Bytes::from_static(reference.as_bytes()),
    };
    NameRow::decode(&world.get(name.encode()).unwrap())
        .unwrap()
        .state
}

#[test]
fn a_timer_is_claimed_called_outside_the_tick_and_settled_in_one_commit() {
    let world = World::at(1_000);
    let seen = Seen::default();
    let engine = world.engine([(A, Registration::detached(Calls::noting(&seen)))]);
    world.put_named(A, "x", 900);
    let tick = world.woken_tick(&engine, TickBudget::default());
    assert_eq!((tick.report.total.claimed, tick.report.total.fired), (1, 0));
    assert_eq!(seen.len(), 0, "not within the tick");
    let (key, row) = world.timers().pop().unwrap();
    assert_eq!(
        key.due_ms,
        1_000 + 30_000 + 10_000,
        "deadline and time to settle"
    );
    assert!(row.header.flags.claimed);
    assert_eq!(row.header.attempt, 1);
    assert_eq!(named_state(&world, "x"), NameState::Claimed);
    assert_eq!(tick.next_wakes, [(A, Some(key.due_ms))]);

    let call = tick.calls.into_iter().next().unwrap();
    assert_eq!((call.kind(), call.deadline()), (A, Duration::from_secs(30)));
    assert_eq!(call.claim().ends_at_ms(), key.due_ms);
    assert_eq!(call.claim().timer().attempt(), 1);
    let finished = block_on(call.run());
    assert!(finished.error().is_none());
    let before = world.store.counts();
    assert_eq!(block_on(engine.settle(finished)).fired, 1);
    assert_eq!((world.store.counts() - before).commits(), 1);
    assert_eq!(world.get("x").unwrap(), "answer");
    assert_eq!(
        world.memory.rows(&world.partition).len(),
        1,
        "timer and name are gone"
    );
    assert!(
        world.memory.wakes().is_empty(),
        "the wake at the claim's end went too"
    );
}

#[test]
fn a_page_of_claims_is_one_commit() {
    let world = World::at(1_000);
    let engine = world.engine([(
        A,
        Registration::detached(Calls::noting(&Seen::default())).concurrency(64),
    )]);
    for n in 0..32 {
        world.put(A, &n.to_string(), 900);
    }
    let before = world.store.counts();
    let tick = world.woken_tick(&engine, TickBudget::default());
    assert_eq!(tick.calls.len(), 32);
    assert_eq!((world.store.counts() - before).commits(), 1);
}

#[test]
fn a_failed_call_is_retried_after_its_back_off_under_the_same_occurrence_id() {
    let world = World::at(1_000);
    let seen = Seen::default();
    let noted = seen.clone();
    let partition = world.partition.clone();
    let calls = Calls::noting(&Seen::default()).call(move |timer| {
        noted.note(format!("{:x}", timer.occurrence_id(&partition).hash64(0)));
        let attempt = timer.attempt();
        Box::pin(async move {
            if attempt == 1 {
                return Err(HandlerError::new("HTTP 503"));
            }
            Ok("answer".to_owned())
        })
    });
    let engine = world.engine([(A, Registration::detached(calls))]);
    world.put_named(A, "x", 900);
    let call = world
        .woken_tick(&engine, TickBudget::default())
        .calls
        .pop()
        .unwrap();
    let finished = block_on(call.run());
    assert_eq!(finished.error().unwrap().text(), "HTTP 503");
    assert_eq!(block_on(engine.settle(finished)).failed, 1);
    let (key, row) = world.timers().pop().unwrap();
    assert!((6_000..=7_000).contains(&key.due_ms));
    assert_eq!(row.header.attempt, 1, "counted once");
    assert!(!row.header.flags.claimed);
    assert_eq!(named_state(&world, "x"), NameState::Retrying);
    world.check_names();
    let wakes: Vec<u64> = world.memory.wakes().iter().map(|wake| wake.at_ms).collect();
    assert_eq!(wakes, [key.due_ms]);

    world.clock.advance_ms(6_000);
    let call = world
        .woken_tick(&engine, TickBudget::default())
        .calls
        .pop()
        .unwrap();
    assert_eq!(call.claim().timer().attempt(), 2);
    assert_eq!(block_on(engine.settle(block_on(call.run()))).fired, 1);
    let seen = seen.all();
    assert_eq!((seen.len(), &seen[0]), (2, &seen[1]));
}

#[test]
fn a_call_over_its_deadline_is_dropped_and_counts_as_a_failure() {
    let world = World::at(1_000);
    let calls = Calls::noting(&Seen::default()).call(|_| Box::pin(pending()));
    let engine = world.engine([(A, Registration::detached(calls).deadline_ms(2_500))]);
    world.put(A, "x", 900);
    let call = world
        .woken_tick(&engine, TickBudget::default())
        .calls
        .pop()
        .unwrap();
    let finished = complete(&world.clock, call.run());
    assert_eq!(world.clock_ms(), 3_500);
    assert!(
        finished
            .error()
            .unwrap()
            .text()
            .contains("deadline of 2500 ms")
    );
    assert_eq!(block_on(engine.settle(finished)).failed, 1);
    assert_eq!(world.clock.sleepers(), 0);
}

/// A wall clock that steps does not cut a call short or let it run on.
#[test]
fn the_deadline_of_a_call_goes_by_the_monotonic_clock() {
    let world = World::at(1_000_000);
    let calls = Calls::noting(&Seen::default()).call(|_| Box::pin(pending()));
    let engine = world.engine([(A, Registration::detached(calls).deadline_ms(2_500))]);
    world.put(A, "x", 900);
    let call = world
        .woken_tick(&engine, TickBudget::default())
        .calls
        .pop()
        .unwrap();
    let mut run = pin!(call.run());
    assert!(poll(run.as_mut()).is_pending());
    world.clock.jump_wall_ms(3_600_000);
    assert!(poll(run.as_mut()).is_pending());
    world.clock.jump_wall_ms(-7_200_000);
    world.clock.advance_ms(2_499);
    assert!(poll(run.as_mut()).is_pending());
    world.clock.advance_ms(1);
    assert!(poll(run.as_mut()).is_ready());
}

#[test]
fn a_call_or_settle_that_panics_is_a_failure_with_its_text() {
    for in_call in [true, false] {
        let world = World::at(1_000);
        let mut calls = Calls::noting(&Seen::default());
        if in_call {
            calls = calls.call(|_| panic!("broken"));
        } else {
            calls = calls.settle(|_, _| panic!("broken"));
        }
        let engine = world.engine([(A, Registration::detached(calls))]);
        world.put_named(A, "x", 900);
        let call = world
            .woken_tick(&engine, TickBudget::default())
            .calls
            .pop()
            .unwrap();
        assert_eq!(block_on(engine.settle(block_on(call.run()))).failed, 1);
        let error = world.timers()[0].1.header.failure.clone().unwrap().error;
        assert_eq!(error, "the handler panicked: broken");
        world.check_names();
    }
}

#[test]
fn slots_bound_the_calls_of_a_kind_and_a_waiting_lane_keeps_its_wake() {
    let world = World::at(1_000);
    let seen = Seen::default();
    let engine = world.engine([
        (
            A,
            Registration::detached(Calls::noting(&seen)).concurrency(2),
        ),
        (
            B,
            Registration::inline(crate::world::handlers::notes(&seen)),
        ),
    ]);
    for n in 0..5 {
        world.put(A, &format!("a{n}"), 900);
    }
    world.put(B, "b", 950);
    world.clock.advance_ms(5);
    let mut tick = world.woken_tick(&engine, TickBudget::default());
    assert_eq!(
        (tick.report.total.claimed, tick.report.per_kind[&B].fired),
        (2, 1)
    );
    assert_eq!(tick.report.per_kind[&A].deferred, 3);
    assert!(!engine.slots().has_room(A) && engine.slots().has_room(B));
    assert_eq!(engine.slots().used(), 2);
    let lane_wakes: Vec<u64> = world.memory.wakes().iter().map(|wake| wake.at_ms).collect();
    assert!(
        lane_wakes.contains(&1_000),
        "the served wake stands: {lane_wakes:?}"
    );
    let nothing = world.woken_tick(&engine, TickBudget::default());
    assert!(nothing.calls.is_empty());

    let first = tick.calls.remove(0);
    let finished = block_on(first.run());
    assert!(!engine.slots().has_room(A), "held until it is settled");
    assert_eq!(block_on(engine.settle(finished)).fired, 1);
    assert!(engine.slots().has_room(A));
    let next = world.woken_tick(&engine, TickBudget::default());
    assert_eq!(next.calls.len(), 1);
    drop(next);
    drop(tick);
    assert_eq!(engine.slots().used(), 0, "a dropped call frees its slot");
}

#[test]
fn the_limit_of_the_process_bounds_all_kinds_together() {
    let world = World::at(1_000);
    let engine = world
        .engine([
            (A, Registration::detached(Calls::noting(&Seen::default()))),
            (B, Registration::detached(Calls::noting(&Seen::default()))),
        ])
        .calls_max(3);
    for n in 0..5 {
        world.put(A, &n.to_string(), 900);
        world.put(B, &n.to_string(), 900);
    }
    let tick = world.woken_tick(&engine, TickBudget::default());
    assert_eq!(tick.calls.len(), 3);
    assert!(
        engine
            .slots()
            .runnable(&engine.registry().kinds())
            .is_empty()
    );
    drop(tick);
    assert_eq!(
        engine.slots().runnable(&engine.registry().kinds()),
        engine.registry().kinds()
    );
}

#[test]
fn a_release_gives_the_attempt_back_and_the_timer_is_due_at_once() {
    let world = World::at(1_000);
    let seen = Seen::default();
    let engine = world.engine([(A, Registration::detached(Calls::noting(&seen)))]);
    let header = dueline::rows::Header {
        attempt: 2,
        flags: dueline::rows::Flags {
            named: true,
            ..dueline::rows::Flags::default()
        },
        ..dueline::rows::Header::default()
    };
    world.put_with(A, "x", 900, header, b"payload");
    let call = world
        .woken_tick(&engine, TickBudget::default())
        .calls
        .pop()
        .unwrap();
    assert_eq!(world.timers()[0].1.header.attempt, 3);
    let claim = call.claim().clone();
    drop(call);
    world.clock.advance_ms(100);
    assert!(block_on(engine.release(&claim)).unwrap());
    let (key, row) = world.timers().pop().unwrap();
    assert_eq!((key.due_ms, row.header.attempt), (1_100, 2));
    assert!(!row.header.flags.claimed);
    assert_eq!(row.header.original_due_ms, 900);
    world.check_names();
    assert!(
        !block_on(engine.release(&claim)).unwrap(),
        "a second time there is nothing to give"
    );
    let call = world
        .woken_tick(&engine, TickBudget::default())
        .calls
        .pop()
        .unwrap();
    assert_eq!(call.claim().timer().attempt(), 3);
    assert_eq!(block_on(engine.settle(block_on(call.run()))).fired, 1);
}

#[test]
fn a_settle_can_reschedule_and_checkpoint_its_payload() {
    let world = World::at(1_000);
    let calls = Calls::noting(&Seen::default()).settle(|timer, output| {
        if timer.payload() == "done" {
            return Ok(Fired::Done(Batch::new().put("end", "yes")));
        }
        Ok(Fired::Reschedule {
            due_at_ms: 500,
            payload: "done".into(),
            batch: Batch::new().put("checkpoint", output.to_owned()),
        })
    });
    let engine = world.engine([(A, Registration::detached(calls))]);
    world.put_named(A, "x", 900);
    let call = world
        .woken_tick(&engine, TickBudget::default())
        .calls
        .pop()
        .unwrap();
    assert_eq!(block_on(engine.settle(block_on(call.run()))).rescheduled, 1);
    let (key, row) = world.timers().pop().unwrap();
    assert_eq!(
        (key.due_ms, row.header.original_due_ms),
        (1_000, 500),
        "floored in the key only"
    );
    assert_eq!((row.header.attempt, row.header.flags.claimed), (0, false));
    assert_eq!(world.get("checkpoint").unwrap(), "answer");
    world.check_names();
    let call = world
        .woken_tick(&engine, TickBudget::default())
        .calls
        .pop()
        .unwrap();
    assert_eq!(block_on(engine.settle(block_on(call.run()))).fired, 1);
    assert!(world.get("end").is_some());
}

#[test]
fn a_settle_can_bury_its_timer_and_a_policy_ends_failing_calls() {
    let world = World::at(1_000);
    let calls = Calls::noting(&Seen::default())
        .call(|timer| {
            let fails = timer.reference() == "fails";
            Box::pin(async move {
                if fails {
                    Err(HandlerError::new("HTTP 500"))
                } else {
                    Ok(String::new())
                }
            })
        })
        .settle(|_, _| {
            Ok(Fired::Dead {
                reason: "HTTP 410".to_owned(),
                batch: Batch::new().put("gone", "yes"),
            })
        });
    let retry = RetryPolicy {
        attempts_max: Some(2),
        ..RetryPolicy::default()
    };
    let engine = world.engine([(A, Registration::detached(calls).retry(retry))]);
    world.put_named(A, "buried", 900);
    world.put_named(A, "fails", 900);
    for _ in 0..2 {
        for call in world.woken_tick(&engine, TickBudget::default()).calls {
            let _counts = block_on(engine.settle(block_on(call.run())));
        }
        world.check_names();
        world.clock.advance_ms(10_000);
    }
    assert!(world.get("gone").is_some());
    let reasons: Vec<String> = world
        .dead()
        .into_iter()
        .map(|(_, row)| {
            format!(
                "{} after {}",
                row.header.failure.unwrap().error,
                row.header.attempt
            )
        })
        .collect();
    assert_eq!(reasons, ["HTTP 410 after 1", "HTTP 500 after 2"]);
    assert!(world.timers().is_empty());
}

#[test]
fn a_pause_waits_for_the_calls_that_began_before_it() {
    let world = World::at(1_000);
    let seen = Seen::default();
    let engine = world.engine([(A, Registration::detached(Calls::noting(&seen)))]);
    world.put(A, "x", 900);
    let call = world
        .woken_tick(&engine, TickBudget::default())
        .calls
        .pop()
        .unwrap();
    let mut pause = pin!(engine.pause_and_drain(&world.partition, A));
    assert!(poll(pause.as_mut()).is_pending());
    world.put(A, "y", 900);
    assert!(
        world
            .woken_tick(&engine, TickBudget::default())
            .calls
            .is_empty(),
        "paused"
    );
    let finished = block_on(call.run());
    assert!(poll(pause.as_mut()).is_pending());
    assert_eq!(block_on(engine.settle(finished)).fired, 1);
    assert!(poll(pause.as_mut()).is_ready());
}
