//! Callers of every sort at one SQLite store, while it stays open.

use std::path::Path;
use std::task::{Context, Waker};

use dueline::store::{Batch, BatchOutcome, NamespaceStore, ReadStore, StoreError, WakeStore};
use dueline_testkit::{ManualClock, partition};
use shuttle::future::block_on;
use tempfile::TempDir;

use super::store::{Durability, Options, SqliteStore};
use super::sync::Arc;
use super::{explore, thread};
use crate::model::Model;

const IN_MEMORY: &str = "/dev/shm";

/// A store in a folder of its own, which goes by this clock.
pub(super) fn open(folder: &TempDir, clock: &ManualClock) -> SqliteStore {
    let options = Options::new(Arc::new(clock.clone()))
        .durability(Durability::ProcessCrash)
        .reader_threads(1);
    match SqliteStore::open(folder.path().join("timers.db"), options) {
        Ok(store) => store,
        Err(error) => panic!("{error}"),
    }
}

/// A folder in memory where the system has such: thousands of databases are made, and what a disk loses
/// is looked for elsewhere.
pub(super) fn folder() -> TempDir {
    let made = if Path::new(IN_MEMORY).is_dir() {
        tempfile::tempdir_in(IN_MEMORY)
    } else {
        tempfile::tempdir()
    };
    made.unwrap_or_else(|error| panic!("{error}"))
}

/// A batch that can be committed once.
fn put(key: &'static str) -> Batch {
    Batch::new().require_absent(key).put(key, "v")
}

/// One apply of a caller that must not block.
pub(super) fn apply(store: &SqliteStore, key: &'static str) -> Result<BatchOutcome, StoreError> {
    block_on(store.apply(&partition("home"), put(key)))
}

/// One apply of a thread that may block, and commits itself if it can.
pub(super) fn apply_blocking(
    store: &Arc<dyn WakeStore>,
    key: &'static str,
) -> Result<BatchOutcome, StoreError> {
    let home = partition("home");
    let mut applied = store.apply(&home, put(key));
    let now = applied
        .as_mut()
        .poll(&mut Context::from_waker(Waker::noop()));
    store.before_park();
    match now {
        std::task::Poll::Ready(done) => done,
        std::task::Poll::Pending => block_on(applied),
    }
}

/// One apply whose caller goes away as soon as it is queued.
pub(super) fn apply_and_leave(store: &SqliteStore, key: &'static str) {
    let home = partition("home");
    let mut applied = store.apply(&home, put(key));
    let now = applied
        .as_mut()
        .poll(&mut Context::from_waker(Waker::noop()));
    assert!(now.is_pending() || matches!(now, std::task::Poll::Ready(_)));
}

pub(super) fn blocking(store: &SqliteStore) -> Arc<dyn WakeStore> {
    match store.for_blocking_threads() {
        Some(store) => store,
        None => panic!("a store on SQLite has a handle for threads that may block"),
    }
}

pub(super) fn has(store: &SqliteStore, key: &'static str) -> bool {
    match block_on(store.get(&partition("home"), &key.into())) {
        Ok(value) => value.is_some(),
        Err(error) => panic!("{error}"),
    }
}

pub(super) fn committed(done: &Result<BatchOutcome, StoreError>) -> bool {
    matches!(done, Ok(BatchOutcome::Committed))
}

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
    let folder = folder();
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
    let folder = folder();
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
