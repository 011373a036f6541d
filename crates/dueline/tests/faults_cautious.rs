//! Goal: after a crash a timer is charged for its own runs alone.
//! Method: a handler that never comes back stands for one that kills its process: its tick is
//! dropped, and a new engine looks at the partition cautiously.
#![cfg(test)]
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test that goes wrong here has found something"
)]

mod world;

use std::future::{Future, pending};
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use dueline::store::{Batch, StoreErrorKind};
use dueline::timers::{Fired, Registration, RetryPolicy, TickBudget, TickRequest, TimerHandler};
use dueline_testkit::{CommitFault, handler};
use world::{A, B, World};

/// Polls once: a handler that kills the process is a future that is dropped behind this.
fn poll_once<T>(future: impl Future<Output = T>) -> Poll<T> {
    let mut context = Context::from_waker(Waker::noop());
    pin!(future).poll(&mut context)
}

fn notes_attempts(seen: &Arc<Mutex<Vec<u16>>>) -> impl TimerHandler + use<> {
    let seen = Arc::clone(seen);
    handler(move |_, timer| {
        seen.lock().unwrap().push(timer.attempt());
        Box::pin(async { Ok(Fired::Done(Batch::new())) })
    })
}

fn cautious_tick(world: &World, engine: &dueline::timers::Engine) -> bool {
    let request = TickRequest {
        partition: &world.partition,
        wakes: None,
        cautious_until_ms: Some(u64::MAX),
    };
    let mut state = engine.start_tick(TickBudget::default());
    poll_once(engine.tick(request, &mut state)).is_ready()
}

#[test]
fn a_cautious_run_whose_end_the_store_refuses_is_given_back_with_its_attempt() {
    for named in [false, true] {
        let world = World::at(1_000);
        let seen = Arc::new(Mutex::new(Vec::new()));
        let engine = world.engine([(A, Registration::inline(notes_attempts(&seen)))]);
        if named {
            world.put_named(A, "a", 900);
        } else {
            world.put(A, "a", 900);
        }
        // The first commit is the claim.
        let refused = CommitFault::NotWritten(StoreErrorKind::Unavailable);
        world.store.fail_commit(2, refused);
        assert!(cautious_tick(&world, &engine));
        let (key, row) = world.timers().pop().unwrap();
        assert_eq!((row.header.attempt, row.header.flags.claimed), (0, false));
        assert_eq!(key.due_ms, 1_000, "it is due at once");
        world.check_names();
        assert!(cautious_tick(&world, &engine));
        assert_eq!(
            *seen.lock().unwrap(),
            [1, 1],
            "run again as its first attempt"
        );
        assert!(world.timers().is_empty());
    }
}

#[test]
fn a_handler_that_kills_its_process_charges_no_attempt_to_the_timer_of_another_lane() {
    let world = World::at(1_000);
    let seen = Arc::new(Mutex::new(Vec::new()));
    let kills = || handler(|_, _| Box::pin(pending()));
    let retry = RetryPolicy {
        attempts_max: Some(3),
        ..RetryPolicy::default()
    };
    world.put(A, "kills", 900);
    world.put(B, "innocent", 901);
    for _ in 0..8 {
        let engine = world.engine([
            (A, Registration::inline(kills()).retry(retry)),
            (B, Registration::inline(notes_attempts(&seen)).retry(retry)),
        ]);
        cautious_tick(&world, &engine);
        // Claims end, and the next process finds the timers due again.
        world.clock.advance_ms(20_000);
    }
    assert_eq!(*seen.lock().unwrap(), [1], "the innocent one ran once");
    let dead = world.dead();
    assert_eq!(dead.len(), 1, "{dead:?}");
    assert_eq!(dead[0].0.reference, "kills");
    assert!(world.timers().is_empty());
}
