//! Rows that do not decode, stores that do not answer, others that are always faster.

use dueline::kinds::quota_rollup::{BackOff, QUOTA_ROLLUP};
use dueline::rows::{class, class_end, class_start};
use dueline::store::{Batch, StoreErrorKind};
use dueline::timers::{Timer, TimerError};
use dueline_testkit::{CommitFault, block_on};

use super::{COORDINATOR, OVER_MS, PERIOD_MS, Rig, amounts_row, key, write};
use crate::Make;

pub fn a_corrupt_row_of_the_coordinator_backs_off_and_goes_with_its_window(make: Make<'_>) {
    for (letter, rest) in [(b't', ""), (b'c', "s1")] {
        let rig = Rig::new(make);
        let window = rig.window();
        rig.charge("s1", [1]);
        let broken = key(letter, window, rest);
        write(&rig.at(COORDINATOR), broken.clone(), Some("?".into()));
        rig.world.advance_ms(PERIOD_MS);
        let before_ms = rig.world.now_ms();
        assert_eq!(rig.tick("s1").total.rescheduled, 1);
        assert_eq!(rig.told().backed_off, [BackOff::Corrupt]);
        let [timer] = rig.at("s1").timer_keys().try_into().unwrap();
        let due_ms = u64::from_be_bytes(timer[3..11].try_into().unwrap());
        assert_eq!(due_ms, before_ms + PERIOD_MS, "one period later");
        assert_eq!(
            rig.at(COORDINATOR).get(&broken),
            Some("?".into()),
            "it stays"
        );
        rig.run_for(&["s1"], OVER_MS);
        rig.assert_gone(&["s1", COORDINATOR]);
    }
}

pub fn a_corrupt_row_of_the_shard_backs_off_and_goes_with_its_window(make: Make<'_>) {
    let rig = Rig::new(make);
    let window = rig.window();
    rig.charge("s1", [1]);
    rig.run_for(&["s1"], PERIOD_MS);
    write(
        &rig.at("s1"),
        key(b'u', window, ""),
        Some("\u{2}later".into()),
    );
    let shard = rig.at("s1").partition;
    let refused = block_on(rig.quotas.charge(&shard, [1]));
    assert!(
        matches!(&refused, Err(TimerError::Store(error)) if error.kind() == StoreErrorKind::Corrupt),
        "{refused:?}"
    );
    rig.run_for(&["s1"], PERIOD_MS);
    assert_eq!(rig.told().backed_off, [BackOff::Corrupt]);
    assert_eq!(
        rig.total(window),
        Some([1, 0, 0, 0]),
        "what was known stays"
    );
    rig.run_for(&["s1"], OVER_MS);
    rig.assert_gone(&["s1", COORDINATOR]);
}

pub fn a_corrupt_view_is_as_good_as_none(make: Make<'_>) {
    let rig = Rig::new(make);
    rig.charge("s1", [1]);
    let shard = rig.at("s1");
    write(&shard, key(b'v', rig.window(), ""), Some("?".into()));
    let usage = block_on(rig.quotas.usage(&shard.partition)).unwrap();
    assert_eq!(usage.total.as_array(), [1, 0, 0, 0]);
    rig.charge("s2", [2]);
    rig.run_for(&["s1", "s2"], 2 * PERIOD_MS);
    let usage = block_on(rig.quotas.usage(&shard.partition)).unwrap();
    assert_eq!(usage.total.as_array(), [3, 0, 0, 0]);
}

pub fn eight_lost_plans_back_off(make: Make<'_>) {
    let rig = Rig::new(make);
    let window = rig.window();
    rig.charge("s1", [1]);
    rig.world.advance_ms(PERIOD_MS);
    // The claim is the first commit, the eight plans are the next.
    for nth in 2..=9_u64 {
        rig.world
            .store
            .before_commit(nth, move |store, partition, _| {
                assert_eq!(partition.as_bytes(), COORDINATOR.as_bytes());
                let mut total = vec![1, 0];
                for field in [1, nth, 0, 0, 0, 0, 0, 0, 0] {
                    total.extend_from_slice(&u64::to_be_bytes(field));
                }
                let others = Batch::new()
                    .put(key(b't', window, ""), total)
                    .put(key(b'c', window, "s2"), amounts_row([nth, 0, 0, 0]));
                assert!(
                    block_on(store.apply(partition, others))
                        .unwrap()
                        .is_committed()
                );
            });
    }
    let before = rig.world.costs();
    assert_eq!(rig.tick("s1").total.rescheduled, 1);
    assert_eq!(rig.world.costs_since(&before).calls.applies, 8);
    assert_eq!(rig.told().backed_off, [BackOff::Contention]);
    assert_eq!(rig.total(window), Some([9, 0, 0, 0]));
    rig.world.advance_ms(PERIOD_MS - 1);
    assert_eq!(rig.tick("s1").total.rescheduled, 0);
    rig.world.advance_ms(1);
    assert_eq!(rig.tick("s1").total.rescheduled, 1);
    assert_eq!(rig.total(window), Some([10, 0, 0, 0]));
}

