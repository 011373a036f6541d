//! Opening: one writer at a time, and each thing that can be wrong with a path has its own error that
//! names the file. Another process is this test binary started again.
#![cfg(test)]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test fails by panicking, and its child process speaks on its standard output"
)]

mod support;

use std::fs;
use std::path::Path;
use std::process::Command;

use dueline::store::Batch;
use dueline_sqlite::{Durability, OpenError, PageSize, SqliteStore};
use support::{Home, apply, get, in_namespace, partition};

const CHILD_PATH: &str = "DUELINE_TEST_CHILD_PATH";

#[test]
fn a_log_that_a_killed_process_left_is_written_again_before_it_is_read() {
    let home = Home::new();
    let store = home.open();
    apply(&store, &partition("home"), Batch::new().put("row", "v"));
    let killed = Home::new();
    for suffix in ["", "-wal"] {
        let name = format!("timers.db{suffix}");
        fs::copy(
            home.folder.path().join(&name),
            killed.folder.path().join(&name),
        )
        .unwrap();
    }
    // The system shows its bytes, and the disk need not have them: only a write changes its time.
    let log = killed.folder.path().join("timers.db-wal");
    let file = fs::File::options().write(true).open(&log).unwrap();
    file.set_modified(std::time::UNIX_EPOCH).unwrap();
    let store = killed.open();
    assert!(file.metadata().unwrap().modified().unwrap() > std::time::UNIX_EPOCH);
    assert!(get(&store, &partition("home"), "row").is_some());
}

#[test]
fn a_second_handle_is_locked_out_until_the_first_is_closed() {
    let home = Home::new();
    let store = home.open();
    let error = home.refused();
    assert!(matches!(&error, OpenError::Locked { .. }), "{error:?}");
    let text = error.to_string();
    assert!(
        text.contains("timers.db.lock") && text.contains("another process"),
        "{text}"
    );
    store.close();
    home.open();
}

#[cfg(unix)]
#[test]
fn another_name_of_the_file_is_locked_too() {
    let home = Home::new();
    let _store = home.open();
    let link = home.folder.path().join("link.db");
    std::os::unix::fs::symlink(home.path(), &link).unwrap();
    let error = SqliteStore::open(&link, home.options()).unwrap_err();
    assert!(matches!(&error, OpenError::Locked { .. }), "{error:?}");
}

#[test]
fn a_second_process_is_locked_out() {
    let home = Home::new();
    let _store = home.open();
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child_that_tries_to_open", "--nocapture"])
        .env(CHILD_PATH, home.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&child.stdout);
    assert!(said.contains("is in use: another process holds"), "{said}");
}

/// Does nothing unless another test starts it as a process of its own.
#[test]
fn child_that_tries_to_open() {
    let Some(path) = std::env::var_os(CHILD_PATH) else {
        return;
    };
    match SqliteStore::open(path, Home::new().options()) {
        Ok(_) => println!("opened"),
        Err(error) => println!("{error}"),
    }
}

#[test]
fn a_folder_that_is_not_there_is_named() {
    let home = Home::new();
    let path = home.folder.path().join("nowhere").join("timers.db");
    let error = SqliteStore::open(&path, home.options()).unwrap_err();
    assert!(matches!(&error, OpenError::CannotOpen { .. }), "{error:?}");
    assert!(error.to_string().contains("nowhere"), "{error}");
}

#[test]
fn a_folder_in_the_place_of_the_file_cannot_be_opened() {
    let home = Home::new();
    fs::create_dir(home.path()).unwrap();
    let error = home.refused();
    assert!(matches!(&error, OpenError::CannotOpen { .. }), "{error:?}");
}

#[test]
fn a_read_only_file_or_file_system_is_refused_as_such() {
    let home = Home::new();
    home.open().close();
    let mut permissions = fs::metadata(home.path()).unwrap().permissions();
    permissions.set_readonly(true);
    fs::set_permissions(home.path(), permissions).unwrap();
    // A superuser may write the file all the same, and may mount a file system read-only instead.
    if fs::OpenOptions::new()
        .write(true)
        .open(home.path())
        .is_err()
    {
        assert!(matches!(home.refused(), OpenError::ReadOnly { .. }));
    }
    let read_only = "mount --bind \"$FOLDER\" \"$FOLDER\" && \
                     mount -o remount,bind,ro \"$FOLDER\"";
    in_namespace(
        read_only,
        "child_on_a_read_only_file_system",
        home.folder.path(),
    );
}

/// Does nothing unless another test starts it as a process of its own.
#[test]
fn child_on_a_read_only_file_system() {
    let Some(folder) = std::env::var_os("FOLDER") else {
        return;
    };
    let path = Path::new(&folder).join("timers.db");
    let error = SqliteStore::open(path, Home::new().options()).unwrap_err();
    assert!(matches!(&error, OpenError::ReadOnly { .. }), "{error:?}");
    assert!(
        error.to_string().contains("timers.db is read-only"),
        "{error}"
    );
}

#[test]
fn the_settings_are_those_that_were_chosen() {
    for (page_size, bytes) in [(PageSize::Bytes4096, 4_096), (PageSize::Bytes8192, 8_192)] {
        let home = Home::new();
        let options = home
            .options()
            .page_size(page_size)
            .durability(Durability::ProcessCrash);
        let store = SqliteStore::open(home.path(), options).unwrap();
        apply(&store, &partition("a"), Batch::new().put("row", "x"));
        let stranger = home.stranger();
        let page: i64 = stranger
            .query_row("PRAGMA page_size", [], |row| row.get(0))
            .unwrap();
        let mode: String = stranger
            .query_row("PRAGMA journal_mode", [], |row| row.get(0))
            .unwrap();
        assert_eq!((page, mode.as_str()), (bytes, "wal"));
        assert_eq!(store.durability().to_string(), "process-crash");
        assert!(store.log_bytes() > 0);
    }
}
