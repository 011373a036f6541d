//! No kind hides, delays or starves another one.

use dueline::store::{Batch, Group, StoreErrorKind};
use dueline::timers::{ClaimedCall, Registration, RetryPolicy, TickBudget, TimerKind};
use dueline_testkit::{CommitFault, block_on};

use crate::world::handlers::{Calls, Seen, complete, fails, hangs, notes, takes_ms};
use crate::world::{A, B, C, World};

const D: TimerKind = TimerKind(19);

#[test]
fn a_thousand_rows_of_a_kind_capped_at_one_do_not_delay_another_by_a_tick() {
    for woken in [false, true] {
        let world = World::at(10_000);
        let seen = Seen::default();
        let engine = world.engine([
            (A, Registration::inline(notes(&seen)).per_tick_max(1)),
            (B, Registration::inline(notes(&seen))),
        ]);
        for n in 0..1_000 {
            world.put(A, &format!("a{n}"), n);
        }
        world.put(B, "b", 9_999);
        let report = if woken {
            world.woken_tick(&engine, TickBudget::default()).report
        } else {
            world.run(&engine)
        };
        assert_eq!(seen.take(), ["a0", "b"], "in the first tick");
        assert!(
            report.scanned < 100,
            "and not by reading the thousand: {}",
            report.scanned
        );
    }
}

#[test]
fn six_hundred_rows_of_an_unknown_kind_are_never_written_and_delay_nothing() {
    for woken in [false, true] {
        let world = World::at(10_000);
        let seen = Seen::default();
        let engine = world.engine([(B, Registration::inline(notes(&seen)))]);
        for n in 0..600 {
            world.put(A, &format!("a{n}"), n);
        }
        let before = world.rows(dueline::rows::class::TIMER);
        world.put(B, "b", 9_999);
        let written = Seen::default();
        let noted = written.clone();
        world.store.on_commit(move |_, group: &Group| {
            for batch in &group.batches {
                for write in &batch.writes {
                    noted.note(write.key().escape_ascii().to_string());
                }
            }
        });
        for _ in 0..3 {
            if woken {
                let _tick = world.woken_tick(&engine, TickBudget::default());
            } else {
                let report = world.run(&engine);
                assert_eq!((report.unknown_lanes, report.next_wake_ms), (1, None));
            }
            assert_eq!(seen.all(), ["b"], "in the first tick");
        }
        assert_eq!(
            written.len(),
            1,
            "the timer that fired: {:?}",
            written.all()
        );
        assert_eq!(world.rows(dueline::rows::class::TIMER), before);

        // A binary that knows the kind fires each once.
        let engine = world.engine([(A, Registration::inline(notes(&seen)))]);
        let report = world.woken_tick(&engine, TickBudget::unlimited()).report;
        assert_eq!(report.total.fired, 600);
        assert!(world.timers().is_empty());
    }
}

#[test]
fn a_paused_kind_waits_without_polling_and_hides_nothing() {
    let world = World::at(10_000);
    let seen = Seen::default();
    let engine = world.engine([
        (A, Registration::inline(notes(&seen))),
        (B, Registration::inline(notes(&seen))),
    ]);
    for n in 0..100 {
        world.put(A, &format!("a{n}"), n);
    }
    world.put(B, "b", 9_999);
    assert!(block_on(engine.timers().pause(&world.partition, A)).unwrap());
    let report = world.run(&engine);
    assert_eq!(seen.take(), ["b"]);
    assert_eq!(report.paused_lanes, 1);
    assert_eq!(report.next_wake_ms, None, "a paused lane wants no look");
    let _tick = world.woken_tick(&engine, TickBudget::default());
    assert!(world.memory.wakes().is_empty());

    assert!(block_on(engine.timers().resume(&world.partition, A)).unwrap());
    assert_eq!(world.memory.wakes().len(), 1);
    assert_eq!(
        world
            .woken_tick(&engine, TickBudget::unlimited())
            .report
            .total
            .fired,
        100
    );
}

