//! Early wakes, clock steps, and a driver whose clock is not the store's.

use std::sync::Arc;

use dueline::limits::DUE_MS_MAX;
use dueline::memory::MemoryStore;
use dueline::store::{Batch, LaneWake, NamespaceStore};
use dueline::timers::{
    Engine, Fired, HandlerError, Policy, Registration, Registry, TickBudget, TickRequest, Timer,
    TimerError,
};
use dueline_testkit::{FaultStore, ManualClock, block_on, handler, test_runtime};

use crate::world::handlers::{Calls, Seen, notes, reference_of, takes_ms};
use crate::world::{A, B, World};

/// 10:00:00.000 of some day.
const TEN: i64 = 1_700_042_400_000;

/// An engine whose clock is another than the store's.
fn engine_by(world: &World, clock: &ManualClock, registration: Registration) -> Engine {
    let mut registry = Registry::new();
    registry.register(A, registration).unwrap();
    let store: Arc<dyn NamespaceStore> = Arc::clone(&world.store) as Arc<dyn NamespaceStore>;
    Engine::new(store, test_runtime(clock), registry)
}

#[test]
fn a_wake_delivered_15_ms_early_fires_nothing_and_is_armed_again_for_the_due() {
    let due_ms = u64::try_from(TEN).unwrap();
    let world = World::at(TEN - 15);
    let seen = Seen::default();
    let engine = world.engine([(A, Registration::inline(notes(&seen)))]);
    world.put_named(A, "x", due_ms);
    let early = [LaneWake {
        kind: A,
        at_ms: due_ms,
    }];
    let request = TickRequest {
        partition: &world.partition,
        wakes: Some(&early),
        cautious_until_ms: None,
    };
    let mut state = engine.start_tick(TickBudget::default());
    let report = block_on(engine.tick(request, &mut state)).report;
    assert_eq!((report.total.fired, report.next_wake_ms), (0, Some(due_ms)));
    assert_eq!(world.memory.wakes()[0].at_ms, due_ms);
    world.clock.advance_ms(15);
    assert_eq!(
        world
            .woken_tick(&engine, TickBudget::default())
            .report
            .total
            .fired,
        1
    );
    assert_eq!(
        world
            .woken_tick(&engine, TickBudget::default())
            .report
            .total
            .fired,
        0
    );
    assert_eq!(seen.len(), 1);
}

/// The driver believes that it is time, the store does not: the store's clock decides.
#[test]
fn a_driver_ahead_of_the_store_fires_nothing_before_the_stores_due() {
    let due_ms = u64::try_from(TEN).unwrap();
    for group_max in [1, 8] {
        let world = World::at(TEN - 15);
        let ahead = ManualClock::new(TEN);
        let seen = Seen::default();
        let engine = engine_by(
            &world,
            &ahead,
            Registration::inline(notes(&seen)).group_max(group_max),
        );
        for n in 0..4 {
            world.put_named(A, &n.to_string(), due_ms);
        }
        let tick = world.woken_tick(&engine, TickBudget::default());
        assert_eq!(
            tick.report.total.progressed(),
            0,
            "nothing fired, no attempt charged"
        );
        assert_eq!(tick.next_wakes, [(A, Some(due_ms))], "armed for the due");
        assert!(
            world
                .timers()
                .iter()
                .all(|(key, row)| { key.due_ms == due_ms && row.header.attempt == 0 })
        );
        world.clock.advance_ms(15);
        ahead.advance_ms(15);
        assert_eq!(
            world
                .woken_tick(&engine, TickBudget::default())
                .report
                .total
                .fired,
            4
        );
        world.check_names();
    }
}

#[test]
fn a_failing_handler_of_a_driver_ahead_of_the_store_is_not_charged_before_the_due() {
    let world = World::at(TEN - 15);
    let ahead = ManualClock::new(TEN);
    let engine = engine_by(
        &world,
        &ahead,
        Registration::inline(crate::world::handlers::fails("no")),
    );
    world.put(A, "x", u64::try_from(TEN).unwrap());
    let report = world.woken_tick(&engine, TickBudget::default()).report;
    assert_eq!(report.total.failed, 0);
    assert_eq!(world.timers()[0].1.header.attempt, 0);
}

#[test]
fn a_backward_clock_step_does_not_switch_the_time_limit_off() {
    let world = World::at(1_000_000);
    let seen = Seen::default();
    let (clock, noted) = (world.clock.clone(), seen.clone());
    let engine = world.engine([(
        A,
        Registration::inline(handler(move |_, timer| {
            noted.note(reference_of(timer));
            clock.jump_wall_ms(-20_000);
            clock.advance_ms(10_000);
            Box::pin(async { Ok(Fired::Done(Batch::new())) })
        })),
    )]);
    for n in 0..20 {
        world.put(A, &n.to_string(), 100);
    }
    let report = world.run_with(
        &engine,
        TickBudget {
            max_elapsed_ms: 10_000,
            ..TickBudget::default()
        },
    );
    assert_eq!(seen.len(), 1, "10 s a run, 10 s in all");
    assert!(report.stopped_on_budget);
}

