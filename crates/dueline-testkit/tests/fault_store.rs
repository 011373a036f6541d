//! Goal: each injected fault leaves behind exactly what it says, and nothing else is disturbed.
//! Method: a memory store inside, read behind the wrapper's back.
#![cfg(test)]

use std::sync::{Arc, Mutex};

use dueline::memory::MemoryStore;
use dueline::rows::TimerKey;
use dueline::store::{
    Batch, BatchOutcome, Group, NamespaceStore, Partition, ReadStore, StoreErrorKind, WakeSettle,
    WakeStore,
};
use dueline::timers::{KindSet, TimerKind};
use dueline_testkit::{
    CommitFault, FaultStore, ManualClock, ReadCall, block_on, commit, partition,
};

const KIND: TimerKind = TimerKind(16);

fn stores() -> (Arc<MemoryStore>, FaultStore, Partition) {
    let memory = Arc::new(MemoryStore::new(Arc::new(ManualClock::new(1_000))));
    let store = FaultStore::new(Arc::clone(&memory) as Arc<dyn WakeStore>);
    (memory, store, partition("p"))
}

fn put(key: &'static str) -> Batch {
    Batch::new().put(key, "v")
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

#[test]
fn only_the_commit_that_was_named_fails_and_nothing_of_it_is_written() {
    let (memory, store, p) = stores();
    store.fail_commit(2, CommitFault::NotWritten(StoreErrorKind::Unavailable));
    assert!(block_on(store.apply(&p, put("a"))).is_ok());
    let error = block_on(store.apply(&p, put("b"))).expect_err("the second");
    assert_eq!(error.kind(), StoreErrorKind::Unavailable);
    assert!(block_on(store.apply(&p, put("c"))).is_ok());
    let keys: Vec<_> = memory.rows(&p).into_iter().map(|(key, _)| key).collect();
    assert_eq!(keys, ["a", "c"]);
}

#[test]
fn a_lost_answer_is_unknown_and_the_group_is_written_with_its_settles() {
    let (memory, store, p) = stores();
    commit(&store, &p, timer(500));
    store.fail_commit(1, CommitFault::AnswerLost);
    let group = Group {
        batches: vec![put("a"), put("b")],
        settles: vec![WakeSettle {
            kind: TimerKind(9),
            served_ms: vec![],
        }],
    };
    let done = block_on(store.apply_all(&p, group));
    assert!(done.outcomes.is_empty() && done.next_wakes_ms.is_empty());
    assert_eq!(
        done.stopped_by.map(|error| error.kind()),
        Some(StoreErrorKind::Unknown)
    );
    assert_eq!(memory.rows(&p).len(), 3);
}

#[test]
fn a_group_stopped_in_the_middle_keeps_its_front_and_leaves_its_lanes_unsettled() {
    let (memory, store, p) = stores();
    commit(&store, &p, timer(500));
    store.fail_commit(
        1,
        CommitFault::StoppedAfter {
            batches: 1,
            kind: StoreErrorKind::Full,
        },
    );
    let group = Group {
        batches: vec![put("a"), put("b")],
        settles: vec![WakeSettle {
            kind: KIND,
            served_ms: vec![1_000],
        }],
    };
    let before = memory.wakes();
    let done = block_on(store.apply_all(&p, group));
    assert_eq!(done.outcomes, [BatchOutcome::Committed]);
    assert_eq!(
        done.stopped_by.map(|error| error.kind()),
        Some(StoreErrorKind::Full)
    );
    assert!(done.next_wakes_ms.is_empty());
    assert_eq!(memory.rows(&p).len(), 2);
    assert_eq!(memory.wakes(), before);
}

#[test]
fn a_settle_can_fail_too() {
    let (memory, store, p) = stores();
    commit(&store, &p, timer(500));
    let settle = WakeSettle {
        kind: KIND,
        served_ms: vec![1_000],
    };
    store.fail_commit(1, CommitFault::NotWritten(StoreErrorKind::Unknown));
    let error = block_on(store.settle_wake(&p, settle.clone())).expect_err("injected");
    assert_eq!(error.kind(), StoreErrorKind::Unknown);
    assert_eq!(
        block_on(store.settle_wake(&p, settle)).expect("healed"),
        Some(1_000)
    );
    assert_eq!(memory.wakes().len(), 1);
}

#[test]
fn a_race_runs_between_the_callers_read_and_its_commit() {
    let (_, store, p) = stores();
    store.before_commit(1, |inner, partition, group| {
        assert_eq!(group.batches.len(), 1);
        commit(inner, partition, Batch::new().put("a", "theirs"));
    });
    assert_eq!(block_on(store.get(&p, &"a".into())).expect("a read"), None);
    let outcome = block_on(store.apply(&p, put("a").require_absent("a"))).expect("an outcome");
    let observed = Some("theirs".into());
    assert_eq!(
        outcome,
        BatchOutcome::PreconditionFailed { index: 0, observed }
    );
}

#[test]
fn an_outage_lasts_until_it_is_healed() {
    let (_, store, p) = stores();
    store.fail_commits_with(|_, _| Some(CommitFault::NotWritten(StoreErrorKind::Unavailable)));
    store.fail_reads_with(|call| (call == ReadCall::Scan).then_some(StoreErrorKind::Corrupt));
    for _ in 0..3 {
        assert!(block_on(store.apply(&p, put("a"))).is_err());
    }
    let range = dueline::store::ScanRange::new("a", "z", 1);
    let error = block_on(store.scan(&p, &range)).expect_err("injected");
    assert_eq!(error.kind(), StoreErrorKind::Corrupt);
    assert!(
        block_on(store.get(&p, &"a".into())).is_ok(),
        "other reads work"
    );
    store.heal();
    assert!(block_on(store.apply(&p, put("a"))).is_ok());
    assert!(block_on(store.scan(&p, &range)).is_ok());
}

#[test]
fn only_the_read_that_was_named_fails() {
    let (_, store, p) = stores();
    store.fail_read(2, StoreErrorKind::Unavailable);
    assert!(block_on(store.due_wakes(&KindSet::all(), 0, None, 1)).is_ok());
    assert!(block_on(store.get_many(&p, &["a".into()])).is_err());
    assert!(block_on(store.probe()).is_ok());
}

#[test]
fn every_call_is_counted_and_every_commit_shown() {
    let (_, store, p) = stores();
    let seen = Arc::new(Mutex::new(Vec::new()));
    store.on_commit({
        let seen = Arc::clone(&seen);
        move |_, group| {
            seen.lock()
                .expect("no panic")
                .push((group.batches.len(), group.settles.len()));
        }
    });
    let settle = WakeSettle {
        kind: KIND,
        served_ms: vec![],
    };
    commit(&store, &p, put("a"));
    let group = Group {
        batches: vec![put("b"), put("c")],
        settles: vec![settle.clone()],
    };
    let done = block_on(store.apply_all(&p, group));
    assert_eq!(done.committed(), 2);
    block_on(store.settle_wake(&p, settle)).expect("a settle");
    let earlier = store.counts();
    block_on(store.get(&p, &"a".into())).expect("a read");
    block_on(store.stats(&p)).expect("a read");
    assert_eq!(*seen.lock().expect("no panic"), [(1, 0), (2, 1), (0, 1)]);
    assert_eq!(
        (earlier.applies, earlier.groups, earlier.settle_wakes),
        (1, 1, 1)
    );
    assert_eq!(
        (earlier.batches, earlier.settles, earlier.commits()),
        (3, 2, 3)
    );
    let since = store.counts() - earlier;
    assert_eq!(
        (since.gets, since.upkeep, since.row_reads(), since.commits()),
        (1, 1, 1, 0)
    );
}

#[test]
fn the_store_may_claim_another_stop_and_other_writers() {
    let (_, store, _) = stores();
    assert_eq!(store.unclean_opened_at_ms(), None);
    assert!(!store.capabilities().shared);
    store.set_unclean_opened_at_ms(Some(7));
    store.set_shared(true);
    assert_eq!(store.unclean_opened_at_ms(), Some(7));
    assert!(store.capabilities().shared && store.capabilities().wakes);
}
