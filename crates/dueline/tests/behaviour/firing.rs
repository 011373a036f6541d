//! Effects, reschedules and timers that handlers put: what commits, where it goes, when it is next
//! looked at.

use dueline::Bytes;
use dueline::rows::{Header, TimerKey, TimerRow};
use dueline::store::{Batch, Group, Partition, WakeStore};
use dueline::timers::{Fired, Registration, TickBudget};
use dueline_testkit::{CommitFault, block_on, handler};

use crate::world::handlers::{Seen, appends, fails, notes, reference_of, says};
use crate::world::{A, B, World};

#[test]
fn effects_and_the_removal_of_the_timer_are_one_batch() {
    let world = World::at(1_000);
    let engine = world.engine([(
        A,
        Registration::inline(says(|_| Fired::Done(Batch::new().put("effect", "yes")))),
    )]);
    world.put_named(A, "x", 900);
    let batches = Seen::default();
    let watch = batches.clone();
    world.store.on_commit(move |_, group: &Group| {
        for batch in &group.batches {
            watch.note(format!(
                "{} guards, {} writes",
                batch.preconditions.len(),
                batch.writes.len()
            ));
        }
    });
    assert_eq!(world.run(&engine).total.fired, 1);
    // NotBefore, timer, name; effect, timer, name.
    assert_eq!(batches.all(), ["3 guards, 3 writes"]);
    assert_eq!(world.get("effect").unwrap(), "yes");
    assert_eq!(world.memory.rows(&world.partition).len(), 1, "nothing else");
}

#[test]
fn a_handler_whose_guard_is_lost_once_runs_again_in_the_same_tick_and_fires() {
    let world = World::at(1_000);
    let engine = world.engine([(A, Registration::inline(appends()))]);
    world.put(A, "x", 900);
    world.store.before_commit(1, |inner, partition, _| {
        let race = Batch::new().put("log", "other ");
        assert!(
            block_on(inner.apply(partition, race))
                .unwrap()
                .is_committed()
        );
    });
    let report = world.run(&engine);
    assert_eq!((report.total.fired, report.total.failed), (1, 0));
    assert_eq!(world.get("log").unwrap(), "other x ");
}

#[test]
fn a_handler_whose_guard_is_always_lost_runs_four_times_and_has_then_failed_once() {
    let world = World::at(1_000);
    let seen = Seen::default();
    let engine = world.engine([(A, Registration::inline(lost_guard(&seen)))]);
    world.put(A, "x", 900);
    let report = world.run(&engine);
    assert_eq!((report.total.failed, report.total.raced), (1, 0));
    assert_eq!(seen.len(), 4);
    let (key, row) = world.timers().pop().unwrap();
    assert_eq!(row.header.attempt, 1);
    assert_eq!(report.next_wake_ms, Some(key.due_ms));
}

fn lost_guard(seen: &Seen) -> impl dueline::timers::TimerHandler + use<> {
    let seen = seen.clone();
    handler(move |_, timer| {
        seen.note(reference_of(timer));
        Box::pin(async {
            Ok(Fired::Done(
                Batch::new().require_present("gone").put("effect", "yes"),
            ))
        })
    })
}

#[test]
fn a_timer_changed_between_the_read_and_the_commit_drops_the_run_and_keeps_the_change() {
    let world = World::at(1_000);
    let engine = world.engine([(A, Registration::inline(appends()))]);
    let old = world.put(A, "x", 900);
    let new = TimerKey {
        kind: A,
        due_ms: 5_000,
        generation: 99,
        reference: Bytes::from_static(b"x"),
    }
    .encode();
    let changed = Batch::new()
        .delete(old)
        .put(new.clone(), TimerRow::default().encode());
    world.store.before_commit(1, move |inner, partition, _| {
        assert!(
            block_on(inner.apply(partition, changed))
                .unwrap()
                .is_committed()
        );
    });
    let report = world.run(&engine);
    assert_eq!(
        (report.total.raced, report.total.fired, report.total.failed),
        (1, 0, 0)
    );
    assert_eq!(world.get("log"), None);
    assert!(world.get(new).is_some());
    assert_eq!(report.next_wake_ms, Some(5_000));
}

#[test]
fn a_reschedule_moves_the_timer_under_a_new_generation_with_its_attempts_at_zero() {
    let world = World::at(1_000);
    let engine = world.engine([(
        A,
        Registration::inline(says(|_| Fired::Reschedule {
            due_at_ms: 1_500,
            payload: "next".into(),
            batch: Batch::new().put("effect", "yes"),
        })),
    )]);
    let header = Header {
        attempt: 3,
        ..Header::default()
    };
    let old = world.put_with(A, "x", 900, header, b"first");
    let report = world.run(&engine);
    assert_eq!((report.total.rescheduled, report.total.fired), (1, 0));
    assert_eq!(report.next_wake_ms, Some(1_500));
    assert_eq!(world.get("effect").unwrap(), "yes");
    let (key, row) = world.timers().pop().unwrap();
    assert_eq!((key.due_ms, row.payload.as_ref()), (1_500, &b"next"[..]));
    assert_eq!((row.header.attempt, row.header.original_due_ms), (0, 1_500));
    assert!(key.generation > TimerKey::decode(&old).unwrap().generation);
    assert_eq!(world.get(old), None);
}

