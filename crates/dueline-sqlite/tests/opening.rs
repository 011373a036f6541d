//! Opening: one writer at a time, and each thing that can be wrong with a file has its own error
//! that names the file. Another process is this test binary started again.

mod support;

use std::fs;
use std::io::{Read, Seek, SeekFrom, Write};
use std::process::{Command, Stdio};

use dueline::store::{Batch, NamespaceStore, StoreErrorKind, WakeStore};
use dueline_sqlite::{Durability, OpenError, PageSize, SqliteStore};
use support::{Home, apply, block_on, get, partition};

const CHILD_PATH: &str = "DUELINE_TEST_CHILD_PATH";

fn refused(home: &Home) -> OpenError {
    SqliteStore::open(home.path(), home.options()).unwrap_err()
}

#[test]
fn a_second_handle_is_locked_out_until_the_first_is_closed() {
    let home = Home::new();
    let store = home.open();
    let error = refused(&home);
    assert!(matches!(&error, OpenError::Locked { .. }), "{error:?}");
    let text = error.to_string();
    assert!(
        text.contains("timers.db.lock") && text.contains("another process"),
        "{text}"
    );
    store.close();
    home.open();
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
fn a_killed_process_leaves_its_commits_and_the_mark_of_an_unclean_stop() {
    let home = Home::new();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child_that_is_killed", "--nocapture"])
        .env(CHILD_PATH, home.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = Vec::new();
    child.stdout.take().unwrap().read_to_end(&mut said).unwrap();
    assert!(!child.wait().unwrap().success());
    let said = String::from_utf8_lossy(&said);
    let acknowledged: Vec<&str> = said
        .lines()
        .filter_map(|line| line.strip_prefix("acknowledged "))
        .collect();
    assert_eq!(acknowledged.len(), 20, "{said}");

    home.clock.set(9_000);
    let store = home.open();
    assert_eq!(store.unclean_opened_at_ms(), Some(9_000));
    for key in acknowledged {
        assert!(
            get(&store, &partition("a"), key).is_some(),
            "{key} was acknowledged"
        );
    }
    store.close();
    assert_eq!(home.open().unclean_opened_at_ms(), None);
}

/// Does nothing unless another test starts it as a process of its own.
#[test]
fn child_that_is_killed() {
    let Some(path) = std::env::var_os(CHILD_PATH) else {
        return;
    };
    let store = SqliteStore::open(path, Home::new().options()).unwrap();
    for index in 0..20 {
        let key = format!("row-{index}");
        apply(&store, &partition("a"), Batch::new().put(key.clone(), "x"));
        println!("acknowledged {key}");
    }
    std::process::abort();
}

#[test]
fn dropping_the_last_handle_is_a_clean_stop() {
    let home = Home::new();
    let store = home.open();
    let blocking = store.for_blocking_threads().unwrap();
    apply(&store, &partition("a"), Batch::new().put("row", "x"));
    drop(store);
    assert!(
        matches!(refused(&home), OpenError::Locked { .. }),
        "a handle is left"
    );
    drop(blocking);
    assert_eq!(home.open().unclean_opened_at_ms(), None);
}

#[test]
fn a_closed_store_is_unavailable_through_every_handle() {
    let home = Home::new();
    let store = home.open();
    let blocking = store.for_blocking_threads().unwrap();
    assert_eq!(get(&*blocking, &partition("a"), "row"), None);
    store.close();
    store.close();
    let a = partition("a");
    for handle in [&store as &dyn WakeStore, &*blocking] {
        let batch = Batch::new().put("row", "x");
        let apply = block_on(handle.apply(&a, batch)).unwrap_err();
        let read = block_on(handle.get(&a, &"row".into())).unwrap_err();
        let audit = block_on(handle.audit_wakes(None, 1)).unwrap_err();
        let probe = block_on(handle.probe()).unwrap_err();
        for error in [apply, read, audit, probe] {
            assert_eq!(error.kind(), StoreErrorKind::Unavailable, "{error}");
            assert!(error.to_string().contains("closed"), "{error}");
        }
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
    let error = refused(&home);
    assert!(matches!(&error, OpenError::CannotOpen { .. }), "{error:?}");
}

#[test]
fn a_file_that_is_no_database_is_corrupt_and_left_as_it_is() {
    let home = Home::new();
    let garbage = b"this is a shopping list, not a database. ".repeat(200);
    fs::write(home.path(), &garbage).unwrap();
    let error = refused(&home);
    assert!(matches!(&error, OpenError::Corrupt { .. }), "{error:?}");
    assert!(!error.to_string().contains("SQLITE"), "{error}");
    assert_eq!(fs::read(home.path()).unwrap(), garbage);
}

fn filled(home: &Home) {
    let store = home.open();
    for index in 0..200 {
        let batch = Batch::new().put(format!("row-{index:03}"), vec![7; 1_000]);
        apply(&store, &partition("a"), batch);
    }
    store.close();
}

#[test]
fn a_truncated_file_is_corrupt_when_opened_or_read() {
    let home = Home::new();
    filled(&home);
    let file = fs::OpenOptions::new()
        .write(true)
        .open(home.path())
        .unwrap();
    file.set_len(4_096 * 5).unwrap();
    let seen = match SqliteStore::open(home.path(), home.options()) {
        Err(OpenError::Corrupt { .. }) => return,
        Err(other) => panic!("{other:?}"),
        Ok(store) => block_on(store.stats(&partition("a"))).unwrap_err(),
    };
    assert_eq!(seen.kind(), StoreErrorKind::Corrupt, "{seen:?}");
}

#[test]
fn a_page_of_garbage_is_corrupt_when_it_is_read_and_written() {
    let home = Home::new();
    filled(&home);
    let len = fs::metadata(home.path()).unwrap().len();
    let mut file = fs::OpenOptions::new()
        .write(true)
        .open(home.path())
        .unwrap();
    for page in 5..len / 4_096 {
        file.seek(SeekFrom::Start(page * 4_096)).unwrap();
        file.write_all(&[0xA5; 4_096]).unwrap();
    }
    drop(file);
    let store = home.open();
    let a = partition("a");
    let read = block_on(store.stats(&a)).unwrap_err();
    assert_eq!(read.kind(), StoreErrorKind::Corrupt, "{read:?}");
    let blocking = store.for_blocking_threads().unwrap();
    let read = block_on(blocking.get(&a, &"row-100".into())).unwrap_err();
    assert_eq!(read.kind(), StoreErrorKind::Corrupt, "{read:?}");
    let batch = Batch::new().require_absent("row-100").put("row-100", "x");
    let written = block_on(store.apply(&a, batch)).unwrap_err();
    assert_eq!(written.kind(), StoreErrorKind::Corrupt, "{written:?}");
    assert!(
        !written.to_string().contains("malformed"),
        "backend text stays in the source"
    );
}

#[test]
fn a_newer_schema_is_refused_and_not_touched() {
    let home = Home::new();
    filled(&home);
    home.stranger()
        .execute("UPDATE meta SET schema = 7", [])
        .unwrap();
    let error = refused(&home);
    assert!(matches!(&error, OpenError::NewerSchema { .. }), "{error:?}");
    let text = error.to_string();
    assert!(
        text.contains("schema 7") && text.contains("newer binary"),
        "{text}"
    );
    home.stranger()
        .execute("UPDATE meta SET schema = 1", [])
        .unwrap();
    assert!(get(&home.open(), &partition("a"), "row-000").is_some());
}

#[test]
fn a_database_of_another_program_is_refused_and_not_touched() {
    let home = Home::new();
    home.stranger()
        .execute_batch("CREATE TABLE kv (a); CREATE TABLE meta (b)")
        .unwrap();
    let error = refused(&home);
    assert!(matches!(&error, OpenError::Foreign { .. }), "{error:?}");
    let tables: i64 = home
        .stranger()
        .query_row("SELECT COUNT(*) FROM sqlite_master", [], |row| row.get(0))
        .unwrap();
    assert_eq!(tables, 2);
}

#[test]
fn a_read_only_file_is_refused_where_permissions_count() {
    let home = Home::new();
    filled(&home);
    let mut permissions = fs::metadata(home.path()).unwrap().permissions();
    permissions.set_readonly(true);
    fs::set_permissions(home.path(), permissions).unwrap();
    if fs::OpenOptions::new().write(true).open(home.path()).is_ok() {
        return; // A superuser may write it all the same, so there is nothing to see.
    }
    assert!(matches!(refused(&home), OpenError::ReadOnly { .. }));
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
    }
}