#[test]
fn a_capped_a_failing_and_a_hanging_kind_delay_a_thousand_timers_by_no_tick() {
    let world = World::at(100_000);
    let seen = Seen::default();
    let retry = RetryPolicy {
        attempts_max: Some(3),
        initial_ms: 1_000,
        max_ms: 4_000,
        jitter_percent: 0,
    };
    let engine = world.engine([
        (
            A,
            Registration::inline(notes(&Seen::default())).per_tick_max(1),
        ),
        (B, Registration::inline(fails("always")).retry(retry)),
        (C, Registration::inline(hangs()).retry(retry)),
        (D, Registration::inline(notes(&seen)).group_max(64)),
    ]);
    for n in 0..10_000u64 {
        world.put(A, &format!("capped{n}"), n);
    }
    for n in 0..10 {
        world.put_named(B, &format!("failing{n}"), 99_000);
    }
    world.put_named(C, "hanging", 99_000);
    for n in 0..1_000u64 {
        world.put(D, &format!("d{n:03}"), 100_000 + n * 20);
    }
    let (mut fired, mut due) = (0, 0);
    while fired < 1_000 {
        let now_ms = world.clock_ms();
        let mut state = engine.start_tick(TickBudget::native());
        let tick = complete(
            &world.clock,
            dueline::timers::run_due_with_state(&engine, &world.partition, &mut state),
        );
        fired = seen.len();
        assert!(
            fired >= due,
            "{fired} fired of the {due} due at the tick before {now_ms}"
        );
        due = usize::try_from((now_ms - 100_000) / 20 + 1)
            .unwrap()
            .min(1_000);
        assert!(tick.report.total.fired > 0);
        world.clock.advance_ms(100);
    }
    for _ in 0..20 {
        world.clock.advance_ms(5_000);
        let mut state = engine.start_tick(TickBudget::native());
        let _tick = complete(
            &world.clock,
            dueline::timers::run_due_with_state(&engine, &world.partition, &mut state),
        );
    }
    let dead = world.dead();
    assert_eq!(dead.len(), 11, "after their attempts");
    assert!(dead.iter().all(|(_, row)| row.header.attempt == 3));
    world.check_names();
}

/// Each tick waits for one run of the hanging kind. Whatever else is due goes before it, but in the first tick,
/// which cannot know.
#[test]
fn forty_hanging_timers_delay_those_of_another_kind_by_one_deadline_and_not_by_one_each() {
    let world = World::at(10_000);
    let seen = Seen::default();
    let engine = world.engine([
        (A, Registration::inline(hangs())),
        (B, Registration::inline(notes(&seen))),
    ]);
    for n in 0..40 {
        world.put_named(A, &format!("hanging{n:02}"), 9_000);
        world.put(B, &format!("b{n:02}"), 9_500);
    }
    let tick = || {
        let mut state = engine.start_tick(TickBudget::native());
        let tick = complete(
            &world.clock,
            dueline::timers::run_due_with_state(&engine, &world.partition, &mut state),
        );
        tick.report.total
    };
    assert_eq!((tick().failed, seen.len()), (1, 1));
    assert_eq!(world.clock_ms(), 15_000, "a deadline");
    assert_eq!((tick().failed, seen.len()), (1, 40), "all others");
    for n in 0..5 {
        world.put(B, "late", world.clock_ms());
        let began_ms = world.clock_ms();
        let total = tick();
        assert_eq!((total.failed, seen.len()), (1, 41 + n), "each has its turn");
        assert_eq!(world.clock_ms(), began_ms + 5_000);
    }
}

/// Calls that hang keep their slots up to their deadlines, and are followed by others of their kinds.
#[test]
fn kinds_with_fewer_calls_under_way_have_the_last_slots() {
    let world = World::at(1_000);
    let calls = |seen: &Seen| Registration::detached(Calls::noting(seen)).concurrency(2);
    let seen = Seen::default();
    let engine = world
        .engine([(A, calls(&seen)), (B, calls(&seen)), (C, calls(&seen))])
        .calls_max(4);
    for n in 0..6 {
        world.put(A, &format!("a{n}"), 900);
        world.put(B, &format!("b{n}"), 910);
        world.put(C, &format!("c{n}"), 920);
    }
    let kinds = |calls: &[ClaimedCall]| -> Vec<TimerKind> {
        let timers = calls.iter().map(|call| call.claim().timer());
        timers.map(|timer| timer.kind()).collect()
    };
    let mut first = world.woken_tick(&engine, TickBudget::default());
    assert_eq!(kinds(&first.calls), [A, A, B, C]);
    for _ in 0..5 {
        let call = first.calls.pop().expect("the call of C");
        assert_eq!(block_on(engine.settle(block_on(call.run()))).fired, 1);
        let next = world.woken_tick(&engine, TickBudget::default());
        assert_eq!(kinds(&next.calls), [C], "and not another of B");
        first.calls.extend(next.calls);
    }
    drop(first.calls.pop());
    let next = world.woken_tick(&engine, TickBudget::default());
    assert_eq!(kinds(&next.calls), [B], "nothing of C waits");
}

