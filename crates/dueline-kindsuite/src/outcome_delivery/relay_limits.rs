//! The relay: budgets, many targets, and many that fail.

use std::future::pending;
use std::sync::Arc;

use bytes::Bytes;
use dueline::BoxFuture;
use dueline::kinds::outcome_delivery::{OUTCOME_DELIVERY, OutcomeDelivery, Relay, RelayMessage};
use dueline::store::{
    Batch, BatchOutcome, Capabilities, Group, Key, NamespaceStore, Partition, PartitionStats,
    ReadStore, ScanPage, ScanRange, StoreError, Value,
};
use dueline_testkit::ManualClock;

use super::fixture::{exact, give_way};
use super::relay_fixture::{Ferry, message, partition};
use crate::Make;

pub fn operations_and_bytes_split_the_batches(make: Make<'_>) {
    let ferry = Ferry::new(make);
    let wide = |target: &str, from: u32| {
        let mut message = RelayMessage::to(partition(target));
        for number in from..from + 60 {
            message = message.put(format!("key-{number}"), "x");
        }
        message
    };
    ferry.send(&[wide("b", 0), wide("b", 60), wide("b", 120), wide("c", 0)]);
    ferry.tick();
    assert_eq!(ferry.at("b", "key-119"), Some("x".into()), "two batches");
    assert_eq!(ferry.at("b", "key-120"), None);
    assert_eq!(ferry.at("c", "key-59"), Some("x".into()));
    assert_eq!(ferry.backlog(), 1);
    assert!(ferry.due_in_ms() <= 1);
    ferry.drain();
    assert_eq!(ferry.at("b", "key-179"), Some("x".into()));
    for number in 0..10 {
        let large = vec![number; 255 * 1_024];
        let large = RelayMessage::to(partition("d")).put(format!("large-{number}"), large);
        ferry.send(&[large]);
    }
    ferry.drain();
    assert!(ferry.at("d", "large-9").is_some());
    let (ops, bytes) = ferry.world.largest_batch();
    assert!(ops <= 100 && bytes <= 1_024 * 1_024, "{ops} {bytes}");
}

pub fn a_run_over_its_budget_goes_on_at_once(make: Make<'_>) {
    let ferry = Ferry::with(make, exact().run_budget_ms(10_000));
    let clock = ferry.world.clock.clone();
    let slow = move |partition: &Partition, _: &Group| {
        if partition.as_bytes() != b"p" {
            clock.advance_ms(4_000);
        }
        None
    };
    ferry.world.store.fail_commits_with(slow);
    let targets = ["b", "c", "d", "e", "f"];
    ferry.send_puts(&targets.map(|target| (target, "key", "x")));
    ferry.tick();
    assert_eq!(ferry.backlog(), 2, "the third began within 10 s");
    assert!(ferry.due_in_ms() <= 1);
    ferry.tick_when_due();
    assert_eq!(ferry.backlog(), 0);
}

fn bad(count: usize) -> Vec<RelayMessage> {
    let names = (0..count).map(|number| format!("bad-{number:02}"));
    names.map(|name| message(&name, "key", "1")).collect()
}

pub fn up_to_32_failing_targets_do_not_starve_a_healthy_one(make: Make<'_>) {
    for failing in [1, 15, 16, 17, 31, 32] {
        let ferry = Ferry::new(make);
        ferry.fail_targets("bad");
        ferry.send(&bad(failing));
        ferry.send(&bad(failing));
        ferry.send_puts(&[("good", "key", "1")]);
        let start_ms = ferry.world.now_ms();
        while ferry.at("good", "key").is_none() {
            ferry.tick_when_due();
            assert!(ferry.world.now_ms() - start_ms < 100, "in the first pass");
        }
        assert_eq!(ferry.backlog(), 2 * failing as u64);
        ferry.world.store.heal();
        ferry.drain();
        assert_eq!(ferry.at("bad-00", "key"), Some("1".into()));
    }
}

