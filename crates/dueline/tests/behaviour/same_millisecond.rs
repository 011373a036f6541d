//! Many timers of one millisecond: all fire, once, in the order in which they were scheduled.

use std::collections::BTreeSet;

use dueline::store::Batch;
use dueline::timers::{Fired, Policy, Registration, RetryPolicy, TickBudget, Timer};
use dueline_testkit::{block_on, handler};

use crate::world::handlers::{Seen, fails, notes};
use crate::world::{A, World};

#[test]
fn a_hundred_failing_anonymous_timers_of_one_reference_keep_apart() {
    for (jitter_percent, group_max) in [(20, 1), (20, 64), (0, 1), (0, 64)] {
        let world = World::at(1_000);
        let policy = RetryPolicy {
            jitter_percent,
            ..RetryPolicy::default()
        };
        let engine = world.engine([(
            A,
            Registration::inline(fails("no"))
                .retry(policy)
                .group_max(group_max),
        )]);
        for n in 0..100u32 {
            let timer = Timer::new(A, "same").due_at(900).payload(n.to_string());
            world.schedule(timer, Policy::Replace);
        }
        let report = world.run_with(&engine, TickBudget::unlimited());
        assert_eq!(report.total.failed, 100);
        let timers = world.timers();
        let payloads: BTreeSet<_> = timers.iter().map(|(_, row)| row.payload.clone()).collect();
        assert_eq!(
            (timers.len(), payloads.len()),
            (100, 100),
            "none replaced another"
        );
        let dues: BTreeSet<u64> = timers.iter().map(|(key, _)| key.due_ms).collect();
        if jitter_percent > 0 {
            assert!(dues.len() > 80, "{} distinct dues", dues.len());
        }
    }
}

#[test]
fn ten_thousand_timers_of_one_due_fire_once_each_in_the_order_of_scheduling() {
    let world = World::at(1_000);
    let seen = Seen::default();
    let engine = world.engine([(A, Registration::inline(notes(&seen)).group_max(256))]);
    let verbs = world.verbs();
    for n in 0..10_000 {
        let timer = Timer::new(A, format!("{n}")).due_at(5_000);
        block_on(verbs.schedule(&world.partition, timer, Policy::Replace)).unwrap();
        if n % 100 == 0 {
            world.clock.advance_ms(1);
        }
    }
    world.clock.advance_ms(10_000);
    let mut ticks = 0;
    while world
        .woken_tick(&engine, TickBudget::native())
        .report
        .next_wake_ms
        .is_some()
    {
        ticks += 1;
    }
    assert!(ticks <= 10, "{ticks} ticks");
    let expected: Vec<String> = (0..10_000).map(|n| n.to_string()).collect();
    assert_eq!(seen.all(), expected);
    assert!(world.timers().is_empty());
}

#[test]
fn a_clock_that_steps_back_does_not_break_the_order_of_one_writer() {
    let world = World::at(1_000_000);
    let seen = Seen::default();
    let engine = world.engine([(A, Registration::inline(notes(&seen)))]);
    for n in 0..50 {
        world.clock.jump_wall_ms(-1_000);
        let timer = Timer::new(A, format!("{n}")).due_at(5_000);
        world.schedule(timer, Policy::Replace);
    }
    world.run_with(&engine, TickBudget::unlimited());
    let expected: Vec<String> = (0..50).map(|n| n.to_string()).collect();
    assert_eq!(seen.all(), expected);
}

/// One commit holds many timers, and the effects of all of them are there in order.
#[test]
fn a_page_of_sixty_four_timers_is_one_commit_and_sixty_four_without_groups() {
    for (group_max, commits) in [(64, 1), (1, 64)] {
        let world = World::at(1_000);
        let engine = world.engine([(
            A,
            Registration::inline(handler(|ctx, timer| {
                Box::pin(async move {
                    let count = ctx.get(&"count".into()).await?;
                    let next = count.as_ref().map_or(0, |bytes| bytes[0]) + 1;
                    Ok(Fired::Done(
                        Batch::new()
                            .require_unchanged("count", count)
                            .put("count", vec![next])
                            .put(timer.reference().clone(), vec![next]),
                    ))
                })
            }))
            .group_max(group_max),
        )]);
        for n in 0..64u32 {
            world.put(A, &format!("x{n:02}"), 900);
        }
        let before = world.store.counts();
        assert_eq!(
            world
                .woken_tick(&engine, TickBudget::native())
                .report
                .total
                .fired,
            64
        );
        assert_eq!((world.store.counts() - before).commits(), commits);
        for n in 0..64u8 {
            assert_eq!(world.get(format!("x{n:02}")).unwrap(), vec![n + 1]);
        }
    }
}
