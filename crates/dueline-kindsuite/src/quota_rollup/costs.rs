//! What a quota costs, counted, and the bytes of its rows.

use dueline::kinds::quota_rollup::Limits;
use dueline::rows::{TimerRow, class, class_end, class_start};
use dueline_testkit::block_on;

use super::{COORDINATOR, HOUR_MS, PERIOD_MS, Rig};
use crate::Make;
use crate::format::assert_shown;

/// Rows read, commits, rows put, rows deleted.
pub fn what_a_quota_costs_is_as_documented(make: Make<'_>) {
    let rig = Rig::new(make);
    let spent = |then: &dyn Fn()| rig.world.spent(then);
    let shard = rig.at("s1").partition;
    let within = |total: u64| {
        let limits = Limits::new([total], [total]);
        let asked = block_on(rig.quotas.charge_within(&shard, [1], &limits));
        asked.unwrap().is_admitted()
    };
    assert_eq!(
        spent(&|| rig.charge("s1", [1])),
        [1, 1, 2, 0],
        "the first charge"
    );
    assert_eq!(spent(&|| rig.charge("s1", [1])), [1, 1, 1, 0], "another");
    assert_eq!(
        spent(&|| assert!(within(9))),
        [1, 1, 1, 0],
        "one within limits"
    );
    assert_eq!(spent(&|| assert!(!within(3))), [1, 0, 0, 0], "one refused");
    assert_eq!(
        spent(&|| rig.charge(COORDINATOR, [1])),
        [1, 1, 2, 0],
        "its first"
    );
    assert_eq!(
        spent(&|| rig.charge(COORDINATOR, [1])),
        [1, 1, 1, 0],
        "another"
    );
    let usage = || {
        block_on(rig.quotas.usage(&shard)).unwrap();
    };
    assert_eq!(spent(&usage), [1, 0, 0, 0], "usage");
    let total = || assert!(rig.total(rig.window()).is_some());
    assert_eq!(spent(&total), [1, 0, 0, 0], "total");

    let roll_up = || assert_eq!(rig.tick("s1").total.rescheduled, 1);
    rig.world.advance_ms(PERIOD_MS);
    assert_eq!(spent(&roll_up), [2, 3, 5, 2], "a roll-up");
    rig.world.advance_ms(PERIOD_MS);
    assert_eq!(spent(&roll_up), [2, 2, 3, 2], "one with nothing new");
    rig.charge("s2", [1]);
    rig.run_for(&["s1", "s2"], HOUR_MS - 2 * PERIOD_MS);
    rig.world.advance_ms(60_000);
    assert_eq!(spent(&roll_up), [2, 2, 2, 2], "the last, with nothing new");
    rig.tick("s2");
    rig.world.advance_ms(60_000);
    let close = |shard| assert_eq!(rig.tick(shard).total.fired, 1);
    assert_eq!(spent(&|| close("s1")), [3, 3, 2, 5], "the end of a shard");
    assert_eq!(
        spent(&|| close(COORDINATOR)),
        [1, 2, 2, 2],
        "of what was charged at home"
    );
    assert_eq!(spent(&|| close("s2")), [3, 3, 1, 6], "of the last shard");
    rig.assert_gone(&["s1", "s2", COORDINATOR]);
    let (ops, _) = rig.world.largest_batch();
    assert!(ops <= 16, "{ops} operations");
}

pub fn rows_of_a_quota_are_as_documented(make: Make<'_>) {
    let rig = Rig::new(make);
    let assert_timer_shown = |partition| {
        let world = rig.at(partition);
        let rows = world.rows(class_start(class::TIMER), class_end(class::TIMER));
        let [(key, value)] = rows.try_into().unwrap();
        assert_shown(&[(key, TimerRow::decode(&value).unwrap().payload)]);
    };
    rig.charge("s1", [3, 300]);
    assert_timer_shown("s1");
    rig.charge(COORDINATOR, [1, 50]);
    rig.world.advance_ms(PERIOD_MS);
    rig.tick("s1");
    let (local, total) = (rig.at("s1").kind_rows(), rig.at(COORDINATOR).kind_rows());
    assert_eq!((local.len(), total.len()), (2, 2));
    assert_shown(&local);
    assert_shown(&total);
    rig.world.advance_ms(HOUR_MS);
    rig.tick("s1");
    assert_timer_shown("s1");
}