pub fn one_failing_target_more_ends_the_pass_and_breaks_no_order(make: Make<'_>) {
    let ferry = Ferry::new(make);
    let tried = ferry.fail_targets("bad");
    ferry.send(&bad(33));
    ferry.send_puts(&[("bad-32", "key", "2"), ("good", "key", "1")]);
    for _ in 0..12 {
        ferry.tick_when_due();
        assert_eq!(ferry.at("bad-32", "key"), None);
    }
    assert_eq!(tried.lock().unwrap().len(), 33);
    assert_eq!(ferry.backlog(), 35, "nothing is lost, nothing passed");
    assert!(ferry.due_in_ms() >= 1_000, "and nothing spins");
    ferry.world.store.heal();
    ferry.drain();
    assert_eq!(ferry.at("bad-32", "key"), Some("2".into()));
    assert_eq!(ferry.at("good", "key"), Some("1".into()));
}

pub fn new_messages_wait_for_the_next_pass(make: Make<'_>) {
    let ferry = Ferry::with(make, exact().rows_max(1));
    ferry.fail_targets("bad");
    ferry.send_puts(&[("bad", "key", "1"), ("b", "1", "x")]);
    for number in 0..40 {
        ferry.tick_when_due();
        ferry.send_puts(&[("b", &format!("more-{number}"), "x")]);
    }
    ferry.world.store.heal();
    // However much is appended, a target that failed has its turn again.
    for number in 0..200 {
        ferry.tick_when_due();
        ferry.send_puts(&[("b", &format!("still-{number}"), "x")]);
        if ferry.at("bad", "key").is_some() {
            return;
        }
    }
    panic!("the target that failed is starved");
}

pub fn four_thousand_targets_have_their_turn_sixteen_a_run(make: Make<'_>) {
    let ferry = Ferry::new(make);
    let names = (0..4_096).map(|number| format!("t-{number}"));
    let messages: Vec<RelayMessage> = names.map(|name| message(&name, "key", "1")).collect();
    ferry.send(&messages);
    let before = ferry.world.costs();
    ferry.tick();
    let applies = ferry.world.costs_since(&before).calls.applies;
    assert_eq!(applies, 16, "one each");
    assert_eq!(ferry.drain(), 4_096 / 16 - 1);
    assert_eq!(ferry.at("t-0", "key"), Some("1".into()));
    assert_eq!(ferry.at("t-4095", "key"), Some("1".into()));
}

pub fn a_lost_progress_begins_at_the_head_and_breaks_no_order(make: Make<'_>) {
    let ferry = Ferry::with(make, exact().rows_max(1));
    ferry.fail_targets("bad");
    ferry.send_puts(&[
        ("bad", "one", "1"),
        ("b", "key", "1"),
        ("bad", "two", "1"),
        ("b", "key", "2"),
    ]);
    ferry.tick();
    ferry.tick_when_due();
    // The failure is remembered in the payload, which begins behind a header of 12 bytes.
    let key = ferry.world.timer_keys().remove(0);
    let row = ferry.world.get(&key).unwrap();
    assert!(row.windows(3).any(|bytes| bytes == b"bad"));
    let garbled = Bytes::from([&row[..12], b"\xff"].concat());
    ferry.world.commit(Batch::new().put(key, garbled));
    for _ in 0..6 {
        ferry.tick_when_due();
        assert_eq!(ferry.at("bad", "two"), None);
    }
    assert_eq!(ferry.at("b", "key"), Some("2".into()));
    ferry.world.store.heal();
    ferry.drain();
    assert_eq!(ferry.at("bad", "two"), Some("1".into()));
}

pub fn a_progress_of_a_relay_that_is_wrong_leaves_no_target_waiting(make: Make<'_>) {
    let ferry = Ferry::new(make);
    ferry.send_puts(&[("a", "key", "1"), ("b", "key", "1")]);
    let key = ferry.world.timer_keys().remove(0);
    let mut row = ferry.world.get(&key).unwrap().to_vec();
    // Cursor and end of the pass, behind a header of 12 bytes, a version of 1, a stamp of 8 and an attempt of 2.
    row[23..31].copy_from_slice(&1_u64.to_be_bytes());
    row[31..39].copy_from_slice(&2_u64.to_be_bytes());
    ferry.world.commit(Batch::new().put(key, row));
    ferry.drain();
    for target in ["a", "b"] {
        assert_eq!(ferry.at(target, "key"), Some("1".into()), "{target}");
    }
}

