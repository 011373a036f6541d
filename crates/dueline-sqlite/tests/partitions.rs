//! Partitions come with their first row and go with their last row and wake; wakes left behind
//! without a partition are hidden and purged; the audit repairs what is missing. A restart makes the
//! writer forget what it knew, and another program does the damage.
#![cfg(test)]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use dueline::store::{Batch, WakeSettle, WakeStore};
use dueline::timers::KindSet;
use support::{Home, KIND, apply, block_on, partition, timer, wakes};

#[test]
fn the_audit_repairs_wakes_that_are_missing_or_late() {
    let home = Home::new();
    let store = home.open();
    for name in ["a", "b", "c"] {
        apply(
            &store,
            &partition(name),
            Batch::new().put(timer(KIND, 5_000, 1), "x"),
        );
    }
    store.close();
    let other = home.stranger();
    other
        .execute("DELETE FROM wake WHERE part = 1", [])
        .unwrap();
    other
        .execute("UPDATE wake SET at = 6000 WHERE part = 2", [])
        .unwrap();
    other
        .execute("UPDATE wake SET at = 4000 WHERE part = 3", [])
        .unwrap();
    drop(other);
    let store = home.open();
    let first = block_on(store.audit_wakes(None, 2)).unwrap();
    assert_eq!(first.partitions, 2);
    let repaired: Vec<_> = first
        .repairs
        .iter()
        .map(|repair| (repair.partition.to_string(), repair.at_ms))
        .collect();
    assert_eq!(repaired, [("a".to_owned(), 5_000), ("b".to_owned(), 5_000)]);
    let second = block_on(store.audit_wakes(first.next.as_ref(), 2)).unwrap();
    assert_eq!(
        (second.partitions, second.repairs.len(), second.next),
        (1, 0, None)
    );
    assert!(
        block_on(store.audit_wakes(None, 9))
            .unwrap()
            .repairs
            .is_empty()
    );
}

#[test]
fn an_empty_partition_goes_with_its_last_wake_and_comes_back_under_its_name() {
    let home = Home::new();
    let store = home.open();
    let a = partition("a");
    apply(&store, &a, Batch::new().put(timer(KIND, 5_000, 1), "x"));
    apply(&store, &a, Batch::new().delete(timer(KIND, 5_000, 1)));
    assert_eq!(wakes(&store), [(5_000, "a".into(), 16)]);
    let served = WakeSettle {
        kind: KIND,
        served_ms: vec![5_000],
    };
    assert_eq!(block_on(store.settle_wake(&a, served)).unwrap(), None);
    assert_eq!(wakes(&store), []);
    assert!(
        block_on(store.partitions(None, 9))
            .unwrap()
            .partitions
            .is_empty()
    );
    apply(&store, &a, Batch::new().put(timer(KIND, 6_000, 1), "x"));
    assert_eq!(wakes(&store), [(6_000, "a".into(), 16)]);
    assert_eq!(block_on(store.partitions(None, 9)).unwrap().partitions, [a]);
}

#[test]
fn a_wake_left_without_a_partition_is_hidden_and_purged() {
    let home = Home::new();
    let store = home.open();
    apply(
        &store,
        &partition("a"),
        Batch::new().put(timer(KIND, 5_000, 1), "x"),
    );
    store.close();
    // After the restart the writer does not know of the wake when the partition goes.
    let store = home.open();
    apply(
        &store,
        &partition("a"),
        Batch::new().delete(timer(KIND, 5_000, 1)),
    );
    let count = |home: &Home| -> i64 {
        home.stranger()
            .query_row("SELECT COUNT(*) FROM wake", [], |row| row.get(0))
            .unwrap()
    };
    assert_eq!(count(&home), 1);
    assert_eq!(wakes(&store), []);
    apply(&store, &partition("b"), Batch::new().put("row", "x"));
    assert_eq!(count(&home), 0);
}

#[test]
fn wakes_left_without_a_partition_neither_fill_nor_cut_short_a_page() {
    let home = Home::new();
    let store = home.open();
    for index in 0..20 {
        let due_ms = 2_000 + index;
        apply(
            &store,
            &partition(&format!("p{index:02}")),
            Batch::new().put(timer(KIND, due_ms, 1), "x"),
        );
    }
    store.close();
    home.stranger()
        .execute("DELETE FROM part WHERE name < CAST('p15' AS BLOB)", [])
        .unwrap();
    let store = home.open();
    let page = block_on(store.due_wakes(&KindSet::all(), u64::MAX, None, 3)).unwrap();
    let found: Vec<_> = page.wakes.iter().map(|wake| wake.at_ms).collect();
    assert_eq!(found, [2_015, 2_016, 2_017]);
    let rest = block_on(store.due_wakes(&KindSet::all(), u64::MAX, page.next.as_ref(), 3));
    let rest = rest.unwrap();
    assert_eq!((rest.wakes.len(), rest.next), (2, None));
}

#[test]
fn the_audit_finds_the_wakes_of_lanes_that_were_overdue_before_a_restart() {
    let home = Home::new();
    let store = home.open();
    home.clock.set(50_000);
    for index in 0..40_u64 {
        // Overdue when put: the wake is set at the moment of the put, not at the due.
        home.clock.set(50_000 + i64::try_from(index).unwrap());
        let batch = Batch::new().put(timer(KIND, 2_000 + index, 1), "x");
        apply(&store, &partition(&format!("p{index:02}")), batch);
    }
    store.close();
    home.clock.set(60_000);
    let gone = "DELETE FROM wake WHERE at IN (50007, 50031)";
    assert_eq!(home.stranger().execute(gone, []).unwrap(), 2);
    let store = home.open();
    let audit = block_on(store.audit_wakes(None, 100)).unwrap();
    let repaired: Vec<_> = audit
        .repairs
        .iter()
        .map(|repair| (repair.partition.to_string(), repair.at_ms))
        .collect();
    assert_eq!(
        repaired,
        [("p07".to_owned(), 60_000), ("p31".to_owned(), 60_000)]
    );
    assert!(
        block_on(store.audit_wakes(None, 100))
            .unwrap()
            .repairs
            .is_empty()
    );
}
