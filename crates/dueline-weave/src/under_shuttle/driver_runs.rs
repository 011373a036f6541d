//! A driver at work: timers put by several threads while it reads, ticks and goes to sleep.

use std::time::Duration;

use shuttle::future::block_on;

use super::driver_world::{World, home, schedule};
use super::{explore, thread};
use crate::model::Model;

pub(crate) const NO_TIMER_IS_SLEPT_OVER: Model = Model {
    name: "no_timer_is_slept_over",
    bugs: &[
        "sleep_is_published_after_the_looks_are_read",
        "only_the_first_look_wakes",
        "close_forgets_what_was_noted",
        "thread_is_noted_as_waiting_too_late",
        "signal_notifies_before_it_raises",
    ],
    explore: |effort| explore(false, effort, timers_of_two_threads),
};

/// Two threads put two timers each, due at once or after 50 ms, which one of them lets pass. All fire
/// although the clock stands still then: nothing but the put may wake the driver.
fn timers_of_two_threads() {
    let world = World::new();
    let handle = world.drive();
    let threads = [("one", "a", "b"), ("two", "c", "d")].map(|(partition, now, later)| {
        let (handle, clock) = (handle.clone(), world.clock.clone());
        thread::spawn(move || {
            assert!(schedule(&handle, &home(partition), now, 0).is_ok());
            assert!(schedule(&handle, &home(partition), later, 50).is_ok());
            if partition == "two" {
                clock.advance(Duration::from_millis(50));
            }
        })
    });
    world.fired().reach(4);
    for thread in threads {
        assert!(thread.join().is_ok());
    }
    let stopped = block_on(handle.shutdown(Duration::from_secs(10)));
    assert!(stopped.finished && stopped.threads_stuck == 0, "{stopped:?}");
    assert_eq!(world.fired().count(), 4);
    for (partition, references) in [("one", ["a", "b"]), ("two", ["c", "d"])] {
        assert_eq!(world.left(&home(partition)), 0);
        for reference in references {
            assert!(world.has_effect(&home(partition), reference), "{reference}");
        }
    }
}
