//! What becomes of a window that is over.

use std::collections::BTreeMap;

use dueline::kinds::quota_rollup::Window;

use super::{COORDINATOR, HOUR_MS, OVER_MS, PERIOD_MS, Rig, amounts_row, key, write};
use crate::Make;

pub fn a_window_that_is_over_leaves_nothing(make: Make<'_>) {
    let rig = Rig::new(make);
    let window = rig.window();
    for partition in ["s1", "s2", COORDINATOR] {
        rig.charge(partition, [1, 2, 3, 4]);
    }
    rig.run_for(&["s1", "s2", COORDINATOR], HOUR_MS - 10_000);
    assert_eq!(rig.total(window), Some([3, 6, 9, 12]));
    rig.run_for(&["s1", "s2", COORDINATOR], OVER_MS - HOUR_MS + 10_000);
    rig.assert_gone(&["s1", "s2", COORDINATOR]);
    assert_eq!(rig.told(), super::Told::default());
}

/// The rows are there until 30 s behind the end, so that late readers and writers find them.
pub fn a_window_is_kept_for_its_grace(make: Make<'_>) {
    let rig = Rig::new(make);
    let window = rig.window();
    rig.charge("s1", [1]);
    rig.charge(COORDINATOR, [1]);
    rig.run_for(&["s1", COORDINATOR], HOUR_MS + 20_000);
    assert_eq!(rig.total(window), Some([2, 0, 0, 0]));
    assert!(rig.at("s1").get(&key(b'u', window, "")).is_some());
}

pub fn the_last_shard_takes_the_total_along(make: Make<'_>) {
    let rig = Rig::new(make);
    let window = rig.window();
    for shard in ["s1", "s2", "s3"] {
        rig.charge(shard, [1]);
    }
    rig.run_for(&["s1", "s2", "s3"], HOUR_MS);
    for (gone, shard) in ["s1", "s2", "s3"].into_iter().enumerate() {
        assert_eq!(
            rig.total(window),
            Some([3, 0, 0, 0]),
            "the total is whole as long as it is there"
        );
        rig.run_for(&[shard], OVER_MS - HOUR_MS);
        let kept = rig.at(COORDINATOR).kind_rows().len();
        let expected = if gone == 2 { 0 } else { 3 - gone };
        assert_eq!(kept, expected, "contributions and the total");
    }
    rig.assert_gone(&["s1", "s2", "s3", COORDINATOR]);
}

pub fn the_coordinators_own_timer_removes_its_total(make: Make<'_>) {
    let rig = Rig::new(make);
    let window = rig.window();
    rig.charge(COORDINATOR, [1]);
    rig.charge(COORDINATOR, [1]);
    assert_eq!(rig.at(COORDINATOR).timer_keys().len(), 1);
    rig.world.advance_ms(HOUR_MS + 29_999);
    assert_eq!(rig.tick(COORDINATOR).total.fired, 0);
    assert_eq!(rig.total(window), Some([2, 0, 0, 0]));
    rig.world.advance_ms(1);
    assert_eq!(rig.tick(COORDINATOR).total.fired, 1);
    rig.assert_gone(&[COORDINATOR]);
}

/// Whoever is last: the coordinator's own timer does not take away what a shard still needs.
pub fn a_total_stays_for_the_shard_that_is_late(make: Make<'_>) {
    let rig = Rig::new(make);
    let window = rig.window();
    rig.charge(COORDINATOR, [1]);
    rig.charge("s1", [2]);
    rig.run_for(&["s1"], PERIOD_MS);
    rig.run_for(&[COORDINATOR], OVER_MS);
    assert_eq!(rig.at(COORDINATOR).timer_keys().len(), 0);
    assert_eq!(rig.total(window), Some([3, 0, 0, 0]));
    rig.run_for(&["s1"], 3 * PERIOD_MS);
    rig.assert_gone(&["s1", COORDINATOR]);
}

pub fn a_crash_while_it_closes_counts_nothing_twice(make: Make<'_>) {
    let rig = Rig::new(make);
    let window = rig.window();
    rig.charge("s1", [2]);
    rig.charge("s2", [3]);
    rig.run_for(&["s1", "s2"], HOUR_MS);
    // The last roll-up, then the wait.
    rig.world.advance_ms(30_000 + PERIOD_MS);
    assert_eq!(rig.tick("s1").total.rescheduled, 1);
    rig.world.advance_ms(60_000);
    assert_eq!(rig.tick_and_crash("s1"), 1);
    let without = rig.total(window);
    assert_eq!(
        without,
        Some([5, 0, 0, 0]),
        "its contribution is gone, the sum is not"
    );
    rig.run_for(&["s1"], 2 * PERIOD_MS);
    assert_eq!(rig.total(window), without);
    rig.run_for(&["s2"], 3 * PERIOD_MS);
    rig.assert_gone(&["s1", "s2", COORDINATOR]);
}

