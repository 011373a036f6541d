//! A SQLite store, and what callers do to it.

use std::task::{Context, Poll, Waker};

use dueline::store::{Batch, BatchOutcome, NamespaceStore, ReadStore, StoreError, WakeStore};
use dueline_testkit::{ManualClock, partition};
use shuttle::future::block_on;
use tempfile::TempDir;

use super::store::{Durability, Options, SqliteStore};
use super::sync::Arc;

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
        Poll::Ready(done) => done,
        Poll::Pending => block_on(applied),
    }
}

/// One apply whose caller goes away as soon as it is queued.
pub(super) fn apply_and_leave(store: &SqliteStore, key: &'static str) {
    let home = partition("home");
    let mut applied = store.apply(&home, put(key));
    let now = applied
        .as_mut()
        .poll(&mut Context::from_waker(Waker::noop()));
    assert!(now.is_pending() || matches!(now, Poll::Ready(_)));
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
