//! The relay: order, exactly once, and targets that fail.

use bytes::Bytes;
use dueline::kinds::outcome_delivery::{RELAY_WRITES_MAX, RelayMessage};
use dueline::store::{Batch, StoreErrorKind};
use dueline::timers::{TickBudget, run_due};
use dueline_testkit::{CommitFault, block_on};

use super::fixture::only_timer;
use super::relay_fixture::{Ferry, message, partition, watermark, watermark_key};
use crate::Make;

pub fn a_put_and_a_delete_arrive_in_order(make: Make<'_>) {
    let ferry = Ferry::new(make);
    ferry.send_puts(&[("b", "key", "1"), ("b", "key", "2")]);
    ferry.send(&[RelayMessage::to(partition("b")).delete("key")]);
    ferry.send_puts(&[("c", "key", "1")]);
    ferry.send(&[RelayMessage::to(partition("c"))
        .delete("key")
        .put("key", "2")
        .put("other", "3")]);
    ferry.tick();
    assert_eq!(ferry.at("b", "key"), None);
    assert_eq!(ferry.at("c", "key"), Some("2".into()));
    assert_eq!(ferry.at("c", "other"), Some("3".into()));
    assert_eq!(ferry.backlog(), 0);
    assert!(ferry.world.timer_keys().is_empty());
}

pub fn a_target_may_be_the_source(make: Make<'_>) {
    let ferry = Ferry::new(make);
    ferry.send_puts(&[("p", "key", "1")]);
    ferry.tick();
    assert_eq!(ferry.at("p", "key"), Some("1".into()));
}

/// Runs what is due and drops what it brought back, as a crash before the commit does.
fn crash_before_settling(ferry: &Ferry) {
    let partition = &ferry.world.partition;
    let mut tick = block_on(run_due(&ferry.engine, partition, TickBudget::default()));
    drop(block_on(tick.calls.remove(0).run()));
}

pub fn a_crash_behind_the_target_only_cleans_up(make: Make<'_>) {
    let ferry = Ferry::new(make);
    ferry.send_puts(&[("b", "key", "1"), ("b", "key", "2"), ("c", "key", "1")]);
    crash_before_settling(&ferry);
    assert_eq!(ferry.at("b", "key"), Some("2".into()));
    assert_eq!(ferry.backlog(), 3);
    // Somebody goes on from there: what comes again must not undo it.
    let others = ferry.world.in_partition("b");
    others.commit(Batch::new().put("key", "3"));
    let before = ferry.world.costs();
    ferry.tick_when_due();
    assert_eq!(ferry.at("b", "key"), Some("3".into()), "exactly once");
    assert_eq!(ferry.backlog(), 0);
    assert!(ferry.world.timer_keys().is_empty());
    let since = ferry.world.costs_since(&before);
    assert_eq!(since.calls.applies, 0, "nothing is applied to a target");
}

pub fn a_watermark_never_goes_back(make: Make<'_>) {
    let ferry = Ferry::new(make);
    ferry.send_puts(&[("b", "key", "1"), ("b", "key", "2")]);
    let target = ferry.world.in_partition("b");
    target.commit(
        Batch::new()
            .put(watermark_key(), watermark(1))
            .put("key", "from 1"),
    );
    ferry.tick();
    assert_eq!(ferry.at("b", "key"), Some("2".into()));
    assert_eq!(target.get(&watermark_key()), Some(watermark(2)));
    target.commit(Batch::new().put(watermark_key(), watermark(3)));
    ferry.send_puts(&[("b", "key", "3")]);
    ferry.tick();
    assert_eq!(ferry.at("b", "key"), Some("2".into()), "absorbed, it says");
    assert_eq!(target.get(&watermark_key()), Some(watermark(3)));
    assert_eq!(ferry.backlog(), 0);
}

pub fn a_failing_target_keeps_only_its_own(make: Make<'_>) {
    let ferry = Ferry::new(make);
    ferry.fail_targets("bad");
    ferry.send_puts(&[
        ("bad", "key", "1"),
        ("good", "key", "1"),
        ("bad", "key", "2"),
        ("fine", "key", "1"),
    ]);
    ferry.tick();
    assert_eq!(ferry.at("good", "key"), Some("1".into()));
    assert_eq!(ferry.at("fine", "key"), Some("1".into()));
    assert_eq!(ferry.backlog(), 2);
    assert_eq!(ferry.due_in_ms(), 1_000);
    ferry.tick_when_due();
    assert_eq!(ferry.due_in_ms(), 2_000, "nothing delivered: it doubles");
    ferry.world.store.heal();
    ferry.drain();
    assert_eq!(ferry.at("bad", "key"), Some("2".into()));
}