/// A reschedule to the very due that fires is not a failure: the key is floored behind the tick,
/// the due as asked stays in the header.
#[test]
fn a_reschedule_into_the_past_fires_once_a_tick_and_keeps_the_due_as_asked() {
    let world = World::at(10_000);
    let seen = Seen::default();
    let noted = seen.clone();
    let engine = world.engine([(
        A,
        Registration::inline(handler(move |_, timer| {
            noted.note(timer.due_at_ms().to_string());
            let due_at_ms = timer.due_at_ms();
            Box::pin(async move {
                Ok(Fired::Reschedule {
                    due_at_ms,
                    payload: Bytes::new(),
                    batch: Batch::new(),
                })
            })
        })),
    )]);
    for n in 0..70 {
        world.put_named(A, &format!("x{n}"), 900);
    }
    for tick in 1..=3 {
        let report = world.run_with(&engine, TickBudget::unlimited());
        assert_eq!(report.total.rescheduled, 70, "in tick {tick}");
        assert_eq!(seen.take(), vec!["900"; 70], "in tick {tick}");
        let behind_ms = world.clock_ms() + 1;
        assert!(
            world
                .timers()
                .iter()
                .all(|(key, _)| key.due_ms == behind_ms)
        );
        world.check_names();
        world.clock.advance_ms(1);
    }
    assert!(
        world
            .timers()
            .iter()
            .all(|(_, row)| row.header.original_due_ms == 900)
    );
}

#[test]
fn a_timer_put_by_a_handler_waits_for_the_next_tick_and_lowers_the_wake() {
    let world = World::at(1_000);
    let seen = Seen::default();
    let puts = |due_ms: u64| {
        let key = TimerKey {
            kind: B,
            due_ms,
            generation: due_ms,
            reference: Bytes::from_static(b"new"),
        };
        Batch::new().put(key.encode(), TimerRow::default().encode())
    };
    let engine = world.engine([
        (
            A,
            Registration::inline(says(move |timer| {
                Fired::Done(puts(if timer.reference() == "past" {
                    10
                } else {
                    1_200
                }))
            })),
        ),
        (B, Registration::inline(notes(&seen))),
    ]);
    world.put(A, "future", 900);
    world.put(B, "later", 2_000);
    assert_eq!(world.run(&engine).next_wake_ms, Some(1_200));

    world.put(A, "past", 900);
    world.put(B, "due", 950);
    let report = world.run(&engine);
    assert_eq!(seen.take(), ["due"], "the new one waits");
    assert_eq!(report.next_wake_ms, Some(1_000), "now");
    world.run(&engine);
    assert_eq!(seen.take(), ["new"]);
}

#[test]
fn a_timer_of_a_kind_that_had_none_before_the_tick_lowers_the_wake() {
    let world = World::at(1_000);
    let key = TimerKey {
        kind: B,
        due_ms: 1_200,
        generation: 7,
        reference: Bytes::from_static(b"new"),
    };
    let puts = Batch::new().put(key.encode(), TimerRow::default().encode());
    let engine = world.engine([
        (
            A,
            Registration::inline(says(move |_| Fired::Done(puts.clone()))),
        ),
        (B, Registration::inline(notes(&Seen::default()))),
    ]);
    world.put(A, "first", 900);
    assert_eq!(world.run(&engine).next_wake_ms, Some(1_200));
}

/// In a group the batches are not committed yet when the next page is read; the rule is the same.
#[test]
fn a_timer_put_by_a_handler_of_a_group_waits_for_the_next_tick() {
    for group_max in [1, 64] {
        let world = World::at(1_000);
        let seen = Seen::default();
        let noted = seen.clone();
        let engine = world.engine([(
            A,
            Registration::inline(says(move |timer| {
                noted.note(reference_of(timer));
                let key = TimerKey {
                    kind: A,
                    due_ms: 990,
                    generation: timer.generation() + 1_000,
                    reference: Bytes::from_static(b"child"),
                };
                Fired::Done(if timer.reference() == "child" {
                    Batch::new()
                } else {
                    Batch::new().put(key.encode(), TimerRow::default().encode())
                })
            }))
            .group_max(group_max),
        )]);
        for n in 0..100 {
            world.put(A, &format!("x{n}"), 900);
        }
        let report = world.run_with(&engine, TickBudget::unlimited());
        assert_eq!(report.total.fired, 100, "groups of {group_max}");
        assert!(!seen.take().contains(&"child".to_owned()));
        let report = world.run_with(&engine, TickBudget::unlimited());
        assert_eq!(report.total.fired, 100, "groups of {group_max}");
        assert!(world.timers().is_empty());
    }
}

