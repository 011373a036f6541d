//! One transaction for all that waits, counted: a call alone is one transaction, calls that wait
//! together share one, a group is one. And reads of a thread share one read transaction that no
//! commit finds open.
#![cfg(test)]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::sync::Arc;

use dueline::store::{Batch, BatchOutcome, Group, NamespaceStore, WakeStore};
use support::{Home, KIND, apply, block_on, block_on_parking, get, partition, poll_once, timer};

#[test]
fn a_schedule_alone_is_one_transaction() {
    let home = Home::new();
    let store = home.open();
    let before = store.counters();
    apply(
        &store,
        &partition("a"),
        Batch::new().put(timer(KIND, 5_000, 1), "x"),
    );
    let after = store.counters();
    assert_eq!(after.transactions - before.transactions, 1);
    assert_eq!(after.commits - before.commits, 1);
    assert_eq!(after.applies - before.applies, 1);
}

#[test]
fn a_group_of_64_batches_with_its_settle_is_one_transaction() {
    let home = Home::new();
    let store = home.open();
    let a = partition("a");
    let timers: Vec<_> = (0..64).map(|index| timer(KIND, 2_000, index)).collect();
    let puts = timers
        .iter()
        .fold(Batch::new(), |batch, key| batch.put(key.clone(), "x"));
    apply(&store, &a, puts);
    let before = store.counters();
    let fires: Vec<_> = timers
        .iter()
        .map(|key| {
            Batch::new()
                .require_present(key.clone())
                .delete(key.clone())
        })
        .collect();
    let settles = vec![dueline::store::WakeSettle {
        kind: KIND,
        served_ms: vec![2_000],
    }];
    let done = block_on(store.apply_all(
        &a,
        Group {
            batches: fires,
            settles,
        },
    ));
    assert_eq!((done.committed(), done.stopped_by.is_none()), (64, true));
    assert_eq!(store.counters().transactions - before.transactions, 1);
}

#[test]
fn callers_that_wait_together_share_transactions() {
    let home = Home::new();
    let store = home.open();
    let before = store.counters();
    // A thread that may block queues 64 applies before it commits them.
    let blocking = store.for_blocking_threads().unwrap();
    let partitions: Vec<_> = (0..64)
        .map(|index| partition(&format!("p{index}")))
        .collect();
    let mut calls: Vec<_> = partitions
        .iter()
        .map(|partition| blocking.apply(partition, Batch::new().put(timer(KIND, 5_000, 1), "x")))
        .collect();
    for call in &mut calls {
        assert!(poll_once(call).is_pending());
    }
    blocking.before_park();
    for call in calls {
        assert_eq!(block_on(call).unwrap(), BatchOutcome::Committed);
    }
    let shared = store.counters().transactions - before.transactions;
    // One, unless the writer thread took some of them over on a slow machine.
    assert!(shared <= 3, "{shared} transactions for 64 calls");
}

#[test]
fn a_batch_that_loses_writes_nothing_and_the_others_of_the_transaction_stand() {
    let home = Home::new();
    let store = home.open();
    let a = partition("a");
    apply(&store, &a, Batch::new().put("held", "1"));
    let group = vec![
        Batch::new()
            .require_present("held")
            .delete("held")
            .put("first", "x"),
        Batch::new()
            .require_absent("new")
            .require_present("held")
            .put("new", "x")
            .delete("held"),
        Batch::new().put("never", "x"),
    ];
    let before = store.counters();
    let done = block_on(store.apply_all(&a, group.into()));
    let lost = BatchOutcome::PreconditionFailed {
        index: 1,
        observed: None,
    };
    assert_eq!(done.outcomes, [BatchOutcome::Committed, lost]);
    assert_eq!(store.counters().transactions - before.transactions, 1);
    for (key, there) in [
        ("held", false),
        ("first", true),
        ("new", false),
        ("never", false),
    ] {
        assert_eq!(get(&store, &a, key).is_some(), there, "{key}");
    }
}

#[test]
fn reads_of_a_thread_share_a_transaction_until_it_writes_or_parks() {
    let home = Home::new();
    let store = home.open();
    let blocking = store.for_blocking_threads().unwrap();
    let a = partition("a");
    let reads = |times: usize| {
        let before = store.counters();
        for _ in 0..times {
            get(&*blocking, &a, "row");
        }
        let after = store.counters();
        (
            after.reads - before.reads,
            after.read_transactions - before.read_transactions,
        )
    };
    assert_eq!(reads(10), (10, 1));
    assert_eq!(reads(10), (10, 0));
    blocking.before_park();
    assert_eq!(reads(1), (1, 1));
    let put = blocking.apply(&a, Batch::new().put("row", "x"));
    assert!(block_on_parking(&*blocking, put).unwrap().is_committed());
    assert_eq!(reads(1), (1, 1));
}

#[test]
fn a_thread_sees_its_own_commit_and_after_parking_those_of_others() {
    let home = Home::new();
    let store = home.open();
    let blocking = store.for_blocking_threads().unwrap();
    let a = partition("a");
    assert_eq!(get(&*blocking, &a, "mine"), None);
    // The call is sent, the thread reads on (before the commit), and then the call comes back.
    let mut call = blocking.apply(&a, Batch::new().put("mine", "x"));
    assert!(poll_once(&mut call).is_pending());
    get(&*blocking, &a, "mine");
    assert!(block_on(call).unwrap().is_committed());
    assert!(
        get(&*blocking, &a, "mine").is_some(),
        "a completed apply is seen"
    );
    apply(&store, &a, Batch::new().put("theirs", "x"));
    blocking.before_park();
    assert!(get(&*blocking, &a, "theirs").is_some());
}

#[test]
fn a_blocking_thread_that_never_parks_is_served_all_the_same() {
    let home = Home::new();
    let store = home.open();
    let blocking = store.for_blocking_threads().unwrap();
    for index in 0..20 {
        let batch = Batch::new().put(format!("row-{index}"), "x");
        assert!(
            block_on(blocking.apply(&partition("a"), batch))
                .unwrap()
                .is_committed()
        );
        if index % 5 == 0 {
            // Long enough for the writer thread to stop watching.
            std::thread::park_timeout(std::time::Duration::from_millis(120));
        }
    }
}

#[test]
fn one_transaction_holds_many_partitions_and_each_sees_the_batches_before_it() {
    let home = Home::new();
    let store = home.open();
    let blocking: Arc<dyn WakeStore> = store.for_blocking_threads().unwrap();
    let (a, b) = (partition("a"), partition("b"));
    let create = || Batch::new().require_absent("row").put("row", "x");
    let mut calls = vec![
        blocking.apply(&a, create()),
        blocking.apply(&b, create()),
        blocking.apply(&a, create()),
        blocking.apply(&a, Batch::new().require_present("row").delete("row")),
        blocking.apply(&a, create()),
    ];
    for call in &mut calls {
        assert!(poll_once(call).is_pending());
    }
    blocking.before_park();
    let committed: Vec<_> = calls
        .into_iter()
        .map(|call| block_on(call).unwrap().is_committed())
        .collect();
    assert_eq!(committed, [true, true, false, true, true]);
}