#[test]
fn a_backward_clock_step_within_a_tick_leaves_moves_that_no_tick_of_this_moment_runs_again() {
    let world = World::at(1_000_000);
    let seen = Seen::default();
    let (clock, noted) = (world.clock.clone(), seen.clone());
    let engine = world.engine([(
        A,
        Registration::inline(handler(move |_, timer| {
            noted.note(reference_of(timer));
            clock.set_wall_ms(500_000);
            Box::pin(async {
                Ok(Fired::Retry {
                    after_ms: Some(1),
                    reason: "again".to_owned(),
                })
            })
        })),
    )]);
    for n in 0..100 {
        world.put(A, &n.to_string(), 100);
    }
    let report = world.run_with(&engine, TickBudget::unlimited());
    assert_eq!((report.total.failed, seen.len()), (100, 100));
}

#[test]
fn a_due_in_the_past_fires_at_once_and_its_lateness_counts_from_it() {
    let world = World::at(TEN);
    let seen = Seen::default();
    let engine = world.engine([(A, Registration::inline(notes(&seen)))]);
    world.schedule(
        Timer::new(A, "x").due_at(u64::try_from(TEN).unwrap() - 3_600_000),
        Policy::Replace,
    );
    let report = world.woken_tick(&engine, TickBudget::default()).report;
    assert_eq!(
        (report.total.fired, report.worst_lateness_ms),
        (1, 3_600_000)
    );
}

#[test]
fn the_last_millisecond_of_9999_is_accepted_and_the_largest_number_refused() {
    let world = World::at(TEN);
    let seen = Seen::default();
    let engine = world.engine([(A, Registration::inline(notes(&seen)))]);
    let last = Timer::new(A, "x").due_at(DUE_MS_MAX).named();
    world.schedule(last, Policy::Replace);
    let report = world.woken_tick(&engine, TickBudget::default()).report;
    assert_eq!(
        (report.total.fired, world.run(&engine).next_wake_ms),
        (0, Some(DUE_MS_MAX))
    );
    for beyond in [DUE_MS_MAX + 1, u64::try_from(i64::MAX).unwrap(), u64::MAX] {
        let timer = Timer::new(A, "y").due_at(beyond).named();
        let error = block_on(
            world
                .verbs()
                .schedule(&world.partition, timer, Policy::Replace),
        );
        let Err(TimerError::Invalid(text)) = error else {
            panic!("{error:?}");
        };
        assert!(text.contains("9999-12-31T23:59:59.999Z"), "{text}");
    }
    world.clock.set_wall_ms(i64::try_from(DUE_MS_MAX).unwrap());
    assert_eq!(
        world
            .woken_tick(&engine, TickBudget::default())
            .report
            .total
            .fired,
        1
    );
}

/// A claim ends with the calendar at the latest. What is due in its last millisecond fires, and cannot be moved:
/// there is no later place.
#[test]
fn a_claim_of_the_last_seconds_of_9999_ends_with_them() {
    for before_end_ms in [39_999, 20_000, 1] {
        let due_ms = DUE_MS_MAX - before_end_ms;
        let world = World::at(i64::try_from(due_ms).unwrap());
        let seen = Seen::default();
        let engine = world.engine([(A, Registration::detached(Calls::noting(&seen)))]);
        world.put_named(A, "x", due_ms);
        let mut tick = world.woken_tick(&engine, TickBudget::default());
        assert_eq!(tick.report.total.claimed, 1, "{before_end_ms}");
        assert_eq!(world.timers()[0].0.due_ms, DUE_MS_MAX);
        world.check_names();
        let finished = block_on(tick.calls.remove(0).run());
        // The claim is over before its call is settled: it is not called a second time.
        world.clock.advance_ms(before_end_ms + 1_000);
        let again = world.woken_tick(&engine, TickBudget::default());
        assert!(again.calls.is_empty() && again.report.held_back);
        assert_eq!(block_on(engine.settle(finished)).fired, 1);
        assert_eq!((seen.len(), world.timers().len()), (1, 0));
    }
    let world = World::at(i64::try_from(DUE_MS_MAX).unwrap());
    let seen = Seen::default();
    let engine = world.engine([(A, Registration::detached(Calls::noting(&seen)))]);
    let key = world.put_named(A, "x", DUE_MS_MAX);
    let tick = world.woken_tick(&engine, TickBudget::default());
    assert!(tick.report.held_back && tick.calls.is_empty());
    assert!(world.get(key).is_some(), "it stays, and is seen");
    world.check_names();
}

