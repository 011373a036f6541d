//! What a tick may start, and what it reports when it stops.

use std::time::Duration;

use dueline::rows::{Header, TimerKey, TimerRow};
use dueline::store::Batch;
use dueline::timers::{Fired, Registration, TickBudget, TickState, TimerKind, run_due_with_state};
use dueline_testkit::block_on;

use crate::world::handlers::{Seen, notes, reference_of, says, takes_ms};
use crate::world::{A, B, C, World};

fn budget(max_fired: u32, max_per_kind: u32, max_scanned: u32, max_elapsed_ms: u64) -> TickBudget {
    TickBudget {
        max_fired,
        max_per_kind,
        max_scanned,
        max_elapsed_ms,
    }
}

const MANY: u32 = 1_000_000;

#[test]
fn a_budget_of_zeros_counts_as_ones_and_fires_one() {
    let world = World::at(1_000);
    let seen = Seen::default();
    let engine = world.engine([(A, Registration::inline(notes(&seen)))]);
    world.put(A, "x", 900);
    world.put(A, "y", 900);
    let report = world.run_with(&engine, budget(0, 0, 0, 0));
    assert_eq!((report.total.fired, seen.take().len()), (1, 1));
    assert_eq!(report.next_wake_ms, Some(1_000));
}

#[test]
fn each_limit_of_one_lets_a_tick_fire_one_and_says_that_it_stopped() {
    for (limits, name) in [
        (budget(1, MANY, MANY, 60_000), "fired"),
        (budget(MANY, MANY, 1, 60_000), "scanned"),
        (budget(MANY, MANY, MANY, 1), "elapsed"),
    ] {
        let world = World::at(1_000);
        let seen = Seen::default();
        let engine = world.engine([(A, Registration::inline(takes_ms(&world.clock, &seen, 5)))]);
        for n in 0..3 {
            world.put(A, &n.to_string(), 900);
        }
        for n in 0..3 {
            let now_ms = engine.runtime().now_ms();
            let report = world.run_with(&engine, limits);
            assert_eq!(seen.take(), [n.to_string()], "{name}");
            let last = n == 2;
            assert_eq!(report.stopped_on_budget, !last, "{name}, timer {n}");
            assert_eq!(report.next_wake_ms, (!last).then_some(now_ms), "{name}");
        }
    }
}

#[test]
fn a_scan_limit_of_one_fires_through_stored_wakes_too() {
    let world = World::at(1_000);
    let seen = Seen::default();
    let engine = world.engine([
        (A, Registration::inline(notes(&seen))),
        (B, Registration::inline(notes(&seen))),
    ]);
    world.put(A, "a1", 900);
    world.put(A, "a2", 900);
    world.put(B, "b", 950);
    let report = world
        .woken_tick(&engine, budget(MANY, MANY, 1, 60_000))
        .report;
    assert_eq!(seen.take(), ["a1", "b"], "the first of each lane");
    assert!(report.stopped_on_budget);
    assert_eq!(report.next_wake_ms, Some(1_000));
}

/// Rows that are read beyond what a tick may run would be read again: a lane reads what it may fire.
#[test]
fn a_cap_of_ten_lets_the_other_kind_through_and_drains_in_ten_ticks() {
    let world = World::at(1_000);
    let seen = Seen::default();
    let engine = world.engine([
        (A, Registration::inline(notes(&seen)).per_tick_max(10)),
        (B, Registration::inline(notes(&seen))),
    ]);
    for n in 0..100 {
        world.put(A, &format!("a{n}"), n);
    }
    for n in 0..5 {
        world.put(B, &format!("b{n}"), 900);
    }
    let report = world.run(&engine);
    assert_eq!(
        (report.per_kind[&A].fired, report.per_kind[&B].fired),
        (10, 5)
    );
    assert_eq!(report.next_wake_ms, Some(1_000));
    for _ in 0..9 {
        world.run(&engine);
    }
    assert_eq!(seen.len(), 105);
    assert_eq!(world.run(&engine).next_wake_ms, None);
}

#[test]
fn a_cap_of_zero_still_fires_one_a_tick() {
    let world = World::at(1_000);
    let seen = Seen::default();
    let engine = world.engine([(A, Registration::inline(notes(&seen)).per_tick_max(0))]);
    world.put(A, "x", 900);
    world.put(A, "y", 900);
    assert_eq!(world.run(&engine).total.fired, 1);
    assert_eq!(world.run(&engine).total.fired, 1);
}

#[test]
fn a_registration_lowers_the_cap_of_its_kind_and_never_raises_it() {
    let world = World::at(1_000);
    let seen = Seen::default();
    let engine = world.engine([
        (A, Registration::inline(notes(&seen)).per_tick_max(2)),
        (B, Registration::inline(notes(&seen)).per_tick_max(500)),
    ]);
    for n in 0..20 {
        world.put(A, &n.to_string(), 900);
        world.put(B, &n.to_string(), 900);
    }
    let report = world.run_with(&engine, budget(MANY, 7, MANY, 60_000));
    assert_eq!(
        (report.per_kind[&A].fired, report.per_kind[&B].fired),
        (2, 7)
    );
}

