//! Wakes are rows of the same transaction as the timers: after every commit each lane that is not
//! paused has one at or before `max(now, its first row's due)`. Checked by reading all wakes after
//! each step, on a manual clock.
#![cfg(test)]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use dueline::store::{Batch, Group, NamespaceStore, WakeCursor, WakeSettle, WakeStore};
use dueline::timers::{KindSet, TimerKind};
use support::{Home, KIND, apply, block_on, partition, pause, timer, wakes};

fn settle(store: &dyn WakeStore, name: &str, kind: TimerKind, served_ms: &[u64]) -> Option<u64> {
    let settle = WakeSettle {
        kind,
        served_ms: served_ms.to_vec(),
    };
    block_on(store.settle_wake(&partition(name), settle)).unwrap()
}

#[test]
fn a_put_arms_its_lane_at_the_due_and_never_before_now() {
    let home = Home::new();
    let store = home.open();
    apply(
        &store,
        &partition("a"),
        Batch::new().put(timer(KIND, 5_000, 1), "x"),
    );
    apply(
        &store,
        &partition("b"),
        Batch::new().put(timer(KIND, 10, 1), "x"),
    );
    assert_eq!(
        wakes(&store),
        [(1_000, "b".into(), 16), (5_000, "a".into(), 16)]
    );
}

#[test]
fn an_earlier_put_replaces_the_wake_and_a_later_one_adds_none() {
    let home = Home::new();
    let store = home.open();
    for due_ms in [5_000, 3_000, 4_000] {
        apply(
            &store,
            &partition("a"),
            Batch::new().put(timer(KIND, due_ms, 1), "x"),
        );
    }
    assert_eq!(wakes(&store), [(3_000, "a".into(), 16)]);
}

#[test]
fn a_lane_unknown_after_a_restart_gets_one_wake_more() {
    let home = Home::new();
    let store = home.open();
    apply(
        &store,
        &partition("a"),
        Batch::new().put(timer(KIND, 3_000, 1), "x"),
    );
    store.close();
    let store = home.open();
    apply(
        &store,
        &partition("a"),
        Batch::new().put(timer(KIND, 4_000, 1), "x"),
    );
    assert_eq!(
        wakes(&store),
        [(3_000, "a".into(), 16), (4_000, "a".into(), 16)]
    );
}

#[test]
fn a_settle_takes_what_was_served_and_sets_the_next_row() {
    let home = Home::new();
    let store = home.open();
    let a = partition("a");
    apply(
        &store,
        &a,
        Batch::new()
            .put(timer(KIND, 2_000, 1), "x")
            .put(timer(KIND, 9_000, 1), "x"),
    );
    home.clock.set(2_500);
    let group = Group {
        batches: vec![
            Batch::new()
                .require_present(timer(KIND, 2_000, 1))
                .delete(timer(KIND, 2_000, 1)),
        ],
        settles: vec![WakeSettle {
            kind: KIND,
            served_ms: vec![2_000],
        }],
    };
    let done = block_on(store.apply_all(&a, group));
    assert!(done.stopped_by.is_none());
    assert_eq!(done.next_wakes_ms, [Some(9_000)]);
    assert_eq!(wakes(&store), [(9_000, "a".into(), 16)]);
}

#[test]
fn a_lane_that_is_still_due_is_settled_at_now() {
    let home = Home::new();
    let store = home.open();
    apply(
        &store,
        &partition("a"),
        Batch::new().put(timer(KIND, 2_000, 1), "x"),
    );
    home.clock.set(7_000);
    assert_eq!(settle(&store, "a", KIND, &[2_000]), Some(7_000));
    assert_eq!(wakes(&store), [(7_000, "a".into(), 16)]);
}

#[test]
fn a_put_and_a_settle_that_share_a_transaction_leave_the_wake_of_the_put() {
    let home = Home::new();
    let store = home.open();
    let a = partition("a");
    apply(&store, &a, Batch::new().put(timer(KIND, 2_000, 1), "x"));
    let fast = store.for_blocking_threads().unwrap();
    let mut put = fast.apply(&a, Batch::new().put(timer(KIND, 3_000, 2), "x"));
    let served = Group {
        batches: vec![Batch::new().delete(timer(KIND, 2_000, 1))],
        settles: vec![WakeSettle {
            kind: KIND,
            served_ms: vec![2_000],
        }],
    };
    let mut served = fast.apply_all(&a, served);
    assert!(support::poll_once(&mut served).is_pending());
    assert!(support::poll_once(&mut put).is_pending());
    fast.before_park();
    let done = block_on(served);
    assert_eq!(done.next_wakes_ms, [Some(3_000)]);
    assert!(block_on(put).unwrap().is_committed());
    assert_eq!(wakes(&store), [(3_000, "a".into(), 16)]);
}

