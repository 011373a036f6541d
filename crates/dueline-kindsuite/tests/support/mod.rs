//! The stores that every case runs on beside the one in memory.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::{Arc, Mutex};

use dueline::store::WakeStore;
use dueline_sqlite::{Options, SqliteStore};
use dueline_testkit::ManualClock;

/// Folders of the cases, kept until the process ends.
static FOLDERS: Mutex<Vec<tempfile::TempDir>> = Mutex::new(Vec::new());

/// A new SQLite file.
pub(crate) fn sqlite(clock: ManualClock) -> Arc<dyn WakeStore> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("timers.db");
    FOLDERS.lock().unwrap().push(folder);
    Arc::new(SqliteStore::open(path, Options::new(Arc::new(clock))).unwrap())
}