#[test]
fn a_delay_of_sixty_days_does_not_fire_a_millisecond_early() {
    const SIXTY_DAYS_MS: u64 = 60 * 86_400_000;
    let world = World::at(TEN);
    let seen = Seen::default();
    let engine = world.engine([(A, Registration::inline(notes(&seen)))]);
    let due_ms = u64::try_from(TEN).unwrap() + SIXTY_DAYS_MS;
    world.schedule(Timer::new(A, "x").due_at(due_ms), Policy::Replace);
    for step in [1, SIXTY_DAYS_MS / 2, SIXTY_DAYS_MS - SIXTY_DAYS_MS / 2 - 2] {
        world.clock.advance_ms(step);
        assert_eq!(world.run(&engine).total.fired, 0);
    }
    world.clock.advance_ms(1);
    assert_eq!(world.run(&engine).total.fired, 1);
}

#[test]
fn a_reschedule_beyond_the_horizon_is_a_failure_that_names_it() {
    let world = World::at(1_000);
    let engine = world.engine([(
        A,
        Registration::inline(crate::world::handlers::says(|_| Fired::Reschedule {
            due_at_ms: u64::MAX,
            payload: dueline::Bytes::new(),
            batch: Batch::new(),
        })),
    )]);
    world.put(A, "x", 900);
    assert_eq!(world.run(&engine).total.failed, 1);
    let error = world.timers()[0].1.header.failure.clone().unwrap().error;
    assert!(error.contains("9999-12-31"), "{error}");
}

#[test]
fn a_store_whose_clock_is_before_1970_fires_nothing_and_loses_nothing() {
    let store_clock = ManualClock::new(-5);
    let memory = Arc::new(MemoryStore::new(Arc::new(store_clock.clone())));
    let mut world = World::at(1_000);
    world.memory = Arc::clone(&memory);
    world.store = Arc::new(FaultStore::new(memory));
    let seen = Seen::default();
    let engine = world.engine([
        (A, Registration::inline(notes(&seen))),
        (B, Registration::detached(Calls::noting(&seen))),
    ]);
    world.put(A, "x", 900);
    world.put(B, "y", 900);
    for _ in 0..3 {
        let tick = world.tick(&engine);
        assert_eq!((tick.report.total.progressed(), tick.calls.len()), (0, 0));
    }
    assert_eq!(world.timers().len(), 2);
    store_clock.set_wall_ms(1_000);
    let tick = world.tick(&engine);
    assert_eq!((tick.report.total.fired, tick.calls.len()), (1, 1));
}

#[test]
fn business_time_is_read_anew_for_each_run() {
    let world = World::at(1_000);
    let seen = Seen::default();
    let engine = world.engine([(A, Registration::inline(takes_ms(&world.clock, &seen, 7)))]);
    for n in 0..3 {
        world.put(A, &n.to_string(), 1_000);
    }
    assert_eq!(world.run(&engine).worst_lateness_ms, 14);
}

#[test]
fn what_fails_or_is_given_back_behind_a_backward_clock_step_is_not_due_before_its_due() {
    let due_ms = 1_000_000;
    for detached in [false, true] {
        let world = World::at(1_000_000);
        let clock = world.clock.clone();
        let registration = if detached {
            Registration::detached(Calls::noting(&Seen::default()).settle(move |_, _| {
                clock.set_wall_ms(500_000);
                Err(HandlerError::new("no"))
            }))
        } else {
            Registration::inline(handler(move |_, _| {
                clock.set_wall_ms(500_000);
                Box::pin(async { Err(HandlerError::new("no")) })
            }))
        };
        let engine = world.engine([(A, registration)]);
        world.put(A, "x", due_ms);
        let calls = world.woken_tick(&engine, TickBudget::default()).calls;
        for call in calls {
            let counts = block_on(engine.settle(block_on(call.run())));
            assert_eq!(counts.failed, 1);
        }
        let (key, _) = world.timers().remove(0);
        assert!(key.due_ms >= due_ms, "detached: {detached}, {key:?}");
    }
    let world = World::at(1_000_000);
    let calls = Calls::noting(&Seen::default());
    let engine = world.engine([(A, Registration::detached(calls))]);
    world.put(A, "x", due_ms);
    let call = world
        .woken_tick(&engine, TickBudget::default())
        .calls
        .remove(0);
    world.clock.set_wall_ms(500_000);
    assert!(block_on(engine.release(call.claim())).unwrap());
    assert_eq!(world.timers()[0].0.due_ms, due_ms);
}