#[test]
fn a_paused_lane_has_no_wake_after_its_settle_and_one_when_the_pause_ends() {
    let home = Home::new();
    let store = home.open();
    let a = partition("a");
    apply(
        &store,
        &a,
        Batch::new()
            .put(timer(KIND, 2_000, 1), "x")
            .put(pause(KIND), [0; 8].to_vec()),
    );
    assert_eq!(settle(&store, "a", KIND, &[2_000]), None);
    assert_eq!(wakes(&store), []);
    assert!(
        block_on(store.audit_wakes(None, 10))
            .unwrap()
            .repairs
            .is_empty()
    );
    apply(&store, &a, Batch::new().delete(pause(KIND)));
    assert_eq!(wakes(&store), [(2_000, "a".into(), 16)]);
}

#[test]
fn malformed_keys_of_the_timer_class_are_woken_for() {
    let home = Home::new();
    let store = home.open();
    let a = partition("a");
    apply(
        &store,
        &a,
        Batch::new()
            .put(b"w\0".to_vec(), "x")
            .put(b"w\0\x20\0\0\0\0\0\0\x20".to_vec(), "x"),
    );
    // Kind 0 at now; kind 32 due at 0x2000 of the bytes there are, filled with a zero.
    assert_eq!(
        wakes(&store),
        [(1_000, "a".into(), 0), (8_192, "a".into(), 32)]
    );
    assert_eq!(settle(&store, "a", TimerKind(0), &[1_000]), Some(1_000));
    apply(&store, &a, Batch::new().delete(b"w\0".to_vec()));
    assert_eq!(settle(&store, "a", TimerKind(0), &[1_000]), None);
}

#[test]
fn a_due_beyond_the_last_year_is_stored_as_the_last_moment() {
    let home = Home::new();
    let store = home.open();
    apply(
        &store,
        &partition("a"),
        Batch::new().put(timer(KIND, u64::MAX, 1), "x"),
    );
    assert_eq!(
        wakes(&store),
        [(dueline::limits::DUE_MS_MAX, "a".into(), 16)]
    );
}

#[test]
fn pages_of_due_wakes_merge_the_kinds_asked_for_and_skip_the_others() {
    let home = Home::new();
    let store = home.open();
    for (index, name) in ["a", "b", "c", "d"].iter().enumerate() {
        let due_ms = 2_000 + 100 * (index as u64 / 2);
        let mut batch = Batch::new();
        for kind in [16, 17, 200] {
            batch = batch.put(timer(TimerKind(kind), due_ms, 1), "x");
        }
        apply(&store, &partition(name), batch);
    }
    let kinds: KindSet = [TimerKind(16), TimerKind(200)].into_iter().collect();
    let mut found = Vec::new();
    let mut after: Option<WakeCursor> = None;
    loop {
        let page = block_on(store.due_wakes(&kinds, 2_100, after.as_ref(), 3)).unwrap();
        found.extend(
            page.wakes
                .iter()
                .map(|wake| (wake.at_ms, wake.kind.0, wake.partition.to_string())),
        );
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    let expected: Vec<_> = [
        (2_000, 16, "a"),
        (2_000, 16, "b"),
        (2_000, 200, "a"),
        (2_000, 200, "b"),
        (2_100, 16, "c"),
        (2_100, 16, "d"),
        (2_100, 200, "c"),
        (2_100, 200, "d"),
    ]
    .into_iter()
    .map(|(at, kind, name)| (at, kind, name.to_owned()))
    .collect();
    assert_eq!(found, expected);
    let until_earlier = block_on(store.due_wakes(&kinds, 2_099, None, 4)).unwrap();
    assert_eq!((until_earlier.wakes.len(), until_earlier.next), (4, None));
}

#[test]
fn wakes_survive_a_reopen() {
    let home = Home::new();
    let store = home.open();
    apply(
        &store,
        &partition("a"),
        Batch::new().put(timer(KIND, 5_000, 1), "x"),
    );
    store.close();
    assert_eq!(wakes(&home.open()), [(5_000, "a".into(), 16)]);
}