/// The store says that a page fits exactly, so a tick that ran everything due has not stopped early.
#[test]
fn a_fire_limit_that_fits_exactly_reports_the_future_wake() {
    let world = World::at(100);
    let seen = Seen::default();
    let engine = world.engine([(A, Registration::inline(notes(&seen)))]);
    for n in 0..4 {
        world.put(A, &n.to_string(), 90);
    }
    world.put(A, "future", 300);
    let report = world
        .woken_tick(&engine, budget(4, MANY, MANY, 60_000))
        .report;
    assert_eq!(report.total.fired, 4);
    assert_eq!(report.next_wake_ms, Some(300));
    let report = world.woken_tick(&engine, TickBudget::default()).report;
    assert_eq!((report.total.fired, world.timers().len()), (0, 1));
}

/// Puts timers whose dues descend as scheduling goes on; ties go by kind, then by order of
/// scheduling. Returns them in the order in which they are to fire.
fn put_overdue(world: &World, timers: u64) -> Vec<(TimerKind, u64, u64)> {
    let mut expected = Vec::new();
    for chunk in 0..timers / 50 {
        let mut batch = Batch::new();
        for n in chunk * 50..(chunk + 1) * 50 {
            let due_ms = (timers - 1 - n) / 10;
            let kind = if n % 3 == 0 { B } else { A };
            let key = TimerKey {
                kind,
                due_ms,
                generation: n,
                reference: format!("{}/{n}", kind.0).into(),
            };
            let header = Header {
                original_due_ms: due_ms,
                ..Header::default()
            };
            let row = TimerRow {
                header,
                ..TimerRow::default()
            };
            batch = batch.put(key.encode(), row.encode());
            expected.push((kind, due_ms, n));
        }
        world.commit(batch);
    }
    expected.sort_unstable();
    expected
}

/// The first tenth of each lane is slow, so that ticks end on time there and on fires behind it.
#[test]
fn a_hundred_thousand_overdue_timers_keep_both_limits_and_their_order_until_all_are_drained() {
    let world = World::at(200_000);
    let seen = Seen::default();
    let (clock, noted) = (world.clock.clone(), seen.clone());
    let slow = move || {
        let (clock, noted) = (clock.clone(), noted.clone());
        says(move |timer| {
            noted.note(reference_of(timer));
            clock.advance_ms(u64::from(timer.due_at_ms() < 1_000));
            Fired::Done(Batch::new())
        })
    };
    let engine = world.engine([
        (A, Registration::inline(slow()).group_max(16)),
        (B, Registration::inline(slow()).group_max(16)),
    ]);
    let expected = put_overdue(&world, 100_000);
    let mut ticks = (0, 0);
    for _ in 0..10_000 {
        let before = world.clock_ms();
        let report = world
            .woken_tick(&engine, budget(100, MANY, MANY, 20))
            .report;
        let took_ms = world.clock_ms() - before;
        assert!(
            report.total.fired <= 100 && took_ms <= 20,
            "{report:?} in {took_ms} ms"
        );
        ticks.0 += u32::from(report.total.fired == 100);
        ticks.1 += u32::from(took_ms == 20);
        if report.next_wake_ms.is_none() {
            break;
        }
    }
    assert!(
        ticks.0 > 500 && ticks.1 > 100,
        "both limits were met: {ticks:?}"
    );
    let fired = seen.take();
    assert_eq!(fired.len(), 100_000);
    for kind in [A, B] {
        let lane = format!("{}/", kind.0);
        let of_lane = fired.iter().filter_map(|name| name.strip_prefix(&lane));
        let wanted = expected.iter().filter(|(of, ..)| *of == kind);
        assert!(
            of_lane.eq(wanted.map(|(.., n)| n.to_string())),
            "a lane keeps its order"
        );
    }
}

#[test]
fn a_tick_that_lost_its_only_run_to_a_race_asks_to_come_back_now() {
    let world = World::at(1_000);
    let seen = Seen::default();
    let engine = world.engine([(A, Registration::inline(notes(&seen)).per_tick_max(1))]);
    let first = world.put(A, "gone", 800);
    world.put(A, "stays", 900);
    world.store.before_commit(1, move |inner, partition, _| {
        let race = Batch::new().delete(first);
        assert!(
            block_on(inner.apply(partition, race))
                .unwrap()
                .is_committed()
        );
    });
    let report = world.run(&engine);
    assert_eq!((report.total.raced, report.total.fired), (1, 0));
    assert_eq!(report.next_wake_ms, Some(1_000));
    assert_eq!(world.run(&engine).total.fired, 1);
}

#[test]
fn one_tick_runs_lanes_merged_by_due_then_kind_then_order_of_scheduling() {
    let world = World::at(1_000);
    let seen = Seen::default();
    let engine = world.engine([
        (A, Registration::inline(notes(&seen)).group_max(4)),
        (B, Registration::inline(notes(&seen))),
    ]);
    for (kind, name, due_ms) in [
        (B, "b500", 500),
        (A, "a500 first", 500),
        (A, "a500 second", 500),
        (A, "a400", 400),
        (B, "b450", 450),
        (A, "a900", 900),
        (B, "b100", 100),
    ] {
        world.put(kind, name, due_ms);
    }
    world.run(&engine);
    assert_eq!(
        seen.all(),
        [
            "b100",
            "a400",
            "b450",
            "a500 first",
            "a500 second",
            "b500",
            "a900"
        ]
    );
}

