//! The log holds the newest commits. Goal: a log without its database is refused and kept, and a
//! database without its log is never taken for a new one or a clean one. Method: the files of a store
//! that did not close are copied, and one of the two is left out.
#![cfg(test)]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::fs;

use dueline::store::Batch;
use dueline_sqlite::inspect::{inspect, repair_wakes};
use dueline_sqlite::{OpenError, SqliteStore};
use support::{Home, apply, get, partition};

/// What a store that was killed leaves behind: its files, copied while it is open.
fn left_by_a_crash(suffixes: &[&str]) -> Home {
    let home = Home::new();
    let store = home.open();
    apply(&store, &partition("a"), Batch::new().put("row", "x"));
    let left = Home::new();
    for suffix in suffixes {
        let name = format!("timers.db{suffix}");
        let from = home.folder.path().join(&name);
        fs::copy(from, left.folder.path().join(&name)).unwrap();
    }
    left
}

#[test]
fn a_log_whose_database_is_missing_or_empty_is_refused_and_kept() {
    for empty in [false, true] {
        let home = left_by_a_crash(&["-wal"]);
        if empty {
            fs::write(home.path(), "").unwrap();
        }
        let log = home.folder.path().join("timers.db-wal");
        let before = fs::read(&log).unwrap();
        for error in [
            home.refused(),
            inspect(home.path(), 0).unwrap_err(),
            repair_wakes(home.path(), &home.options()).unwrap_err(),
        ] {
            assert!(
                matches!(&error, OpenError::LogWithoutDatabase { .. }),
                "{error:?}"
            );
            let text = error.to_string();
            assert!(
                text.contains("timers.db-wal") && text.contains("put the database back"),
                "{text}"
            );
        }
        assert_eq!(fs::read(&log).unwrap(), before, "the log is kept");
        assert_eq!(home.path().exists(), empty, "no database is made");
        fs::remove_file(log).unwrap();
        home.open();
    }
}

#[test]
fn a_database_without_its_log_says_that_it_was_not_closed() {
    let home = left_by_a_crash(&[""]);
    let found = inspect(home.path(), 0).unwrap();
    assert!(found.unclean && found.log_missing, "{found:?}");
    assert_eq!(found.schema, found.schema_known, "it is no new database");
    let store = home.open();
    assert_eq!(get(&store, &partition("a"), "row"), None);
    let found = inspect(home.path(), 0).unwrap();
    assert!(found.in_use && !found.log_missing, "{found:?}");
}

#[test]
fn a_repair_after_a_crash_keeps_the_log() {
    let home = left_by_a_crash(&["", "-wal"]);
    repair_wakes(home.path(), &home.options()).unwrap();
    let found = inspect(home.path(), 0).unwrap();
    assert!(found.unclean && !found.log_missing, "{found:?}");
    assert!(get(&home.open(), &partition("a"), "row").is_some());
}

#[test]
fn a_database_with_its_log_or_closed_misses_none() {
    let home = left_by_a_crash(&["", "-wal"]);
    let found = inspect(home.path(), 0).unwrap();
    assert!(found.unclean && !found.log_missing, "{found:?}");
    let store: SqliteStore = home.open();
    assert!(get(&store, &partition("a"), "row").is_some());
    store.close();
    let found = inspect(home.path(), 0).unwrap();
    assert!(!found.unclean && !found.log_missing, "{found:?}");
}
