//! Goal: a partition whose stored name is none is said to be damaged: it is not skipped in silence,
//! not mistaken for a partition that is gone, and ends no thread.
//! Method: another program spoils one name of a closed store, which is then asked for what a driver
//! asks for.
#![cfg(test)]
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test fails by panicking"
)]

mod support;

use dueline::store::{Batch, StoreError, StoreErrorKind, WakeStore};
use dueline::timers::KindSet;
use support::{Home, KIND, apply, block_on, get, partition, timer, wakes};

/// A closed store of three partitions with a timer each.
fn closed_store() -> Home {
    let home = Home::new();
    let store = home.open();
    for name in ["a", "b", "c"] {
        let batch = Batch::new().put(timer(KIND, 5_000, 1), "x").put("row", "x");
        apply(&store, &partition(name), batch);
    }
    store.close();
    home
}

/// What a driver asks for first, through both handles.
fn answers(store: &dyn WakeStore) -> Vec<Result<usize, StoreError>> {
    let kinds = KindSet::all();
    let due = block_on(store.due_wakes(&kinds, u64::MAX, None, 100));
    let partitions = block_on(store.partitions(None, 100));
    let audit = block_on(store.audit_wakes(None, 100));
    vec![
        due.map(|page| page.wakes.len()),
        partitions.map(|page| page.partitions.len()),
        audit.map(|page| page.repairs.len()),
    ]
}

#[test]
fn a_name_that_is_none_is_corrupt_to_whoever_asks_for_wakes_or_partitions() {
    let long = format!("zeroblob({})", 257);
    for spoiled in ["x''", "'text'", "''", "7", "-1.5", &long] {
        let home = closed_store();
        let update = format!("UPDATE part SET name = {spoiled} WHERE name = x'62'");
        assert_eq!(home.stranger().execute(&update, []).unwrap(), 1);
        let store = home.open();
        let blocking = store.for_blocking_threads().unwrap();
        for handle in [&store as &dyn WakeStore, &*blocking] {
            for answer in answers(handle) {
                let error = answer.unwrap_err();
                assert_eq!(error.kind(), StoreErrorKind::Corrupt, "{spoiled}: {error}");
            }
            assert!(get(handle, &partition("a"), "row").is_some());
            assert_eq!(get(handle, &partition("b"), "row"), None);
        }
        apply(&store, &partition("c"), Batch::new().put("row", "y"));

        let mend = format!("UPDATE part SET name = x'62' WHERE name = {spoiled}");
        assert_eq!(home.stranger().execute(&mend, []).unwrap(), 1);
        let due: Vec<_> = wakes(&store).into_iter().map(|wake| wake.1).collect();
        assert_eq!(due, ["a", "b", "c"], "no wake was taken for an orphan");
        assert!(get(&store, &partition("b"), "row").is_some());
    }
}

#[test]
fn a_name_that_is_null_is_corrupt_and_its_wake_is_kept() {
    let home = closed_store();
    let without_constraint = "ALTER TABLE part RENAME TO sound; \
         CREATE TABLE part (id INTEGER PRIMARY KEY, name BLOB UNIQUE); \
         INSERT INTO part SELECT id, nullif(name, x'62') FROM sound; DROP TABLE sound";
    home.stranger().execute_batch(without_constraint).unwrap();
    let store = home.open();
    let due = block_on(store.due_wakes(&KindSet::all(), u64::MAX, None, 100)).unwrap_err();
    assert_eq!(due.kind(), StoreErrorKind::Corrupt, "{due}");
    apply(&store, &partition("c"), Batch::new().put("row", "y"));
    let kept: i64 = home
        .stranger()
        .query_row("SELECT COUNT(*) FROM wake", [], |row| row.get(0))
        .unwrap();
    assert_eq!(kept, 3);
}

#[test]
fn a_wake_of_no_partition_no_kind_or_no_time_is_corrupt() {
    for (column, spoiled) in [("part", "x'01'"), ("kind", "256"), ("at", "-1")] {
        let home = closed_store();
        let update = format!("UPDATE wake SET {column} = {spoiled} WHERE part = 2");
        assert_eq!(home.stranger().execute(&update, []).unwrap(), 1);
        let store = home.open();
        let blocking = store.for_blocking_threads().unwrap();
        for handle in [&store as &dyn WakeStore, &*blocking] {
            let due = block_on(handle.due_wakes(&KindSet::all(), u64::MAX, None, 100));
            let what = format!("{column} = {spoiled}: {due:?}");
            assert_eq!(due.unwrap_err().kind(), StoreErrorKind::Corrupt, "{what}");
            assert!(get(handle, &partition("a"), "row").is_some());
        }
    }
}

#[test]
fn a_wake_whose_time_is_text_wakes_nobody_until_the_audit_sets_another() {
    let home = closed_store();
    let update = "UPDATE wake SET at = 'soon' WHERE part = 2";
    assert_eq!(home.stranger().execute(update, []).unwrap(), 1);
    let store = home.open();
    assert_eq!(wakes(&store).len(), 2);
    let audit = block_on(store.audit_wakes(None, 100)).unwrap();
    assert_eq!(audit.repairs.len(), 1, "{audit:?}");
    assert_eq!(wakes(&store).len(), 3);
}
