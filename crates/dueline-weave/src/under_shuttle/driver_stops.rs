//! A driver that is stopped while timers are put, fire and call out.

use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use dueline_testkit::partition;
use shuttle::future::block_on;

use super::driver::ShutdownReport;
use super::driver_world::{CALLING, KIND, World, schedule};
use super::{explore, thread};
use crate::model::Model;

const GRACE: Duration = Duration::from_secs(10);
const TIMERS: [(&str, &str); 2] = [("one", "a"), ("two", "b")];

fn ended(stopped: ShutdownReport) {
    assert!(
        stopped.threads_stuck == 0 && stopped.unreleased == 0,
        "{stopped:?}"
    );
}

/// All timers have had their effect, once.
fn all_done(world: &World) {
    for (home, reference) in TIMERS {
        assert_eq!(world.left(&partition(home)), 0);
        assert!(world.has_effect(&partition(home), reference), "{reference}");
    }
}

pub(crate) const A_STOP_LOSES_NOTHING: Model = Model {
    name: "a_stop_loses_nothing",
    bugs: &["stage_is_entered_and_nobody_told"],
    explore: |effort| {
        explore(false, effort, || {
            stopped_under_its_callers(&World::in_memory())
        })
    },
};

/// A driver is stopped while two threads put timers. It ends within its grace period, and nothing runs
/// behind its end; the next driver fires what it has left, and nothing twice.
fn stopped_under_its_callers(world: &World) {
    let handle = world.drive(2);
    let threads = TIMERS.map(|(home, reference)| {
        let timers = world.timers();
        thread::spawn(move || schedule(&timers, &partition(home), KIND, reference, 0))
    });
    let stopped = block_on(handle.shutdown(GRACE));
    assert!(stopped.finished);
    ended(stopped);
    let fired = world.fired().count();
    for thread in threads {
        assert!(thread.join().is_ok());
    }
    drop(handle);
    assert_eq!(world.fired().count(), fired, "ran behind the end");
    let next = world.drive(2);
    world.fired().reach(2);
    ended(block_on(next.shutdown(GRACE)));
    assert_eq!(world.fired().count(), 2);
    all_done(world);
}

pub(crate) const CALLS_ARE_SETTLED_OR_GIVEN_BACK: Model = Model {
    name: "calls_are_settled_or_given_back",
    bugs: &[
        "call_is_over_before_its_settle_is_queued",
        "calls_are_refused_while_ticks_go_on",
    ],
    explore: |effort| {
        explore(false, effort, || {
            stopped_under_its_calls(&World::in_memory())
        })
    },
};

/// A driver is stopped while a call is under way, and a second one or about to be, and its grace period may end before
/// they do. Each call is settled or given back: another driver finds nothing claimed, and brings all to
/// its end at once.
fn stopped_under_its_calls(world: &World) {
    for (home, reference) in TIMERS {
        schedule(&world.timers(), &partition(home), CALLING, reference, 0);
    }
    let handle = world.drive(1);
    world.fired().reach(1);
    let mut stopping = pin!(handle.shutdown(GRACE));
    let begun = stopping
        .as_mut()
        .poll(&mut Context::from_waker(Waker::noop()));
    let stopped = match begun {
        Poll::Ready(stopped) => stopped,
        Poll::Pending => {
            // Once: a sleep that begins behind the grace period never ends.
            let clock = world.clock.clone();
            let passing = thread::spawn(move || clock.advance(GRACE));
            let stopped = block_on(stopping);
            assert!(passing.join().is_ok());
            stopped
        }
    };
    // Within the grace period time may pass while the threads end.
    assert!(
        stopped.finished || stopped.threads_stuck == 0,
        "{stopped:?}"
    );
    assert_eq!(stopped.unreleased, 0, "{stopped:?}");
    let claimed = handle.status().totals.claimed;
    assert!(claimed <= 2, "claimed {claimed} times");
    let next = world.drive(1);
    assert!(block_on(next.drain(GRACE)).idle);
    all_done(world);
    ended(block_on(next.shutdown(GRACE)));
}

pub(crate) const EVERY_STOP_ENDS: Model = Model {
    name: "every_stop_ends",
    bugs: &["one_of_those_that_wait_for_idle_is_woken"],
    explore: |effort| explore(false, effort, || stopped_twice(&World::in_memory())),
};

/// Two threads stop a driver while a third puts a timer: the second cuts the first short, both end, and
/// the timer is there or has had its effect.
fn stopped_twice(world: &World) {
    let handle = world.drive(2);
    let (home, reference) = TIMERS[0];
    let timers = world.timers();
    let putting = thread::spawn(move || schedule(&timers, &partition(home), KIND, reference, 0));
    let stopping = {
        let handle = handle.clone();
        thread::spawn(move || ended(block_on(handle.shutdown(GRACE))))
    };
    ended(block_on(handle.shutdown(GRACE)));
    assert!(stopping.join().is_ok() && putting.join().is_ok());
    let had_effect = world.has_effect(&partition(home), reference);
    assert_eq!(world.left(&partition(home)), usize::from(!had_effect));
}
