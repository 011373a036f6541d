//! Rows and payloads that do not decode.

use bytes::Bytes;
use dueline::kinds::outcome_delivery::DeadOutcomeReason;
use dueline::store::{Batch, Key};
use dueline_testkit::block_on;

use super::fixture::{Answer, Post, fails, timers_of};
use crate::Make;

/// The key of an outcome that waits.
fn pending_key(sequence: u64) -> Key {
    let key = [b"b\0\x08o\x04mail".as_slice(), &sequence.to_be_bytes()].concat();
    Bytes::from(key)
}

fn state_key() -> Key {
    Bytes::from_static(b"b\0\x08smail")
}

pub fn a_row_that_does_not_decode_is_set_aside_and_starves_nobody(make: Make<'_>) {
    let post = Post::new(make);
    post.append(&["1", "2", "3"]);
    let garbage = Bytes::from_static(b"\x01garbage");
    post.world
        .commit(Batch::new().put(pending_key(2), garbage.clone()));
    assert_eq!(post.tick(), ["1", "3"]);
    assert!(post.world.timer_keys().is_empty());
    let dead = block_on(post.outbox.dead(None, 9)).unwrap().outcomes;
    assert_eq!(dead.len(), 1);
    assert_eq!(dead[0].sequence, 2);
    assert_eq!(dead[0].reason, DeadOutcomeReason::Undecodable);
    assert_eq!(dead[0].outcome, None);
    assert_eq!(dead[0].row, garbage, "byte for byte");
    assert_eq!(post.backlog().rows, 0);
}