#[test]
fn a_retry_and_an_error_are_both_failures_and_a_nearer_timer_wins_the_wake() {
    let world = World::at(1_000);
    let engine = world.engine([
        (A, Registration::inline(fails("no"))),
        (
            B,
            Registration::inline(says(|_| Fired::Retry {
                after_ms: Some(700),
                reason: "busy".to_owned(),
            })),
        ),
    ]);
    world.put(A, "x", 900);
    world.put(B, "y", 900);
    let report = world.run(&engine);
    assert_eq!(report.total.failed, 2);
    assert_eq!(report.next_wake_ms, Some(1_700));
    let busy = &world.timers()[1];
    assert_eq!(busy.0.due_ms, 1_700, "as the handler asked, without jitter");
    assert_eq!(busy.1.header.failure.as_ref().unwrap().error, "busy");
    world.put(A, "nearer", 1_200);
    assert_eq!(world.run(&engine).next_wake_ms, Some(1_200));
}

#[test]
fn a_handler_that_says_dead_buries_the_timer_together_with_its_effects() {
    let world = World::at(1_000);
    let engine = world.engine([(
        A,
        Registration::inline(says(|_| Fired::Dead {
            reason: "gone for good".to_owned(),
            batch: Batch::new().put("effect", "yes"),
        })),
    )]);
    world.put_named(A, "x", 900);
    let report = world.run(&engine);
    assert_eq!((report.total.dead, report.next_wake_ms), (1, None));
    assert_eq!(world.get("effect").unwrap(), "yes");
    let (key, row) = world.dead().pop().unwrap();
    assert_eq!((key.dead_at_ms, row.reason.as_str()), (1_000, "handler"));
    assert_eq!(row.header.failure.unwrap().error, "gone for good");
    assert_eq!(row.payload, "payload");
    world.check_names();
}

#[test]
fn the_context_shows_the_time_of_each_run_and_refuses_other_partitions() {
    let world = World::at(1_000);
    let seen = Seen::default();
    let (clock, noted) = (world.clock.clone(), seen.clone());
    let engine = world.engine([(
        A,
        Registration::inline(handler(move |ctx, timer| {
            let (clock, noted) = (clock.clone(), noted.clone());
            Box::pin(async move {
                noted.note(format!("{} late {}", ctx.now_ms(), timer.lateness_ms()));
                clock.advance_ms(50);
                let other = Partition::new("other")?;
                let error = ctx.reads().get(&other, &"x".into()).await.unwrap_err();
                noted.note(error.detail().to_owned());
                Ok(Fired::Done(Batch::new()))
            })
        })),
    )]);
    world.put(A, "x", 900);
    world.put(A, "y", 990);
    assert_eq!(world.run(&engine).worst_lateness_ms, 100);
    let seen = seen.all();
    assert_eq!(
        (seen[0].as_str(), seen[2].as_str()),
        ("1000 late 100", "1050 late 60")
    );
    assert!(seen[1].contains("its own partition"), "{}", seen[1]);
}

#[test]
fn a_partition_of_two_engines_fires_each_timer_once() {
    let world = World::at(1_000);
    let engine = world.engine([(A, Registration::inline(appends()))]);
    let other = engine.clone();
    world.put(A, "x", 900);
    let (clock, partition) = (world.clock.clone(), world.partition.clone());
    world.store.before_commit(1, move |_, _, _| {
        // The other driver's whole tick falls between this one's read and its commit.
        let tick = dueline::timers::run_due(&other, &partition, TickBudget::default());
        let report = crate::world::handlers::complete(&clock, tick).report;
        assert_eq!(report.total.fired, 1);
    });
    let report = world.run(&engine);
    assert_eq!((report.total.fired, report.total.raced), (0, 1));
    assert_eq!(world.get("log").unwrap(), "x ");
    let _: &dyn WakeStore = world.memory.as_ref();
}

/// The answer to the commit that put it was lost; the rule is the same.
#[test]
fn a_timer_put_by_a_commit_in_doubt_waits_for_the_next_tick_too() {
    let world = World::at(1_000);
    let seen = Seen::default();
    let engine = world.engine([
        (
            A,
            Registration::inline(says(|_| {
                let key = TimerKey {
                    kind: B,
                    due_ms: 990,
                    generation: 1_000_000,
                    reference: Bytes::from_static(b"new"),
                };
                Fired::Done(Batch::new().put(key.encode(), TimerRow::default().encode()))
            })),
        ),
        (B, Registration::inline(notes(&seen))),
    ]);
    world.put(A, "x", 10);
    // More than a page, so that the lane is read again after the commit.
    for n in 0..100 {
        world.put(B, &n.to_string(), 900);
    }
    world.store.fail_commit(1, CommitFault::AnswerLost);
    let report = world.run_with(&engine, TickBudget::unlimited());
    assert_eq!((report.total.unknown_outcome, report.total.fired), (1, 100));
    assert!(!seen.take().contains(&"new".to_owned()));
    world.run(&engine);
    assert_eq!(seen.take(), ["new"]);
}
