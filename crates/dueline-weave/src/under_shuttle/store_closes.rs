//! A SQLite store that is closed, or fails, under its callers.

use dueline::store::{NamespaceStore, StoreErrorKind};
use dueline_testkit::ManualClock;
use shuttle::future::block_on;

use super::commits::{Fault, fail};
use super::store_world::{apply, apply_and_leave, apply_blocking, blocking, committed, has, open};
use super::{explore, thread};
use crate::model::Model;
use crate::new_folder;

pub(crate) const A_CLOSING_STORE_KEEPS_WHAT_IT_ACKNOWLEDGED: Model = Model {
    name: "a_closing_store_keeps_what_it_acknowledged",
    bugs: &["close_wakes_nobody", "push_wakes_without_saying_why"],
    explore: |effort| explore(false, effort, closed_under_its_callers),
};

/// A store is closed while three threads apply. Each is answered: what was committed is in the file
/// when it is opened again, what was refused is not.
fn closed_under_its_callers() {
    let folder = new_folder();
    let store = open(&folder, &ManualClock::new(1_000));
    let awaiting = {
        let store = store.clone();
        thread::spawn(move || ["awaited-1", "awaited-2"].map(|key| (key, apply(&store, key))))
    };
    let blocked = {
        let store = blocking(&store);
        thread::spawn(move || {
            ["blocking-1", "blocking-2"].map(|key| (key, apply_blocking(&store, key)))
        })
    };
    let leaving = {
        let store = store.clone();
        thread::spawn(move || apply_and_leave(&store, "left"))
    };
    store.close();
    let answers = [awaiting, blocked].map(|thread| thread.join());
    assert!(leaving.join().is_ok());
    drop(store);
    let store = open(&folder, &ManualClock::new(1_000));
    for answers in answers {
        let Ok(answers) = answers else {
            panic!("a caller panicked");
        };
        for (key, answer) in answers {
            if let Err(error) = &answer {
                assert_eq!(error.kind(), StoreErrorKind::Unavailable, "{error}");
            }
            assert_eq!(has(&store, key), committed(&answer), "{key}: {answer:?}");
        }
    }
    store.close();
}

pub(crate) const A_FAILED_STORE_OPENS_AGAIN: Model = Model {
    name: "a_failed_store_opens_again",
    bugs: &[
        "failed_store_wakes_nobody",
        "nudge_is_taken_with_what_is_queued",
    ],
    explore: |effort| {
        explore(true, effort, || failed_under_its_callers(Fault::Before))
            + explore(true, effort, || failed_under_its_callers(Fault::After))
    },
};

/// A commit fails and cannot be settled, and the first attempt to open the file again fails too. Each
/// caller is answered, and the store opens again by itself.
fn failed_under_its_callers(fault: Fault) {
    let folder = new_folder();
    let store = open(&folder, &ManualClock::new(1_000));
    fail([fault, Fault::Before, Fault::Before]);
    let awaiting = {
        let store = store.clone();
        thread::spawn(move || ["awaited-1", "awaited-2"].map(|key| (key, apply(&store, key))))
    };
    let blocked = {
        let store = blocking(&store);
        thread::spawn(move || {
            ["blocking-1", "blocking-2"].map(|key| (key, apply_blocking(&store, key)))
        })
    };
    let answers = [awaiting, blocked].map(|thread| thread.join());
    while block_on(store.probe()).is_err() {
        thread::yield_now();
    }
    for answers in answers {
        let Ok(answers) = answers else {
            panic!("a caller panicked");
        };
        for (key, answer) in answers {
            let is_there = match &answer {
                Ok(_) => committed(&answer),
                Err(error) if error.kind() == StoreErrorKind::Unknown => fault == Fault::After,
                Err(error) => {
                    assert_eq!(error.kind(), StoreErrorKind::Unavailable, "{error}");
                    false
                }
            };
            assert_eq!(has(&store, key), is_there, "{key}: {answer:?}");
        }
    }
    assert!(committed(&apply(&store, "last")));
    fail([]);
    store.close();
}
