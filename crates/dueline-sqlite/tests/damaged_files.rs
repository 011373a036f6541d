//! Files that are damaged, newer than this binary, or not ours: each has its own error, and none is
//! touched. The damage is done to the file of a closed store.
#![cfg(test)]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test fails by panicking, and its child process speaks on its standard output"
)]

mod support;

use std::fs;
use std::io::{Seek, SeekFrom, Write};

use dueline::store::{Batch, NamespaceStore, StoreErrorKind, WakeStore};
use dueline_sqlite::{OpenError, SqliteStore};
use support::{Home, apply, block_on, get, partition};

#[test]
fn a_file_that_is_no_database_is_corrupt_and_left_as_it_is() {
    let home = Home::new();
    let garbage = b"this is a shopping list, not a database. ".repeat(200);
    fs::write(home.path(), &garbage).unwrap();
    let error = home.refused();
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
    let error = home.refused();
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
    let error = home.refused();
    assert!(matches!(&error, OpenError::Foreign { .. }), "{error:?}");
    let tables: i64 = home
        .stranger()
        .query_row("SELECT COUNT(*) FROM sqlite_master", [], |row| row.get(0))
        .unwrap();
    assert_eq!(tables, 2);
}
