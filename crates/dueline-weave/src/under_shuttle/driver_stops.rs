//! A driver that is stopped while timers are put and fire.

use std::time::Duration;

use shuttle::future::block_on;

use super::driver_world::{World, home, schedule};
use super::{explore, thread};
use crate::model::Model;

const GRACE: Duration = Duration::from_secs(10);

pub(crate) const A_STOP_LOSES_NOTHING: Model = Model {
    name: "a_stop_loses_nothing",
    bugs: &[
        "push_looks_at_the_stage_before_it_locks",
        "stage_is_entered_and_nobody_told",
    ],
    explore: |effort| explore(false, effort, stopped_under_its_callers),
};

/// A driver is stopped while two threads put timers. It ends within its grace period, and nothing runs
/// behind its end; the next driver fires what it has left, and nothing twice.
fn stopped_under_its_callers() {
    let world = World::new();
    let handle = world.drive();
    let threads = [("one", "a"), ("two", "b")].map(|(partition, reference)| {
        let handle = handle.clone();
        thread::spawn(move || assert!(schedule(&handle, &home(partition), reference, 0).is_ok()))
    });
    let stopped = block_on(handle.shutdown(GRACE));
    assert!(stopped.finished && stopped.threads_stuck == 0, "{stopped:?}");
    let fired = world.fired().count();
    for thread in threads {
        assert!(thread.join().is_ok());
    }
    drop(handle);
    assert_eq!(world.fired().count(), fired, "ran behind the end");
    let next = world.drive();
    world.fired().reach(2);
    let stopped = block_on(next.shutdown(GRACE));
    assert!(stopped.finished && stopped.threads_stuck == 0, "{stopped:?}");
    assert_eq!(world.fired().count(), 2);
    for (partition, reference) in [("one", "a"), ("two", "b")] {
        assert_eq!(world.left(&home(partition)), 0);
        assert!(world.has_effect(&home(partition), reference));
    }
}

pub(crate) const EVERY_STOP_ENDS: Model = Model {
    name: "every_stop_ends",
    bugs: &["one_of_those_that_wait_for_idle_is_woken"],
    explore: |effort| explore(false, effort, stopped_twice),
};

/// Two threads stop a driver while a third puts a timer: the second cuts the first short, both end, and
/// the timer is there or has had its effect.
fn stopped_twice() {
    let world = World::new();
    let handle = world.drive();
    let putting = {
        let handle = handle.clone();
        thread::spawn(move || assert!(schedule(&handle, &home("one"), "a", 0).is_ok()))
    };
    let stopping = {
        let handle = handle.clone();
        thread::spawn(move || block_on(handle.shutdown(GRACE)).threads_stuck)
    };
    let stopped = block_on(handle.shutdown(GRACE));
    assert_eq!(stopped.threads_stuck, 0, "{stopped:?}");
    assert_eq!(stopping.join().ok(), Some(0));
    assert!(putting.join().is_ok());
    let had_effect = world.has_effect(&home("one"), "a");
    assert_eq!(world.left(&home("one")), usize::from(!had_effect));
}
