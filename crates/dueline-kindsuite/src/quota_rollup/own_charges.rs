//! Quotas that are charged on their coordinators alone.

use std::mem::replace;

use dueline::kinds::quota_rollup::{OwnCharges, Window};
use dueline::timers::Engine;

use super::{COORDINATOR, HOUR_MS, OVER_MS, PERIOD_MS, Rig, Told, amounts_row, key, write};
use crate::Make;

/// A rig whose handler rolls nothing up, and the engine that would.
fn without_shards(make: Make<'_>) -> (Rig, Engine) {
    let mut rig = Rig::new(make);
    let own = rig.world.engine_of([OwnCharges.entry()]);
    let rolling = replace(&mut rig.engine, own);
    (rig, rolling)
}

pub fn without_shards_a_window_goes_in_one_commit(make: Make<'_>) {
    let (rig, _) = without_shards(make);
    let window = rig.window();
    rig.charge(COORDINATOR, [1, 10]);
    rig.charge(COORDINATOR, [1, 10]);
    rig.world.advance_ms(HOUR_MS + 29_999);
    assert_eq!(rig.tick(COORDINATOR).total.fired, 0);
    assert_eq!(rig.total(window), Some([2, 20, 0, 0]));
    rig.world.advance_ms(1);
    let close = || assert_eq!(rig.tick(COORDINATOR).total.fired, 1);
    assert_eq!(rig.world.spent(close), [1, 1, 0, 2]);
    rig.assert_gone(&[COORDINATOR]);
}

/// As under a handler that rolls up: eight at a time.
pub fn without_shards_rows_of_older_windows_are_drained(make: Make<'_>) {
    let (rig, _) = without_shards(make);
    let window = rig.window();
    let home = rig.at(COORDINATOR);
    for hours in 1..=10 {
        let earlier = Window {
            start_ms: window.start_ms - hours * HOUR_MS,
            ..window
        };
        write(&home, key(b'c', earlier, "s9"), Some(amounts_row([1; 4])));
    }
    rig.charge(COORDINATOR, [1]);
    rig.world.advance_ms(HOUR_MS + 30_000);
    rig.tick(COORDINATOR);
    assert_eq!(home.kind_rows().len(), 2);
    rig.run_for(&[COORDINATOR], 10_000);
    rig.assert_gone(&[COORDINATOR]);
}

pub fn a_shard_waits_for_a_version_that_rolls_up(make: Make<'_>) {
    let (mut rig, rolling) = without_shards(make);
    let window = rig.window();
    rig.charge("s1", [3]);
    rig.run_for(&["s1"], 30 * PERIOD_MS);
    assert_eq!(rig.at("s1").timer_keys().len(), 1);
    assert_eq!(rig.total(window), None);
    rig.engine = rolling;
    rig.run_for(&["s1"], 2 * PERIOD_MS);
    assert_eq!(rig.total(window), Some([3, 0, 0, 0]));
    rig.run_for(&["s1"], OVER_MS);
    rig.assert_gone(&["s1", COORDINATOR]);
    assert_eq!(rig.told(), Told::default());
}
