//! The life of a timer from tick to tick: its due, its commit, its retries and its death.

use dueline::timers::{Registration, TickBudget};

use crate::world::handlers::{appends, fails};
use crate::world::{A, World};

#[test]
fn a_timer_fires_at_its_due_and_not_before() {
    let world = World::at(100);
    let engine = world.engine([(A, Registration::inline(appends()))]);
    world.put(A, "x", 99);
    world.put(A, "y", 101);

    let report = world.tick(&engine).report;
    assert_eq!((report.total.fired, report.next_wake_ms), (1, Some(101)));
    assert_eq!(world.tick(&engine).report.total.fired, 0);
    world.clock.advance_ms(1);
    let report = world.tick(&engine).report;
    assert_eq!((report.total.fired, report.next_wake_ms), (1, None));
    assert_eq!(world.get("log").unwrap(), "x y ");
    assert!(world.timers().is_empty());
}

#[test]
fn a_woken_tick_settles_its_wakes_in_the_commit_of_the_group() {
    let world = World::at(100);
    let engine = world.engine([(A, Registration::inline(appends()).group_max(64))]);
    for n in 0..64 {
        world.put(A, &n.to_string(), 50);
    }
    world.put(A, "later", 500);
    let commits = world.store.counts().commits();

    let tick = world.woken_tick(&engine, TickBudget::default());
    assert_eq!(tick.report.total.fired, 32, "the default cap of a kind");
    let tick = world.woken_tick(&engine, TickBudget::default());
    assert_eq!(tick.report.total.fired, 32);
    assert_eq!(
        world.store.counts().commits() - commits,
        2,
        "one commit a tick, settle included"
    );
    assert_eq!(tick.next_wakes, [(A, Some(500))]);
    let wakes: Vec<u64> = world.memory.wakes().iter().map(|wake| wake.at_ms).collect();
    assert_eq!(wakes, [500]);
}

#[test]
fn a_failed_timer_moves_to_its_next_attempt_with_its_name() {
    let world = World::at(1_000);
    let engine = world.engine([(A, Registration::inline(fails("no")))]);
    world.put_named(A, "x", 900);

    let report = world.tick(&engine).report;
    assert_eq!(report.total.failed, 1);
    let (key, row) = world.timers().pop().unwrap();
    assert!((6_000..=7_000).contains(&key.due_ms), "{key:?}");
    assert_eq!((row.header.attempt, row.header.original_due_ms), (1, 900));
    assert_eq!(row.header.failure.unwrap().error, "no");
    assert_eq!(row.payload, "payload");
    world.check_names();
}

#[test]
fn a_timer_dies_after_its_attempts_and_keeps_its_last_error() {
    let world = World::at(1_000);
    let engine = world.engine([(A, Registration::inline(fails("no")))]);
    world.put_named(A, "x", 900);
    for _ in 0..20 {
        world.clock.advance_ms(800_000);
        let _ = world.tick(&engine);
        world.check_names();
    }
    assert!(world.timers().is_empty());
    let (_, row) = world.dead().pop().unwrap();
    assert_eq!(
        (
            row.header.attempt,
            row.header.failure.unwrap().error.as_str()
        ),
        (20, "no")
    );
}