/// Windows whose timers were lost or purged leave rows; the end of a later window takes them along.
pub fn rows_of_older_windows_are_drained_in_pages(make: Make<'_>) {
    let rig = Rig::new(make);
    let window = rig.window();
    let earlier = |hours: u64| Window {
        length_ms: HOUR_MS,
        start_ms: window.start_ms - hours * HOUR_MS,
    };
    for hours in 1..=20 {
        let row = Some(amounts_row([hours, 0, 0, 0]));
        write(&rig.at("s1"), key(b'u', earlier(hours), ""), row.clone());
        write(&rig.at("s1"), key(b'v', earlier(hours), ""), row.clone());
        write(
            &rig.at(COORDINATOR),
            key(b'c', earlier(hours), "s9"),
            row.clone(),
        );
        write(&rig.at(COORDINATOR), key(b't', earlier(hours), ""), row);
    }
    rig.charge("s1", [1]);
    rig.run_for(&["s1"], HOUR_MS);
    let next = rig.window();
    rig.charge("s1", [7]);
    rig.run_for(&["s1"], OVER_MS - HOUR_MS);
    assert_eq!(rig.told().drained, 80, "{:?}", rig.told());
    let local: Vec<_> = rig
        .at("s1")
        .kind_rows()
        .into_iter()
        .map(|row| row.0)
        .collect();
    assert_eq!(local, [key(b'u', next, ""), key(b'v', next, "")]);
    let total: Vec<_> = rig
        .at(COORDINATOR)
        .kind_rows()
        .into_iter()
        .map(|row| row.0)
        .collect();
    assert_eq!(total, [key(b'c', next, "s1"), key(b't', next, "")]);
    let (ops, bytes) = rig.world.largest_batch();
    assert!(
        ops <= 92 && bytes < 64 * 1_024,
        "{ops} operations, {bytes} bytes"
    );
}

/// Windows that are shorter than closing takes: the end of one takes nothing of those before it that are
/// still being closed.
pub fn windows_that_close_at_the_same_time_leave_each_other_alone(make: Make<'_>) {
    const ALL: [&str; 3] = ["s1", "s2", COORDINATOR];
    let rig = Rig::of(make, 10_000, |quota| quota.period_ms(1_000));
    let mut most = BTreeMap::<Window, [u64; 4]>::new();
    for second in 0..400 {
        if second % 10 == 0 && second < 200 {
            for partition in ALL {
                rig.charge(partition, [1]);
            }
            most.insert(rig.window(), [0; 4]);
        }
        rig.world.advance_ms(1_000);
        for partition in ALL {
            rig.tick(partition);
        }
        for (window, most) in &mut most {
            if let Some(total) = rig.total(*window) {
                assert!(total >= *most, "{window:?} had {most:?}, shows {total:?}");
                *most = total;
            }
        }
    }
    assert_eq!(most.len(), 20);
    assert!(
        most.values().all(|total| *total == [3, 0, 0, 0]),
        "{most:?}"
    );
    assert_eq!(rig.told(), super::Told::default());
    rig.assert_gone(&ALL);
}

/// A clock that was wrong when the window seemed over: what is charged afterwards is not lost.
pub fn a_clock_set_back_while_it_closes_loses_no_charge(make: Make<'_>) {
    let rig = Rig::new(make);
    let window = rig.window();
    rig.charge("s1", [2]);
    rig.run_for(&["s1"], PERIOD_MS);
    rig.world.clock.jump_wall_ms(2 * HOUR_MS as i64);
    rig.tick("s1");
    rig.world.clock.jump_wall_ms(-2 * HOUR_MS as i64);
    rig.charge("s1", [3]);
    let shard = rig.at("s1").partition;
    let timers = rig.at("s1").timer_keys();
    assert_eq!(timers.len(), 1);
    assert_eq!(
        block_on_usage(&rig, &shard),
        [5, 0, 0, 0],
        "the window goes on"
    );
    let mut most = None;
    for _ in 0..130 {
        rig.run_for(&["s1"], PERIOD_MS);
        most = most.max(rig.total(window));
    }
    assert_eq!(most, Some([5, 0, 0, 0]));
    rig.assert_gone(&["s1", COORDINATOR]);
}

fn block_on_usage(rig: &Rig, shard: &dueline::store::Partition) -> [u64; 4] {
    let usage = dueline_testkit::block_on(rig.quotas.usage(shard)).unwrap();
    usage.local.as_array()
}