#[test]
fn partitions_share_one_allowance_and_the_last_is_told_to_come_back_now() {
    let world = World::at(1_000);
    let seen = Seen::default();
    let engine = world.engine([(A, Registration::inline(notes(&seen)))]);
    let mut state = engine.start_tick(budget(2, MANY, MANY, 60_000));
    for n in 0..2 {
        world.put(A, &n.to_string(), 900);
    }
    let report = block_on(run_due_with_state(&engine, &world.partition, &mut state)).report;
    assert_eq!(report.total.fired, 2);
    let other = world.in_partition("other");
    other.put(A, "z", 900);
    let report = block_on(run_due_with_state(&engine, &other.partition, &mut state)).report;
    assert_eq!((report.total.fired, report.stopped_on_budget), (0, true));
    assert_eq!(
        report.next_wake_ms,
        Some(1_000),
        "now, not five seconds later"
    );
    assert_eq!(other.run(&engine).total.fired, 1);
}

#[test]
fn sixteen_partitions_of_one_kind_spend_one_cap_and_leave_other_kinds_theirs() {
    let world = World::at(1_000);
    let seen = Seen::default();
    let engine = world.engine([
        (A, Registration::inline(notes(&seen))),
        (B, Registration::inline(notes(&seen))),
    ]);
    let mut state = engine.start_tick(TickBudget::default());
    let mut fired = (0, 0);
    for n in 0..16 {
        let one = world.in_partition(format!("p{n}"));
        for m in 0..32 {
            one.put(A, &m.to_string(), 900);
        }
        if n == 15 {
            one.put(B, "b", 900);
        }
        let report = block_on(run_due_with_state(&engine, &one.partition, &mut state)).report;
        fired.0 += report.per_kind.get(&A).map_or(0, |counts| counts.fired);
        fired.1 += report.per_kind.get(&B).map_or(0, |counts| counts.fired);
    }
    assert_eq!(fired, (32, 1));
}

#[test]
fn a_state_counts_time_from_its_start_and_ends_exactly_at_its_limit() {
    let limits = budget(5, 5, 5, 1_000);
    let state = TickState::new(limits, Duration::from_secs(10));
    assert_eq!(*state.budget(), limits);
    assert!(
        !state.is_exhausted(Duration::from_secs(9)),
        "a clock behind the start"
    );
    assert_eq!(
        state.time_left(Duration::from_secs(9)),
        Duration::from_secs(1)
    );
    assert!(!state.is_exhausted(Duration::from_millis(10_999)));
    assert!(
        state.is_exhausted(Duration::from_millis(11_000)),
        "the boundary itself"
    );
    assert_eq!((state.fires_left(), state.scans_left()), (5, 5));
    let clamped = TickState::new(budget(0, 0, 0, 0), Duration::ZERO);
    assert_eq!(*clamped.budget(), budget(1, 1, 1, 1));
}

/// Two hundred lanes would each read a page: the rows a tick may read are dealt out instead.
#[test]
fn many_lanes_share_the_rows_that_a_tick_may_read() {
    for woken in [false, true] {
        let world = World::at(1_000);
        let seen = Seen::default();
        let kinds: Vec<_> = (16..216).map(TimerKind).collect();
        let engine = world.engine(
            kinds
                .iter()
                .map(|kind| (*kind, Registration::inline(notes(&seen)))),
        );
        for kind in &kinds {
            for n in 0..20 {
                world.put(*kind, &n.to_string(), 900);
            }
        }
        let limits = budget(MANY, MANY, 512, 60_000);
        let report = if woken {
            world.woken_tick(&engine, limits).report
        } else {
            world.run_with(&engine, limits)
        };
        assert!(
            report.scanned <= 512 + 200,
            "{} rows were read",
            report.scanned
        );
        let fired = report.per_kind.values().filter(|counts| counts.fired > 0);
        assert_eq!(fired.count(), 200, "woken: {woken}");
    }
}

#[test]
fn a_lane_that_is_quickly_done_leaves_its_share_of_the_fires_to_the_others() {
    let world = World::at(1_000);
    let seen = Seen::default();
    let engine = world.engine([
        (A, Registration::inline(notes(&seen))),
        (B, Registration::inline(notes(&seen))),
        (C, Registration::inline(notes(&seen))),
    ]);
    for n in 0..90 {
        world.put(A, &format!("a{n}"), n);
    }
    world.put(B, "b", 500);
    world.put(C, "c", 900);
    let report = world.run_with(&engine, budget(60, MANY, MANY, 60_000));
    assert_eq!(report.total.fired, 60);
    assert_eq!(
        (report.per_kind[&B].fired, report.per_kind[&C].fired),
        (1, 1)
    );
}