pub fn a_key_of_no_outcome_ends_no_list(make: Make<'_>) {
    let post = Post::new(make);
    post.append(&["1", "2", "3"]);
    let junk = [pending_key(1).as_ref(), b"x"].concat();
    post.world.commit(Batch::new().put(junk, "junk"));
    for limit in 1..=4 {
        let mut listed = Vec::new();
        let mut after = None;
        loop {
            let page = block_on(post.outbox.waiting(after, limit)).unwrap();
            listed.extend(page.outcomes.iter().map(|waiting| waiting.sequence));
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        assert_eq!(listed, [1, 2, 3], "{limit} at a time");
    }
}

pub fn a_row_of_a_later_version_waits_among_the_dead_for_a_later_binary(make: Make<'_>) {
    let post = Post::new(make);
    post.append(&["1"]);
    let ours = post.world.get(&pending_key(1)).unwrap();
    let later = Bytes::from([&[2], &ours[1..]].concat());
    post.world
        .commit(Batch::new().put(pending_key(1), later.clone()));
    assert_eq!(post.tick(), [""; 0]);
    let requeued = block_on(post.outbox.requeue(1)).unwrap().unwrap();
    assert_eq!(post.world.get(&pending_key(requeued)), Some(later));
    // The binary that knows the version is here.
    post.world
        .commit(Batch::new().put(pending_key(requeued), ours));
    assert_eq!(post.tick(), ["1"]);
}

pub fn many_rows_that_do_not_decode_starve_nobody(make: Make<'_>) {
    let post = Post::new(make);
    let ids: Vec<String> = (1..=90).map(|n| n.to_string()).collect();
    post.append(&ids.iter().map(String::as_str).collect::<Vec<_>>());
    for sequence in 1..90 {
        post.world
            .commit(Batch::new().put(pending_key(sequence), "?"));
    }
    assert_eq!(post.drain(), ["90"]);
    assert_eq!(
        block_on(post.outbox.dead(None, 100))
            .unwrap()
            .outcomes
            .len(),
        89
    );
    assert!(post.world.largest_batch().0 <= 100);
}

pub fn a_row_too_large_to_be_set_aside_stays_and_starves_nobody(make: Make<'_>) {
    let post = Post::new(make);
    post.append(&["1", "2"]);
    let huge = Bytes::from(vec![9; 512 * 1_024]);
    post.world
        .commit(Batch::new().put(pending_key(1), huge.clone()));
    assert_eq!(post.tick(), ["2"]);
    assert_eq!(post.due_in_ms(), 900_000);
    assert_eq!(post.tick_when_due(), [""; 0]);
    assert_eq!(post.world.get(&pending_key(1)), Some(huge));
}

pub fn a_key_without_a_sequence_stays_and_starves_nobody(make: Make<'_>) {
    let post = Post::new(make);
    post.append(&["1", "2"]);
    let odd = Bytes::from([&pending_key(1)[..], b"odd"].concat());
    post.world.commit(Batch::new().put(odd.clone(), "?"));
    assert_eq!(post.drain(), ["1", "2"]);
    assert!(post.world.get(&odd).is_some());
}

pub fn a_state_that_does_not_decode_loses_nothing(make: Make<'_>) {
    let post = Post::new(make);
    post.append(&["1"]);
    let ours = post.world.get(&state_key()).unwrap();
    post.world
        .commit(Batch::new().put(state_key(), "\x02later"));
    assert!(block_on(post.outbox.append(&[super::fixture::outcome("2")])).is_err());
    for _ in 0..40 {
        assert_eq!(post.tick_when_due(), [""; 0]);
    }
    assert_eq!(post.timer().1.header.attempt, 0, "nobody is to blame");
    post.world.commit(Batch::new().put(state_key(), ours));
    assert_eq!(post.tick_when_due(), ["1"]);
}

pub fn a_progress_that_does_not_decode_begins_at_the_head(make: Make<'_>) {
    let post = Post::new(make);
    post.told.answers(|_| fails());
    post.append(&["1", "2", "3"]);
    post.tick();
    let key = post.world.timer_keys().remove(0);
    let row = post.world.get(&key).unwrap();
    // The payload begins behind a header of 12 bytes.
    let garbled = Bytes::from([&row[..12], b"\x09?"].concat());
    post.world.commit(Batch::new().put(key, garbled));
    post.told.answers(|_| Answer::Taken);
    assert_eq!(post.tick_when_due(), ["1", "2", "3"]);
    assert!(timers_of(&post.world).is_empty());
}

pub fn a_progress_that_is_wrong_leaves_nobody_waiting(make: Make<'_>) {
    for cursor in [1, 3, 7, u64::MAX] {
        let post = Post::new(make);
        post.append(&["1", "2", "3"]);
        let key = post.world.timer_keys().remove(0);
        let mut row = post.world.get(&key).unwrap().to_vec();
        // Behind a header of 12 bytes, a version of 1, a stamp of 8 and an attempt of 2.
        row[23..31].copy_from_slice(&cursor.to_be_bytes());
        post.world.commit(Batch::new().put(key, row));
        let mut told = post.drain();
        told.sort();
        assert_eq!(told, ["1", "2", "3"], "{cursor}");
        assert_eq!(post.backlog().rows, 0);
    }
}

const DAY_MS: u64 = 24 * 60 * 60 * 1_000;

/// In the progress of the delivery, or in the row of an outcome: what lies further ahead than a retry can is
/// damage, and is tried at once.
pub fn a_time_that_no_retry_leads_to_puts_nothing_off(make: Make<'_>) {
    for ahead_ms in [DAY_MS + 1, u64::MAX / 2] {
        let post = Post::new(make);
        post.append(&["1", "2", "3"]);
        let late_ms = post.world.now_ms().saturating_add(ahead_ms);
        let key = post.world.timer_keys().remove(0);
        let mut row = post.world.get(&key).unwrap().to_vec();
        // Header, version, stamp, attempt; then the cursor, the end of a pass, two bytes, and the time.
        row[23..31].copy_from_slice(&3_u64.to_be_bytes());
        row[41..49].copy_from_slice(&late_ms.to_be_bytes());
        post.world.commit(Batch::new().put(key, row));
        assert_eq!(post.tick(), ["1", "2", "3"]);
        assert!(post.world.timer_keys().is_empty());

        let put_off = |sequence, until_ms: u64| {
            let mut row = post.world.get(&pending_key(sequence)).unwrap().to_vec();
            // Behind a version of 1 and an attempt of 2.
            row[3..11].copy_from_slice(&until_ms.to_be_bytes());
            let batch = Batch::new().put(pending_key(sequence), row);
            post.world.commit(batch);
        };
        post.append(&["4", "5"]);
        put_off(4, late_ms);
        assert_eq!(post.tick(), ["4", "5"]);
        // The longest pause of a sink is a day, and is kept.
        post.append(&["6"]);
        put_off(6, post.world.now_ms() + DAY_MS);
        assert_eq!(post.tick(), [""; 0]);
        assert_eq!(post.due_in_ms(), DAY_MS);
        assert_eq!(post.tick_when_due(), ["6"]);
        assert_eq!(post.backlog().rows, 0);
    }
}

/// The state says that its timer sleeps for thousands of years, as the sink had asked: no sink is granted more
/// than a day.
pub fn an_append_wakes_an_outbox_whose_sleep_is_wrong(make: Make<'_>) {
    let post = Post::new(make);
    post.told.answers(|_| fails());
    post.append(&["1"]);
    post.tick();
    let mut row = post.world.get(&state_key()).unwrap().to_vec();
    // Behind a version of 1, a flag of 1 and a stamp of 8: until when it sleeps, and may not be woken.
    row[10..18].copy_from_slice(&(u64::MAX / 4).to_be_bytes());
    row[18..26].copy_from_slice(&(u64::MAX / 8).to_be_bytes());
    post.world.commit(Batch::new().put(state_key(), row));
    post.told.answers(|_| Answer::Taken);
    post.append(&["2"]);
    let mut told = Vec::new();
    let appended_ms = post.world.now_ms();
    while told.len() < 2 {
        told.extend(post.tick_when_due());
        assert!(post.world.now_ms() <= appended_ms + DAY_MS, "{told:?}");
    }
    told.sort();
    assert_eq!(told, ["1", "2"]);
}

pub fn an_outbox_whose_rows_were_removed_by_hand_comes_to_rest(make: Make<'_>) {
    let post = Post::new(make);
    post.append(&["1", "2", "3"]);
    post.world.commit(
        Batch::new()
            .delete(pending_key(1))
            .delete(pending_key(2))
            .delete(pending_key(3)),
    );
    assert_eq!(post.tick(), [""; 0]);
    assert!(post.world.timer_keys().is_empty());
    assert_eq!(post.backlog().rows, 0, "the count is mended");
    post.append(&["4"]);
    assert_eq!(post.tick(), ["4"]);
}
