//! A failure for want of something of the process itself costs a timer no attempt.

use dueline::timers::{HandlerError, Registration, RetryPolicy, TickBudget};
use dueline_testkit::{block_on, handler};

use crate::world::handlers::{Calls, Seen};
use crate::world::{A, World};

fn three_attempts() -> RetryPolicy {
    RetryPolicy {
        attempts_max: Some(3),
        ..RetryPolicy::default()
    }
}

#[test]
fn an_inline_run_that_lacks_something_is_tried_again_and_again_and_never_dies_of_it() {
    let world = World::at(1_000);
    let starved = handler(|_, _| Box::pin(async { Err(HandlerError::uncharged("no file left")) }));
    let engine = world.engine([(A, Registration::inline(starved).retry(three_attempts()))]);
    world.put_named(A, "x", 900);
    for _ in 0..10 {
        assert_eq!(world.run(&engine).total.failed, 1);
        let (key, row) = world.timers().pop().unwrap();
        assert_eq!(row.header.attempt, 0);
        assert_eq!(row.header.failure.unwrap().error, "no file left");
        assert!(
            key.due_ms >= world.clock_ms() + 5_000,
            "it waits its back-off"
        );
        world.check_names();
        world.clock.advance_ms(10_000);
    }
    assert!(world.dead().is_empty());
}

#[test]
fn a_call_that_lacks_something_gives_its_attempt_back() {
    let world = World::at(1_000);
    let seen = Seen::default();
    let calls = Calls::noting(&seen)
        .call(|_| Box::pin(async { Err(HandlerError::uncharged("no port left")) }));
    let engine = world.engine([(A, Registration::detached(calls).retry(three_attempts()))]);
    world.put_named(A, "x", 900);
    for _ in 0..10 {
        let tick = world.woken_tick(&engine, TickBudget::default());
        for call in tick.calls {
            let finished = block_on(call.run());
            assert_eq!(block_on(engine.settle(finished)).failed, 1);
        }
        let (_, row) = world.timers().pop().unwrap();
        assert_eq!((row.header.attempt, row.header.flags.claimed), (0, false));
        world.check_names();
        world.clock.advance_ms(10_000);
    }
    assert!(world.dead().is_empty());
}
