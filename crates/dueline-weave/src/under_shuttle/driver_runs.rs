//! A driver at work: timers put by several threads while it starts, reads, ticks and goes to sleep.

use std::time::Duration;

use dueline::store::Partition;
use dueline_testkit::partition;
use shuttle::future::block_on;

use super::driver_world::{KIND, World, schedule};
use super::{explore, thread};
use crate::model::Model;

pub(crate) const NO_TIMER_IS_SLEPT_OVER: Model = Model {
    name: "no_timer_is_slept_over",
    bugs: &[
        "sleep_is_published_after_the_looks_are_read",
        "thread_is_noted_as_waiting_too_late",
        "signal_notifies_before_it_raises",
    ],
    explore: |effort| {
        explore(false, effort, || {
            timers_of_two_threads(&World::in_memory(), 1)
        }) + explore(false, effort, || {
            timers_of_two_threads(&World::in_memory(), 2)
        })
    },
};

pub(crate) const DRIVER_AND_STORE_WAKE_EACH_OTHER: Model = Model {
    name: "driver_and_store_wake_each_other",
    bugs: &[
        "push_wakes_without_saying_why",
        "answer_takes_the_waker_first",
    ],
    explore: |effort| {
        explore(false, effort, || {
            timers_of_two_threads(&World::on_sqlite(), 2)
        })
    },
};

/// Two threads put two timers each while a driver starts, due at once or after 50 ms, which one of them
/// lets pass. All fire although the clock stands still then: nothing but the put may wake the driver.
fn timers_of_two_threads(world: &World, tick_threads: usize) {
    let homes: [(Partition, [&str; 2]); 2] = [
        (partition("one"), ["a", "b"]),
        (partition("two"), ["c", "d"]),
    ];
    let threads = [0, 1].map(|which| {
        let (timers, clock) = (world.timers(), world.clock.clone());
        let (home, [later, now]) = homes[which].clone();
        thread::spawn(move || {
            schedule(&timers, &home, KIND, later, 50);
            schedule(&timers, &home, KIND, now, 0);
            if which == 1 {
                clock.advance(Duration::from_millis(50));
            }
        })
    });
    let handle = world.drive(tick_threads);
    world.fired().reach(4);
    for thread in threads {
        assert!(thread.join().is_ok());
    }
    let stopped = block_on(handle.shutdown(Duration::from_secs(10)));
    assert!(
        stopped.finished && stopped.threads_stuck == 0,
        "{stopped:?}"
    );
    assert_eq!(world.fired().count(), 4);
    for (home, references) in &homes {
        assert_eq!(world.left(home), 0);
        for reference in references {
            assert!(world.has_effect(home, reference), "{reference}");
        }
    }
}