#[test]
fn a_slow_kind_closes_at_its_share_of_the_time_and_the_others_have_theirs() {
    let world = World::at(1_000);
    let (slow, quick) = (Seen::default(), Seen::default());
    let engine = world.engine([
        (A, Registration::inline(takes_ms(&world.clock, &slow, 30))),
        (B, Registration::inline(notes(&quick))),
    ]);
    for n in 0..20 {
        world.put(A, &format!("a{n}"), 100 + n);
        world.put(B, &format!("b{n}"), 900);
    }
    let report = world.run_with(
        &engine,
        TickBudget {
            max_elapsed_ms: 200,
            ..TickBudget::default()
        },
    );
    assert_eq!(quick.len(), 20, "all of the quick kind");
    assert_eq!(
        slow.len(),
        4,
        "half of the time, and the one that passed it"
    );
    assert!(report.stopped_on_budget);
}

#[test]
fn a_lane_that_stopped_on_its_budget_goes_behind_the_others_durably() {
    let world = World::at(1_000);
    let seen = Seen::default();
    let engine = world.engine([
        (A, Registration::inline(notes(&seen))),
        (B, Registration::inline(notes(&seen))),
    ]);
    for n in 0..10 {
        world.put(A, &format!("a{n}"), 100);
    }
    world.put(B, "b", 900);
    let one = TickBudget {
        max_fired: 1,
        ..TickBudget::default()
    };
    let mut order = Vec::new();
    for _ in 0..3 {
        world.clock.advance_ms(1);
        let _tick = world.woken_tick(&engine, one);
        order.extend(seen.take());
    }
    assert_eq!(order, ["a0", "b", "a1"], "B had its turn before A's second");
}

#[test]
fn a_foreign_write_between_ticks_is_seen_by_the_next() {
    let world = World::at(1_000);
    let seen = Seen::default();
    let engine = world.engine([(A, Registration::inline(notes(&seen)))]);
    let key = world.put(A, "gone", 900);
    world.put(A, "stays", 900);
    world.commit(Batch::new().delete(key));
    world.run(&engine);
    assert_eq!(seen.all(), ["stays"]);
}

/// The wakes that were served stand until they are settled, and the report says so.
#[test]
fn a_tick_whose_settle_is_lost_keeps_its_wakes_and_asks_to_come_back() {
    for kind in [
        StoreErrorKind::Unknown,
        StoreErrorKind::Unavailable,
        StoreErrorKind::Full,
    ] {
        let world = World::at(1_000);
        let seen = Seen::default();
        let engine = world.engine([(A, Registration::inline(notes(&seen)))]);
        let key = world.put(A, "gone", 900);
        world.commit(Batch::new().delete(key));
        let wakes = world.memory.wakes();
        world.store.fail_commit(1, CommitFault::NotWritten(kind));
        let tick = world.woken_tick(&engine, TickBudget::default());
        assert!(tick.next_wakes.is_empty(), "{kind:?}");
        assert_eq!(tick.report.next_wake_ms, Some(1_000), "{kind:?}");
        assert_eq!(world.memory.wakes(), wakes, "{kind:?}");
        let tick = world.woken_tick(&engine, TickBudget::default());
        assert_eq!(
            (tick.report.next_wake_ms, world.memory.wakes().len()),
            (None, 0)
        );
    }
}

#[test]
fn a_lane_that_had_no_run_yet_has_one_although_the_time_is_over() {
    let world = World::at(1_000);
    let (slow, quick) = (Seen::default(), Seen::default());
    let engine = world.engine([
        (A, Registration::inline(takes_ms(&world.clock, &slow, 500))),
        (B, Registration::inline(notes(&quick))),
        (C, Registration::inline(notes(&quick))),
    ]);
    for n in 0..5 {
        world.put(A, &format!("a{n}"), 100);
        world.put(B, &format!("b{n}"), 200);
        world.put(C, &format!("c{n}"), 300);
    }
    let limits = TickBudget {
        max_elapsed_ms: 200,
        ..TickBudget::default()
    };
    let report = world.run_with(&engine, limits);
    assert_eq!(
        (slow.len(), quick.all()),
        (1, vec!["b0".to_owned(), "c0".to_owned()])
    );
    assert!(report.stopped_on_budget);
}