pub fn nothing_passes_a_failure_at_its_target(make: Make<'_>) {
    let ferry = Ferry::with(make, super::fixture::exact().rows_max(1));
    ferry.send_puts(&[("b", "one", "1"), ("b", "two", "1"), ("c", "key", "1")]);
    // The claim, then the target.
    let fault = CommitFault::NotWritten(StoreErrorKind::Unavailable);
    ferry.world.store.fail_commit(2, fault);
    ferry.tick();
    while ferry.due_in_ms() <= 1 {
        ferry.tick_when_due();
        assert_eq!(ferry.at("b", "two"), None, "it waits for the one before it");
    }
    assert_eq!(ferry.at("c", "key"), Some("1".into()), "in the same pass");
    ferry.drain();
    assert_eq!(ferry.at("b", "one"), Some("1".into()));
    assert_eq!(ferry.at("b", "two"), Some("1".into()));
}

pub fn a_writer_of_the_same_millisecond_loses_no_wake(make: Make<'_>) {
    let ferry = Ferry::new(make);
    ferry.send_puts(&[("b", "key", "1")]);
    // The claim, the target, the settle.
    let (timers, outbox) = (ferry.world.timers.clone(), ferry.outbox.name().clone());
    let late = message("b", "key", "2").outcome("late").unwrap();
    ferry
        .world
        .store
        .before_commit(3, move |store, partition, _| {
            block_on(async {
                let now_ms = timers.runtime().now_ms();
                let read = dueline::kinds::outcome_delivery::OutboxBuilder::read(
                    store, partition, &outbox,
                );
                let mut builder = read.await.unwrap();
                builder.append(late, now_ms).unwrap();
                let batch = builder.finish(&timers, now_ms).unwrap();
                assert!(store.apply(partition, batch).await.unwrap().is_committed());
            });
        });
    ferry.tick();
    assert_eq!(ferry.backlog(), 1);
    let (key, _) = only_timer(&ferry.world);
    assert!(key.due_ms <= ferry.world.now_ms() + 1);
    ferry.tick_when_due();
    assert_eq!(ferry.at("b", "key"), Some("2".into()));
    assert!(ferry.world.timer_keys().is_empty());
}

pub fn an_answer_that_is_lost_is_read_again(make: Make<'_>) {
    for fault in [
        CommitFault::AnswerLost,
        CommitFault::NotWritten(StoreErrorKind::Unknown),
    ] {
        let ferry = Ferry::new(make);
        ferry.send_puts(&[("b", "key", "1"), ("b", "key", "2")]);
        ferry.world.store.fail_commit(2, fault);
        ferry.tick();
        assert_eq!(ferry.at("b", "key"), Some("2".into()));
        assert_eq!(ferry.backlog(), 0, "one run");
    }
}

/// Moves the watermark of a target just before the n-th commit from now.
fn advance_watermark(ferry: &Ferry, nth: u64, sequence: u64) {
    ferry
        .world
        .store
        .before_commit(nth, move |store, partition, _| {
            assert_eq!(partition.as_bytes(), b"b");
            let batch = Batch::new().put(watermark_key(), watermark(sequence));
            assert!(
                block_on(store.apply(partition, batch))
                    .unwrap()
                    .is_committed()
            );
        });
}

pub fn a_watermark_that_moves_is_read_again_once(make: Make<'_>) {
    let ferry = Ferry::new(make);
    ferry.send_puts(&[("b", "1", "x"), ("b", "2", "x"), ("b", "3", "x")]);
    advance_watermark(&ferry, 2, 2);
    ferry.tick();
    assert_eq!(ferry.at("b", "2"), None, "another process had applied it");
    assert_eq!(ferry.at("b", "3"), Some("x".into()));
    assert_eq!(ferry.backlog(), 0);

    ferry.send_puts(&[("b", "4", "x"), ("b", "5", "x"), ("b", "6", "x")]);
    advance_watermark(&ferry, 2, 4);
    advance_watermark(&ferry, 3, 5);
    ferry.tick();
    assert_eq!(ferry.at("b", "6"), None, "twice is a failure");
    assert_eq!(ferry.due_in_ms(), 1_000);
    ferry.drain();
    assert_eq!(ferry.at("b", "5"), None);
    assert_eq!(ferry.at("b", "6"), Some("x".into()));
}

pub fn checkpoint_and_clean_up_commit_together(make: Make<'_>) {
    let ferry = Ferry::new(make);
    ferry.send_puts(&[("b", "1", "x"), ("c", "1", "x")]);
    let partition = &ferry.world.partition;
    let mut tick = block_on(run_due(&ferry.engine, partition, TickBudget::default()));
    let finished = block_on(tick.calls.remove(0).run());
    let rows = ferry.world.kind_rows().len();
    assert!(block_on(ferry.outbox.set_aside(2, "conflict")).unwrap());
    block_on(ferry.engine.settle(finished));
    assert_eq!(ferry.world.kind_rows().len(), rows + 1, "nothing but that");
    assert_eq!(ferry.backlog(), 1);
    let before = ferry.world.costs();
    ferry.drain();
    assert_eq!(ferry.world.costs_since(&before).calls.applies, 0);
}

