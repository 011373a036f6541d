//! Another process holds the write lock, or there is no room: the calls say so, nothing is written,
//! and everything works again when the cause is gone.
#![cfg(test)]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test fails by panicking, and its child process speaks on its standard output"
)]

mod support;

use dueline::store::{Batch, NamespaceStore, StoreErrorKind, WakeSettle, WakeStore};
use dueline_sqlite::{OpenError, SizeLimit, SqliteStore};
use support::{Home, KIND, apply, block_on, get, in_namespace, partition, timer, wakes};

#[test]
fn a_write_lock_held_past_the_busy_timeout_is_unavailable_and_passes() {
    let home = Home::new();
    let store = home.open();
    let blocking = store.for_blocking_threads().unwrap();
    let a = partition("a");
    apply(&store, &a, Batch::new().put("row", "x"));
    let stranger = home.stranger();
    stranger.execute_batch("BEGIN IMMEDIATE").unwrap();
    for handle in [&store as &dyn WakeStore, &*blocking] {
        let error = block_on(handle.apply(&a, Batch::new().put("late", "x"))).unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Unavailable);
        assert!(error.to_string().contains("busy"), "{error}");
        let audit = block_on(handle.audit_wakes(None, 9)).unwrap_err();
        assert_eq!(audit.kind(), StoreErrorKind::Unavailable);
        assert!(get(handle, &a, "row").is_some(), "reads go on");
    }
    stranger.execute_batch("ROLLBACK").unwrap();
    assert_eq!(get(&store, &a, "late"), None);
    apply(&store, &a, Batch::new().put("late", "x"));
}

#[test]
fn a_write_lock_held_while_opening_is_busy() {
    let home = Home::new();
    home.open().close();
    let stranger = home.stranger();
    stranger.execute_batch("BEGIN IMMEDIATE").unwrap();
    let error = SqliteStore::open(home.path(), home.options()).unwrap_err();
    assert!(matches!(&error, OpenError::Busy { .. }), "{error:?}");
    stranger.execute_batch("ROLLBACK").unwrap();
    home.open();
}

/// Fills a store up to its soft limit with rows of 2,000 bytes and returns how many there are.
fn fill(store: &SqliteStore) -> usize {
    let a = partition("a");
    for index in 0..100_000 {
        let batch = Batch::new().put(format!("row-{index:06}"), vec![7; 2_000]);
        match block_on(store.apply(&a, batch)) {
            Ok(outcome) => assert!(outcome.is_committed()),
            Err(error) => {
                assert_eq!(error.kind(), StoreErrorKind::Full, "{error}");
                return index;
            }
        }
    }
    panic!("the limit was never reached");
}

#[test]
fn at_the_size_limit_puts_are_full_while_moves_and_deletes_go_on() {
    let home = Home::new();
    let limit = SizeLimit::new(1 << 20).with_reserve(256 << 10);
    let store = SqliteStore::open(home.path(), home.options().size_limit(limit)).unwrap();
    let a = partition("a");
    apply(&store, &a, Batch::new().put(timer(KIND, 5_000, 1), "x"));
    let rows = fill(&store);
    assert!(rows > 100, "{rows}");

    for attempt in 0..30 {
        let (old, new) = (
            timer(KIND, 5_000 + attempt, 1),
            timer(KIND, 5_001 + attempt, 1),
        );
        let mut moved = Batch::new()
            .require_present(old.clone())
            .require_absent(new.clone())
            .delete(old)
            .put(new, "x");
        let refused = block_on(store.apply(&a, moved.clone())).unwrap_err();
        assert_eq!(refused.kind(), StoreErrorKind::Full);
        moved.uses_reserve = true;
        apply(&store, &a, moved);
    }
    home.clock.set(6_000);
    let settle = WakeSettle {
        kind: KIND,
        served_ms: vec![5_000],
    };
    assert_eq!(
        block_on(store.settle_wake(&a, settle)).unwrap(),
        Some(6_000)
    );
    assert_eq!(wakes(&store), [(6_000, "a".into(), 16)]);
    for index in 0..rows {
        apply(&store, &a, Batch::new().delete(format!("row-{index:06}")));
    }
    apply(&store, &a, Batch::new().put("room", vec![7; 2_000]));
}

#[test]
fn a_full_store_tells_a_lost_guard_before_it_tells_that_it_is_full() {
    let home = Home::new();
    let limit = SizeLimit::new(1 << 20).with_reserve(256 << 10);
    let store = SqliteStore::open(home.path(), home.options().size_limit(limit)).unwrap();
    fill(&store);
    let a = partition("a");
    let lost = Batch::new()
        .require_absent("row-000000")
        .put("row-000000", "x");
    assert!(!block_on(store.apply(&a, lost)).unwrap().is_committed());
    let held = Batch::new().require_absent("new").put("new", "x");
    assert_eq!(
        block_on(store.apply(&a, held)).unwrap_err().kind(),
        StoreErrorKind::Full
    );
    assert_eq!(get(&store, &a, "new"), None);
}