/// A pass that is over before it began would make a run that looks at nothing.
pub fn a_progress_of_a_relay_beyond_the_last_message_costs_no_run(make: Make<'_>) {
    for (cursor, pass_end) in [
        (7, 9),
        (0, u64::MAX),
        (u64::MAX - 1, u64::MAX),
        (u64::MAX, 2),
    ] {
        let ferry = Ferry::new(make);
        ferry.send_puts(&[("a", "key", "1"), ("b", "key", "1")]);
        let key = ferry.world.timer_keys().remove(0);
        let mut row = ferry.world.get(&key).unwrap().to_vec();
        row[23..31].copy_from_slice(&u64::to_be_bytes(cursor));
        row[31..39].copy_from_slice(&u64::to_be_bytes(pass_end));
        ferry.world.commit(Batch::new().put(key, row));
        ferry.tick();
        for target in ["a", "b"] {
            assert_eq!(ferry.at(target, "key"), Some("1".into()), "{target}");
        }
        assert_eq!(ferry.backlog(), 0);
        assert!(ferry.world.timer_keys().is_empty());
    }
}

/// A store whose commits to one partition never end.
#[derive(Debug)]
struct Stuck {
    inner: Arc<dyn NamespaceStore>,
    clock: ManualClock,
}

impl ReadStore for Stuck {
    fn get<'a>(
        &'a self,
        partition: &'a Partition,
        key: &'a Key,
    ) -> BoxFuture<'a, Result<Option<Value>, StoreError>> {
        self.inner.get(partition, key)
    }

    fn scan<'a>(
        &'a self,
        partition: &'a Partition,
        range: &'a ScanRange,
    ) -> BoxFuture<'a, Result<ScanPage, StoreError>> {
        self.inner.scan(partition, range)
    }
}

impl NamespaceStore for Stuck {
    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    fn apply<'a>(
        &'a self,
        partition: &'a Partition,
        batch: Batch,
    ) -> BoxFuture<'a, Result<BatchOutcome, StoreError>> {
        if partition.as_bytes() != b"stuck" {
            return self.inner.apply(partition, batch);
        }
        Box::pin(async move {
            give_way().await;
            self.clock.advance_ms(5_000);
            pending().await
        })
    }

    fn stats<'a>(
        &'a self,
        partition: &'a Partition,
    ) -> BoxFuture<'a, Result<PartitionStats, StoreError>> {
        self.inner.stats(partition)
    }

    fn probe(&self) -> BoxFuture<'_, Result<u64, StoreError>> {
        self.inner.probe()
    }
}

pub fn a_target_that_hangs_is_cut_at_its_deadline(make: Make<'_>) {
    let ferry = Ferry::new(make);
    let store = Arc::new(Stuck {
        inner: ferry.world.shared(),
        clock: ferry.world.clock.clone(),
    });
    let delivery = OutcomeDelivery::new(ferry.world.runtime.clone()).relay(
        ferry.outbox.name().clone(),
        Relay::new(store).options(exact().call_deadline_ms(5_000)),
    );
    let engine = ferry
        .world
        .engine(OUTCOME_DELIVERY, delivery.registration());
    ferry.send_puts(&[("stuck", "key", "1"), ("b", "key", "1")]);
    let before_ms = ferry.world.now_ms();
    ferry.world.tick(&engine);
    assert_eq!(ferry.world.now_ms() - before_ms, 5_000);
    assert_eq!(ferry.at("b", "key"), Some("1".into()));
    assert_eq!(ferry.at("stuck", "key"), None);
    assert_eq!(ferry.due_in_ms(), 1_000);
    // The other engine's store does not hang.
    ferry.drain();
    assert_eq!(ferry.at("stuck", "key"), Some("1".into()));
}
