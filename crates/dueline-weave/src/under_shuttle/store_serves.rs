//! Callers of every sort at one SQLite store, while it stays open.

use dueline_testkit::ManualClock;

use super::store_world::{apply, apply_and_leave, apply_blocking, blocking, committed, has, open};
use super::{explore, thread};
use crate::model::Model;
use crate::new_folder;

pub(crate) const EVERY_APPLY_IS_ANSWERED: Model = Model {
    name: "every_apply_is_answered",
    bugs: &[
        "push_wakes_without_saying_why",
        "answer_takes_the_waker_first",
    ],
    explore: |effort| explore(true, effort, callers_of_every_sort),
};

pub(crate) const NOBODY_WAITS_FOR_TIME: Model = Model {
    name: "nobody_waits_for_time",
    bugs: &[
        "queue_is_looked_at_before_the_connection_is_free",
        "checkpoint_leaves_what_came_meanwhile",
    ],
    explore: |effort| explore(false, effort, threads_that_may_block),
};

/// One that awaits, two that may block, one that goes away and one that checkpoints: every answer is
/// `Committed`, what is answered is there, and so is what was queued by the one that went away.
fn callers_of_every_sort() {
    let folder = new_folder();
    let store = open(&folder, &ManualClock::new(1_000));
    let awaiting = {
        let store = store.clone();
        thread::spawn(move || {
            assert!(committed(&apply(&store, "awaited-1")));
            assert!(has(&store, "awaited-1"));
            assert!(committed(&apply(&store, "awaited-2")));
        })
    };
    let blocked = ["blocking-1", "blocking-2"].map(|key| {
        let store = blocking(&store);
        thread::spawn(move || assert!(committed(&apply_blocking(&store, key))))
    });
    let leaving = {
        let store = store.clone();
        thread::spawn(move || apply_and_leave(&store, "left"))
    };
    assert!(store.checkpoint().is_ok());
    for thread in blocked.into_iter().chain([awaiting, leaving]) {
        assert!(thread.join().is_ok());
    }
    // Behind it in the queue.
    assert!(committed(&apply(&store, "last")));
    for key in [
        "awaited-1",
        "awaited-2",
        "blocking-1",
        "blocking-2",
        "left",
        "last",
    ] {
        assert!(has(&store, key), "{key}");
    }
    store.close();
}

/// Threads that may block, and a checkpoint that holds the connection: who finds it held and goes to wait
/// is served by whoever holds it, or by the thread that one wakes; never by a look after some time.
fn threads_that_may_block() {
    const KEYS: [&str; 3] = ["blocking-1", "blocking-2", "blocking-3"];
    let folder = new_folder();
    let store = open(&folder, &ManualClock::new(1_000));
    let threads = KEYS.map(|key| {
        let store = blocking(&store);
        thread::spawn(move || assert!(committed(&apply_blocking(&store, key))))
    });
    assert!(store.checkpoint().is_ok());
    for thread in threads {
        assert!(thread.join().is_ok());
    }
    for key in KEYS {
        assert!(has(&store, key), "{key}");
    }
    store.close();
}
