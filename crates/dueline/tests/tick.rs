//! What one tick does: due timers fire in order, effects commit with the timer, budgets and caps
//! hold, and the report says when to look again.
#![cfg(test)]

mod world;

use dueline::rows::class;
use dueline::store::Batch;
use dueline::timers::{Fired, HandlerError, Registration, TickBudget, TimerHandler};
use dueline_testkit::handler;
use world::{A, B, World};

/// Appends the timer's reference to a row of its partition.
fn appends() -> impl TimerHandler {
    handler(|ctx, timer| {
        Box::pin(async move {
            let log = ctx.get(&"log".into()).await?.unwrap_or_default();
            let mut longer = log.to_vec();
            longer.extend_from_slice(timer.reference());
            longer.push(b' ');
            Ok(Fired::Done(
                Batch::new()
                    .require_unchanged("log", Some(log).filter(|l| !l.is_empty()))
                    .put("log", longer),
            ))
        })
    })
}

fn fails() -> impl TimerHandler {
    handler(|_, _| Box::pin(async { Err(HandlerError::new("no")) }))
}

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
    let engine = world.engine([(A, Registration::inline(fails()))]);
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
    let engine = world.engine([(A, Registration::inline(fails()))]);
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

#[test]
fn a_lost_guard_of_the_handler_is_planned_again_three_times_and_then_a_failure() {
    let world = World::at(1_000);
    let engine = world.engine([(
        A,
        Registration::inline(handler(|_, _| {
            Box::pin(async {
                Ok(Fired::Done(
                    Batch::new().require_present("gone").put("x", "y"),
                ))
            })
        })),
    )]);
    world.put(A, "x", 900);
    let report = world.tick(&engine).report;
    assert_eq!(
        (report.total.failed, report.total.raced, report.total.fired),
        (1, 0, 0)
    );
    assert_eq!(world.get("x"), None);
    assert_eq!(world.timers()[0].1.header.attempt, 1);
}

#[test]
fn a_malformed_row_is_set_aside_and_hides_nothing() {
    let world = World::at(100);
    let engine = world.engine([(A, Registration::inline(appends()))]);
    let short = [0x77, 0, A.0, 0, 0, 0, 0, 0, 0, 0];
    world.commit(Batch::new().put(short.to_vec(), "bytes"));
    world.put(A, "x", 90);
    let tick = world.woken_tick(&engine, TickBudget::default());
    assert_eq!((tick.report.quarantined, tick.report.total.fired), (1, 1));
    let set_aside = world.rows(class::QUARANTINE);
    assert_eq!(set_aside.len(), 1);
    assert_eq!(set_aside[0].1, "bytes");
    assert!(world.memory.wakes().is_empty());
}

#[test]
fn a_capped_kind_of_a_thousand_rows_does_not_delay_another() {
    let world = World::at(10_000);
    let engine = world.engine([
        (A, Registration::inline(appends()).per_tick_max(1)),
        (B, Registration::inline(appends())),
    ]);
    for n in 0..1_000 {
        world.put(A, &format!("a{n}"), n);
    }
    world.put(B, "b", 9_999);
    let report = world.woken_tick(&engine, TickBudget::default()).report;
    assert_eq!(report.per_kind[&A].fired, 1);
    assert_eq!(report.per_kind[&B].fired, 1, "in the first tick");
}
