//! Goal: what the store in memory does beyond the contract: faults on demand, a lock that survives
//! a panic, capacity to the byte, and what it shows of itself. Method: its own public interface.
#![cfg(test)]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use dueline::memory::{Fault, MemoryStore};
use dueline::rows::TimerKey;
use dueline::runtime::Clock;
use dueline::store::{
    Batch, BatchOutcome, Group, NamespaceStore, StoreErrorKind, Wake, WakeRepair, WakeSettle,
    WakeStore,
};
use dueline::timers::TimerKind;
use dueline_testkit::{ManualClock, block_on, commit, partition};

const KIND: TimerKind = TimerKind(16);

fn store() -> MemoryStore {
    MemoryStore::new(Arc::new(ManualClock::new(1_000)))
}

fn timer(due_ms: u64) -> Batch {
    let key = TimerKey {
        kind: KIND,
        due_ms,
        generation: 1,
        reference: "r".into(),
    };
    Batch::new().put(key.encode(), "v")
}

/// A clock that panics at one of its readings, as a broken host's might.
#[derive(Debug)]
struct PanickingClock {
    readings_left: AtomicU64,
}

impl Clock for PanickingClock {
    fn wall_ms(&self) -> i64 {
        assert_ne!(
            self.readings_left.fetch_sub(1, Ordering::Relaxed),
            0,
            "this clock is broken"
        );
        1_000
    }

    fn monotonic(&self) -> Duration {
        Duration::ZERO
    }
}

#[test]
fn a_panic_under_the_lock_leaves_the_store_whole_and_usable() {
    let clock = Arc::new(PanickingClock {
        readings_left: AtomicU64::new(2),
    });
    let store = MemoryStore::new(clock);
    let p = partition("p");
    commit(&store, &p, Batch::new().put("before", "v"));
    let group = vec![
        Batch::new().put("first", "v"),
        Batch::new().put("second", "v"),
    ];
    let result = catch_unwind(AssertUnwindSafe(|| {
        block_on(store.apply_all(&p, group.into()))
    }));
    assert!(result.is_err(), "the clock panics at the second batch");
    let keys: Vec<_> = store.rows(&p).into_iter().map(|(key, _)| key).collect();
    assert_eq!(
        keys,
        ["before", "first"],
        "each batch in full or not at all"
    );
    commit(
        &store,
        &p,
        Batch::new().require_absent("second").put("after", "v"),
    );
}

#[test]
fn one_poll_completes_an_apply() {
    let store = store();
    let p = partition("p");
    let mut future = store.apply(&p, Batch::new().put("k", "v"));
    let mut context = Context::from_waker(Waker::noop());
    assert!(matches!(
        future.as_mut().poll(&mut context),
        Poll::Ready(Ok(BatchOutcome::Committed))
    ));
}

#[test]
fn a_fault_before_the_commit_writes_nothing_once() {
    for kind in [
        StoreErrorKind::Unavailable,
        StoreErrorKind::Unknown,
        StoreErrorKind::Full,
    ] {
        let store = store();
        let p = partition("p");
        store.fail_next_apply(Fault::Before(kind));
        let error = block_on(store.apply(&p, timer(2_000))).expect_err("the fault");
        assert_eq!(error.kind(), kind);
        assert_eq!((store.rows(&p).len(), store.wakes().len()), (0, 0));
        commit(&store, &p, timer(2_000));
    }
}

#[test]
fn a_fault_after_the_commit_writes_everything_and_answers_unknown() {
    let store = store();
    let p = partition("p");
    store.fail_next_apply(Fault::AfterCommit);
    let error = block_on(store.apply(&p, timer(2_000))).expect_err("the fault");
    assert_eq!(error.kind(), StoreErrorKind::Unknown);
    assert_eq!((store.rows(&p).len(), store.wakes().len()), (1, 1));
    store.fail_next_apply(Fault::AfterCommit);
    let settles = vec![WakeSettle {
        kind: KIND,
        served_ms: vec![2_000],
    }];
    let batches = vec![timer(3_000), Batch::new().put("k", "v")];
    let done = block_on(store.apply_all(&p, Group { batches, settles }));
    assert!(
        done.outcomes.is_empty() && done.next_wakes_ms.is_empty(),
        "{done:?}"
    );
    assert_eq!(
        done.stopped_by.map(|error| error.kind()),
        Some(StoreErrorKind::Unknown)
    );
    assert_eq!(store.rows(&p).len(), 3);
}

