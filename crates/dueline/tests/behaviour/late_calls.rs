//! Calls that begin long after their claim was made, because the tick that made it went on.
//!
//! Method: a slow inline timer behind the claim, in the same tick.

use std::future::pending;
use std::time::Duration;

use dueline::timers::{Engine, Registration, TickBudget, run_due};

use crate::world::handlers::{Calls, Seen, complete, hangs};
use crate::world::{A, B, World};

/// A call that never ends, claimed by a tick that goes on for this long.
fn claimed_by_slow_tick(world: &World, seen: &Seen, slow_ms: u64) -> Engine {
    let noted = seen.clone();
    let never = Calls::noting(seen).call(move |_| {
        noted.note("called");
        Box::pin(pending())
    });
    let engine = world.engine([
        (A, Registration::detached(never)),
        (B, Registration::inline(hangs()).deadline_ms(slow_ms)),
    ]);
    world.put(A, "call", 900);
    world.put(B, "slow", 950);
    engine
}

#[test]
fn a_call_that_begins_late_is_over_before_its_claim_is() {
    let (world, seen) = (World::at(1_000), Seen::default());
    let engine = claimed_by_slow_tick(&world, &seen, 20_000);
    let tick = run_due(&engine, &world.partition, TickBudget::unlimited());
    let call = complete(&world.clock, tick).calls.pop().unwrap();
    assert_eq!(world.clock_ms(), 21_000);
    let ends_at_ms = call.claim().ends_at_ms();
    let finished = complete(&world.clock, call.run());
    assert_eq!(seen.len(), 1);
    let left = Duration::from_millis(ends_at_ms.saturating_sub(world.clock_ms()));
    assert_eq!(left, Duration::from_secs(5), "to settle");
    assert_eq!(complete(&world.clock, engine.settle(finished)).failed, 1);
}

#[test]
fn a_call_whose_claim_is_over_does_not_begin_and_has_its_attempt_back() {
    let (world, seen) = (World::at(1_000), Seen::default());
    let engine = claimed_by_slow_tick(&world, &seen, 60_000);
    let tick = run_due(&engine, &world.partition, TickBudget::unlimited());
    let call = complete(&world.clock, tick).calls.pop().unwrap();
    let finished = complete(&world.clock, call.run());
    assert_eq!(seen.len(), 0, "it would run beside the next one");
    complete(&world.clock, engine.settle(finished));
    let (_, row) = world
        .timers()
        .into_iter()
        .find(|(key, _)| key.kind == A)
        .unwrap();
    assert!(!row.header.flags.claimed);
    assert_eq!(row.header.attempt, 0);
}