#[test]
fn at_the_hard_limit_of_the_engine_nothing_is_written_and_others_in_the_commit_are() {
    let home = Home::new();
    // No reserve: the limit is SQLite's own, met in the middle of a transaction.
    let limit = SizeLimit::new(1 << 20).with_reserve(0);
    let store = SqliteStore::open(home.path(), home.options().size_limit(limit)).unwrap();
    let blocking = store.for_blocking_threads().unwrap();
    let a = partition("a");
    apply(&store, &a, Batch::new().put("small", "x").put("other", "x"));
    let mut large = Batch::new();
    large.uses_reserve = true;
    for index in 0..4 {
        large = large.put(format!("large-{index}"), vec![7; 250_000]);
    }
    let mut too_large = blocking.apply(&a, large.put("large-4", vec![7; 45_000]));
    let mut deletes = blocking.apply(&a, Batch::new().require_present("small").delete("small"));
    assert!(support::poll_once(&mut too_large).is_pending());
    assert!(support::poll_once(&mut deletes).is_pending());
    blocking.before_park();
    assert_eq!(
        block_on(too_large).unwrap_err().kind(),
        StoreErrorKind::Full
    );
    assert!(block_on(deletes).unwrap().is_committed());
    assert_eq!(get(&store, &a, "large-0"), None);
    assert_eq!(get(&store, &a, "small"), None);
    assert!(get(&store, &a, "other").is_some());
    apply(&store, &a, Batch::new().put("again", vec![7; 100_000]));
}

#[test]
fn a_file_system_without_room_is_full_and_works_again_when_there_is_some() {
    let folder = tempfile::tempdir().unwrap();
    let small = "mount -t tmpfs -o size=2m tmpfs \"$FOLDER\"";
    in_namespace(small, "child_on_a_small_file_system", folder.path());
}

/// Does nothing unless another test starts it as a process of its own.
#[test]
fn child_on_a_small_file_system() {
    let Some(folder) = std::env::var_os("FOLDER") else {
        return;
    };
    let folder = std::path::PathBuf::from(folder);
    let ballast = folder.join("ballast");
    std::fs::write(&ballast, vec![0; 256 << 10]).unwrap();
    let home = Home::new();
    let store = SqliteStore::open(folder.join("timers.db"), home.options()).unwrap();
    let a = partition("a");
    apply(&store, &a, Batch::new().put(timer(KIND, 5_000, 1), "x"));
    let rows = fill(&store);
    println!("{rows} rows before the file system was full");
    assert!(rows > 10);
    for _ in 0..30 {
        let more = Batch::new().put("more", vec![7; 100_000]);
        assert_eq!(
            block_on(store.apply(&a, more)).unwrap_err().kind(),
            StoreErrorKind::Full
        );
        assert_eq!(get(&store, &a, "more"), None);
        assert!(get(&store, &a, "row-000000").is_some());
    }
    std::fs::remove_file(&ballast).unwrap();
    apply(&store, &a, Batch::new().put("more", vec![7; 1_000]));
    assert_eq!(wakes(&store), [(5_000, "a".into(), 16)]);
}

#[test]
fn a_log_that_fills_its_file_system_is_started_over() {
    let folder = tempfile::tempdir().unwrap();
    let small = "mount -t tmpfs -o size=2m tmpfs \"$FOLDER\"";
    in_namespace(
        small,
        "child_whose_log_fills_its_file_system",
        folder.path(),
    );
}

/// Does nothing unless another test starts it as a process of its own.
#[test]
fn child_whose_log_fills_its_file_system() {
    let Some(folder) = std::env::var_os("FOLDER") else {
        return;
    };
    let home = Home::new();
    let path = std::path::PathBuf::from(folder).join("timers.db");
    let store = SqliteStore::open(path, home.options()).unwrap();
    let a = partition("a");
    // The database has its size; without room to grow no log could be written into it.
    apply(&store, &a, Batch::new().put("row", vec![7; 100_000]));
    store.checkpoint().unwrap();
    // 10 MiB of log for one row: long before the log is checkpointed for its length.
    for round in 0..100 {
        apply(&store, &a, Batch::new().put("row", vec![round; 100_000]));
        apply(&store, &a, Batch::new().delete("row"));
    }
    assert_eq!(get(&store, &a, "row"), None);
}