fn pending_key(sequence: u64) -> Bytes {
    let key = [b"b\0\x08o\x05ferry".as_slice(), &sequence.to_be_bytes()].concat();
    Bytes::from(key)
}

pub fn nothing_passes_a_row_that_does_not_decode(make: Make<'_>) {
    let ferry = Ferry::new(make);
    ferry.send_puts(&[("b", "1", "x"), ("c", "2", "x"), ("d", "3", "x")]);
    let batch = Batch::new().put(pending_key(2), "\x01?");
    ferry.world.commit(batch);
    ferry.tick();
    assert_eq!(ferry.at("b", "1"), Some("x".into()), "what is before it");
    for _ in 0..5 {
        assert!(ferry.due_in_ms() >= 1_000);
        ferry.tick_when_due();
    }
    assert_eq!(ferry.at("d", "3"), None);
    assert_eq!(ferry.backlog(), 2);
    assert!(block_on(ferry.outbox.set_aside(2, "by hand")).unwrap());
    ferry.drain();
    assert_eq!(ferry.at("d", "3"), Some("x".into()));
}

pub fn writes_that_do_not_decode_hold_up_their_target_alone(make: Make<'_>) {
    let ferry = Ferry::new(make);
    ferry.send_puts(&[
        ("b", "1", "x"),
        ("b", "2", "x"),
        ("b", "3", "x"),
        ("c", "4", "x"),
    ]);
    let row = ferry.world.get(&pending_key(2)).unwrap();
    let cut = row.slice(..row.len() - 1);
    ferry.world.commit(Batch::new().put(pending_key(2), cut));
    ferry.tick();
    assert_eq!(ferry.at("b", "1"), Some("x".into()));
    assert_eq!(ferry.at("c", "4"), Some("x".into()));
    ferry.tick_when_due();
    assert_eq!(ferry.at("b", "3"), None);
    assert_eq!(ferry.backlog(), 2);
    ferry.world.commit(Batch::new().put(pending_key(2), row));
    ferry.drain();
    assert_eq!(ferry.at("b", "2"), Some("x".into()));
    assert_eq!(ferry.at("b", "3"), Some("x".into()));
}

pub fn a_watermark_that_does_not_decode_holds_up_its_target_alone(make: Make<'_>) {
    let ferry = Ferry::new(make);
    let target = ferry.world.in_partition("b");
    target.commit(Batch::new().put(watermark_key(), "\x07"));
    ferry.send_puts(&[("b", "1", "x"), ("c", "2", "x")]);
    ferry.tick();
    assert_eq!(ferry.at("b", "1"), None);
    assert_eq!(ferry.at("c", "2"), Some("x".into()));
    assert_eq!(
        target.get(&watermark_key()),
        Some("\x07".into()),
        "as it was"
    );
    target.commit(Batch::new().delete(watermark_key()));
    ferry.drain();
    assert_eq!(ferry.at("b", "1"), Some("x".into()));
}

/// As where the source was restored from a backup, or removed and made anew: what it sends now was never
/// absorbed, whatever the target says.
pub fn a_watermark_beyond_the_last_message_holds_up_its_target_alone(make: Make<'_>) {
    let ferry = Ferry::new(make);
    let target = ferry.world.in_partition("b");
    for beyond in [3, u64::MAX] {
        target.commit(Batch::new().put(watermark_key(), watermark(beyond)));
        ferry.send_puts(&[("b", "key", "b"), ("c", "key", "c")]);
        ferry.tick();
        for _ in 0..3 {
            assert_eq!(ferry.at("b", "key"), None, "not swallowed");
            assert_eq!(ferry.at("c", "key"), Some("c".into()));
            assert_eq!(ferry.backlog(), 1);
            assert_eq!(target.get(&watermark_key()), Some(watermark(beyond)));
            assert!(ferry.due_in_ms() >= 1_000, "tried again, ever later");
            ferry.tick_when_due();
        }
        target.commit(Batch::new().delete(watermark_key()));
        ferry.drain();
        assert_eq!(ferry.at("b", "key"), Some("b".into()));
        target.commit(Batch::new().delete("key"));
    }
}

pub fn a_message_over_a_limit_is_refused(make: Make<'_>) {
    let ferry = Ferry::new(make);
    let to_b = || RelayMessage::to(partition("b"));
    let mut many = to_b();
    for number in 0..RELAY_WRITES_MAX {
        many = many.put(format!("key-{number}"), "x");
    }
    ferry.send(&[many.clone()]);
    assert!(many.delete("one more").outcome("id").is_err());
    assert!(to_b().put("w\0key", "x").outcome("id").is_err());
    assert!(to_b().delete("w\0key").outcome("id").is_err());
    assert!(to_b().put(vec![b'k'; 1_025], "x").outcome("id").is_err());
    let large = to_b().put("key", vec![0; 256 * 1_024]);
    assert!(large.outcome("id").is_err());
    ferry.drain();
    assert_eq!(ferry.at("b", "key-89"), Some("x".into()));
}
