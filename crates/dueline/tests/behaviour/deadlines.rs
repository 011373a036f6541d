//! Inline runs that wait: their deadline, and the group before them.

use std::time::Duration;

use dueline::store::Batch;
use dueline::timers::{Fired, Registration, TickBudget, run_due};
use dueline_testkit::handler;

use crate::world::handlers::{Seen, complete, hangs, notes, poll};
use crate::world::{A, B, World};

#[test]
fn an_inline_run_over_its_deadline_is_dropped_and_counts_as_a_failure() {
    let world = World::at(1_000);
    let seen = Seen::default();
    let engine = world.engine([
        (A, Registration::inline(hangs())),
        (B, Registration::inline(notes(&seen))),
    ]);
    world.put(A, "x", 900);
    world.put(B, "y", 950);
    let tick = run_due(&engine, &world.partition, TickBudget::default());
    let report = complete(&world.clock, tick).report;
    assert_eq!((report.total.failed, report.total.fired), (1, 1));
    assert_eq!(world.clock_ms(), 6_000, "the default deadline of 5 s");
    let error = world.timers()[0].1.header.failure.clone().unwrap().error;
    assert!(error.contains("deadline of 5000 ms"), "{error}");
    assert_eq!(world.clock.sleepers(), 0);
}

/// A handler of a group that waits for something else than the store does not hold up those that
/// fired before it.
#[test]
fn a_group_commits_before_it_waits_for_a_slow_member() {
    let world = World::at(1_000);
    let runtime = world.runtime.clone();
    let engine = world.engine([(
        A,
        Registration::inline(handler(move |_, timer| {
            let slow = timer.reference() == "slow";
            let runtime = runtime.clone();
            Box::pin(async move {
                if slow {
                    runtime.sleep(Duration::from_secs(1)).await;
                }
                Ok(Fired::Done(Batch::new()))
            })
        }))
        .group_max(64),
    )]);
    world.put(A, "a", 900);
    world.put(A, "b", 900);
    world.put(A, "slow", 900);
    let mut tick = std::pin::pin!(run_due(&engine, &world.partition, TickBudget::default(),));
    assert!(poll(tick.as_mut()).is_pending());
    assert_eq!(world.timers().len(), 1, "the two are committed");
    assert_eq!(complete(&world.clock, tick).report.total.fired, 3);
}
