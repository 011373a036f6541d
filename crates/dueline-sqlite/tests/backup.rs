//! A backup is a whole, openable copy of one moment, made while the store is written.
#![cfg(test)]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};

use dueline::store::{Batch, NamespaceStore, WakeStore};
use dueline_sqlite::{BackupError, SqliteStore};
use support::{Home, KIND, apply, block_on, get, partition, timer, wakes};

#[test]
fn a_backup_restores_rows_and_wakes_and_counts_as_cleanly_closed() {
    let home = Home::new();
    let store = home.open();
    apply(
        &store,
        &partition("a"),
        Batch::new().put("row", "x").put(timer(KIND, 5_000, 1), "t"),
    );
    let copy = home.folder.path().join("backup.db");
    store.backup_to(&copy).unwrap();
    apply(&store, &partition("a"), Batch::new().put("row", "later"));

    let restored = SqliteStore::open(&copy, home.options()).unwrap();
    assert_eq!(restored.unclean_opened_at_ms(), None);
    assert_eq!(
        get(&restored, &partition("a"), "row").as_deref(),
        Some(&b"x"[..])
    );
    assert_eq!(wakes(&restored), [(5_000, "a".into(), 16)]);
    assert_eq!(
        get(&store, &partition("a"), "row").as_deref(),
        Some(&b"later"[..])
    );
}

#[test]
fn a_backup_never_replaces_a_file() {
    let home = Home::new();
    let store = home.open();
    let copy = home.folder.path().join("backup.db");
    fs::write(&copy, "precious").unwrap();
    let error = store.backup_to(&copy).unwrap_err();
    assert!(matches!(&error, BackupError::Exists { .. }), "{error:?}");
    assert_eq!(fs::read(&copy).unwrap(), b"precious");
}

#[test]
fn a_backup_that_cannot_be_written_leaves_nothing() {
    let home = Home::new();
    let store = home.open();
    let copy = home.folder.path().join("nowhere").join("backup.db");
    assert!(store.backup_to(&copy).is_err());
    assert!(!copy.exists());
    let left: Vec<_> = fs::read_dir(home.folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .filter(|name| name.to_string_lossy().contains("backup"))
        .collect();
    assert_eq!(left, [""; 0]);
}

#[test]
fn a_backup_taken_under_writes_holds_every_batch_whole() {
    let home = Home::new();
    let store = home.open();
    let copy = home.folder.path().join("backup.db");
    let stop = AtomicBool::new(false);
    let a = partition("a");
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for count in 0_u32.. {
                let value = count.to_be_bytes().to_vec();
                let batch = Batch::new().put("left", value.clone()).put("right", value);
                assert!(block_on(store.apply(&a, batch)).unwrap().is_committed());
                if stop.load(Ordering::Relaxed) {
                    break;
                }
            }
        });
        store.backup_to(&copy).unwrap();
        stop.store(true, Ordering::Relaxed);
    });
    let restored = SqliteStore::open(&copy, home.options()).unwrap();
    assert_eq!(get(&restored, &a, "left"), get(&restored, &a, "right"));
}

#[test]
fn of_two_backups_to_one_path_one_wins_and_is_whole() {
    let home = Home::new();
    let store = home.open();
    for index in 0..100 {
        let batch = Batch::new().put(format!("row-{index}"), vec![7; 3_000]);
        apply(&store, &partition("a"), batch);
    }
    let copy = home.folder.path().join("backup.db");
    let won = std::thread::scope(|scope| {
        let backups = [(); 2].map(|()| scope.spawn(|| store.backup_to(&copy)));
        backups.map(|backup| backup.join().unwrap().is_ok())
    });
    assert!(won.contains(&true));
    let restored = SqliteStore::open(&copy, home.options()).unwrap();
    assert_eq!(block_on(restored.stats(&partition("a"))).unwrap().rows, 100);
}
