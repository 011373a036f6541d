//! What a release gate costs, counted, and the bytes of its cursor.

use dueline::rows::{TimerRow, class, class_end, class_start};

use super::{Rig, dependencies};
use crate::Make;
use crate::format::assert_shown;

/// Rows read, commits, rows put, rows deleted.
pub fn what_a_release_costs_is_as_documented(make: Make<'_>) {
    let rig = Rig::new(make);
    let of = dependencies(&[("p", 2), ("q", 20), ("r", 1)]);
    let publish = || rig.publish(&of);
    assert_eq!(
        rig.world.spent(publish),
        [0, 1, 3, 0],
        "the record and its timer"
    );
    // The walk of a fire reads the record, and eight of one partition at a time.
    for (partition, key) in &of[2..] {
        rig.show(partition, key, true);
    }
    rig.show("q", "d019", false);
    let look = || {
        let wait_ms = rig.timer().unwrap().next_at_ms - rig.world.now_ms();
        rig.world.advance_ms(wait_ms);
        rig.world.spent(|| {
            rig.tick();
        })
    };
    assert_eq!(look(), [1 + 3, 2, 4, 2], "to the one that is missing");
    assert_eq!(look(), [1 + 1, 2, 4, 2], "its page again");
    rig.show("q", "d019", true);
    assert_eq!(
        look(),
        [1 + 2 + 1, 2, 4, 2],
        "the rest, and a local page in vain"
    );
    for (partition, key) in &of {
        rig.show(partition, key, true);
    }
    let released = [1 + 1, 2, 3, 4];
    assert_eq!(look(), released, "with one row put and one deleted");
    assert!(rig.is_released());
}

pub fn the_cursor_is_as_documented(make: Make<'_>) {
    let rig = Rig::new(make);
    let of = dependencies(&[("q", 9)]);
    rig.set_state("1|a|");
    rig.publish(&of);
    rig.show("q", "d000", true);
    rig.look();
    let rows = rig
        .world
        .rows(class_start(class::TIMER), class_end(class::TIMER));
    let [(key, value)] = rows.try_into().unwrap();
    assert_shown(&[(key, TimerRow::decode(&value).unwrap().payload)]);
}
