//! The stores that every case runs on beside the one in memory.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::cell::RefCell;
use std::sync::Arc;

use dueline::store::WakeStore;
use dueline_sqlite::{Options, SqliteStore};
use dueline_testkit::ManualClock;

thread_local! {
    /// Folders of a case, removed when its thread ends. What is static is never dropped.
    static FOLDERS: RefCell<Vec<tempfile::TempDir>> = const { RefCell::new(Vec::new()) };
}

/// A new SQLite file.
pub(crate) fn sqlite(clock: ManualClock) -> Arc<dyn WakeStore> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("timers.db");
    FOLDERS.with_borrow_mut(|folders| folders.push(folder));
    Arc::new(SqliteStore::open(path, Options::new(Arc::new(clock))).unwrap())
}