pub fn a_coordinator_that_does_not_answer_is_asked_again(make: Make<'_>) {
    let rig = Rig::new(make);
    rig.charge("s1", [1]);
    rig.world.advance_ms(PERIOD_MS);
    rig.world
        .store
        .fail_commit(2, CommitFault::NotWritten(StoreErrorKind::Unavailable));
    assert_eq!(rig.tick("s1").total.rescheduled, 1);
    assert_eq!(rig.told().backed_off, [BackOff::Storage]);
    assert_eq!(rig.total(rig.window()), None);
    rig.run_for(&["s1"], PERIOD_MS);
    assert_eq!(rig.total(rig.window()), Some([1, 0, 0, 0]));
}

/// A quota whose shards are rolled up once a window: what failed is not left for as long again.
pub fn a_long_period_is_no_long_back_off(make: Make<'_>) {
    let rig = Rig::of(make, super::HOUR_MS, |quota| quota.period_ms(u64::MAX));
    let window = rig.window();
    rig.charge("s1", [1]);
    rig.world.advance_ms(super::HOUR_MS + 30_000 + PERIOD_MS);
    rig.world
        .store
        .fail_commit(2, CommitFault::NotWritten(StoreErrorKind::Unavailable));
    assert_eq!(rig.tick("s1").total.rescheduled, 1);
    assert_eq!(rig.told().backed_off, [BackOff::Storage]);
    rig.world.advance_ms(60_000);
    assert_eq!(rig.tick("s1").total.rescheduled, 1);
    assert_eq!(rig.total(window), Some([1, 0, 0, 0]));
    rig.run_for(&["s1"], OVER_MS);
    rig.assert_gone(&["s1", COORDINATOR]);
}

pub fn a_timer_that_names_no_window_drains(make: Make<'_>) {
    let rig = Rig::new(make);
    let shard = rig.at("s1");
    for reference in [
        "",
        "short",
        "0123456789abcdefxxx",
        "\0\0\0\0\0\0\0\u{7}\0\0\0\0\0\0\0\u{8}api",
    ] {
        let timer = Timer::new(QUOTA_ROLLUP, reference);
        shard.commit(shard.timers.plan_new(&timer).unwrap().batch);
    }
    assert_eq!(rig.tick("s1").total.fired, 4);
    rig.assert_gone(&["s1", COORDINATOR]);
}

/// What cannot be read is neither rolled up nor lost: it waits in the dead class, byte for byte.
pub fn a_payload_that_does_not_decode_is_set_aside(make: Make<'_>) {
    let rig = Rig::new(make);
    let shard = rig.at("s1");
    let window = rig.window();
    let reference = |length_ms: u64| {
        let start = window.start_ms.to_be_bytes();
        [&length_ms.to_be_bytes()[..], &start, b"api"].concat()
    };
    let sound = [&[1, 1][..], &PERIOD_MS.to_be_bytes(), b"tenant"].concat();
    for (length_ms, payload) in [
        (HOUR, vec![]),
        (HOUR, vec![9, 1, 2]),
        (HOUR, [&[1, 7][..], &sound[2..]].concat()),
        (0, sound),
    ] {
        let timer = Timer::new(QUOTA_ROLLUP, reference(length_ms)).payload(payload);
        shard.commit(shard.timers.plan_new(&timer).unwrap().batch);
    }
    assert_eq!(rig.tick("s1").total.dead, 4);
    let dead = shard.rows(class_start(class::DEAD), class_end(class::DEAD));
    assert_eq!(dead.len(), 4);
}

const HOUR: u64 = super::HOUR_MS;

/// A timer that somebody scheduled twice, or requeued by hand, does no harm.
pub fn a_second_timer_of_a_window_changes_nothing(make: Make<'_>) {
    let rig = Rig::new(make);
    rig.charge("s1", [2]);
    let shard = rig.at("s1");
    let [first] = shard.timer_keys().try_into().unwrap();
    let twin = Timer::new(QUOTA_ROLLUP, first.slice(19..))
        .due_at(rig.world.now_ms())
        .payload([&[1, 1][..], &PERIOD_MS.to_be_bytes(), b"tenant"].concat());
    shard.commit(shard.timers.plan_new(&twin).unwrap().batch);
    rig.run_for(&["s1"], 5 * PERIOD_MS);
    assert_eq!(rig.total(rig.window()), Some([2, 0, 0, 0]));
    rig.run_for(&["s1"], OVER_MS);
    rig.assert_gone(&["s1", COORDINATOR]);
}