#[test]
fn an_invalid_batch_does_not_use_up_a_fault() {
    let store = store();
    let p = partition("p");
    store.fail_next_apply(Fault::Before(StoreErrorKind::Unavailable));
    let error = block_on(store.apply(&p, Batch::new().put(vec![0; 1_025], ""))).expect_err("size");
    assert_eq!(error.kind(), StoreErrorKind::Invalid);
    let error = block_on(store.apply(&p, Batch::new())).expect_err("the fault");
    assert_eq!(error.kind(), StoreErrorKind::Unavailable);
}

#[test]
fn capacity_counts_keys_and_values_to_the_byte_behind_the_batch() {
    let store = store().with_capacity_limit(100).with_reserve(10);
    let (p, q) = (partition("p"), partition("q"));
    let full = |batch: Batch| {
        let answer = block_on(store.apply(&p, batch));
        assert_eq!(answer.expect_err("no room").kind(), StoreErrorKind::Full);
    };
    commit(&store, &p, Batch::new().put("a", vec![0; 49]));
    commit(&store, &q, Batch::new().put("b", vec![0; 49]));
    assert_eq!(store.bytes(), 100);
    full(Batch::new().put("c", ""));
    commit(&store, &p, Batch::new().put("a", vec![1; 49]));
    commit(&store, &p, Batch::new().delete("a").put("c", vec![0; 49]));
    let mut from_the_reserve = Batch::new().put("d", vec![0; 9]);
    from_the_reserve.uses_reserve = true;
    commit(&store, &p, from_the_reserve.clone());
    assert_eq!(store.bytes(), 110);
    full(from_the_reserve.put("e", ""));
    full(Batch::new().put("c", vec![1; 49]));
    commit(&store, &p, Batch::new().delete("d"));
    commit(&store, &p, Batch::new().delete("c").put("c", vec![1; 49]));
    assert_eq!(block_on(store.stats(&p)).expect("statistics").bytes, 50);
}

#[test]
fn a_batch_refused_as_full_is_taken_back_to_the_last_key() {
    let store = store().with_capacity_limit(20);
    let p = partition("p");
    commit(
        &store,
        &p,
        Batch::new().put("kept", "1").put("deleted", "2"),
    );
    let before = store.rows(&p);
    let batch = Batch::new()
        .put("kept", "new")
        .delete("deleted")
        .put("fresh", "3")
        .put("fresh", "4")
        .delete("kept")
        .put("large", vec![0; 30]);
    assert!(block_on(store.apply(&p, batch)).is_err());
    assert_eq!(store.rows(&p), before);
    assert_eq!(store.bytes(), 13);
    let elsewhere = partition("elsewhere");
    assert!(block_on(store.apply(&elsewhere, Batch::new().put("large", vec![0; 30]))).is_err());
    assert_eq!(
        block_on(store.partitions(None, 9))
            .expect("a page")
            .partitions,
        [p]
    );
}

#[test]
fn the_audit_sets_a_wake_that_was_taken_away() {
    let store = store();
    let p = partition("p");
    commit(&store, &p, timer(2_000));
    let wake = Wake {
        at_ms: 2_000,
        partition: p.clone(),
        kind: KIND,
    };
    assert_eq!(store.wakes(), std::slice::from_ref(&wake));
    assert!(store.remove_wake(&wake));
    assert!(!store.remove_wake(&wake));
    let page = block_on(store.audit_wakes(None, 10)).expect("an audit");
    assert_eq!(
        page.repairs,
        [WakeRepair {
            partition: p,
            kind: KIND,
            at_ms: 2_000
        }]
    );
    assert_eq!(store.wakes(), [wake]);
}
