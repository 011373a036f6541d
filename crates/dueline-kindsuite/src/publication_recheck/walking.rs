//! The walk and where it stops.

use std::sync::Arc;

use dueline::kinds::publication_recheck::PublicationRecheck;
use dueline::memory::MemoryStore;
use dueline::store::{Batch, Key, NamespaceStore, Partition, ReadStore};
use dueline_testkit::block_on;

use super::{PERIOD_MS, Press, RECORD, Rig, dependencies};
use crate::Make;

fn show_all(rig: &Rig, of: &[(String, String)]) {
    for (partition, key) in of {
        rig.show(partition, key, true);
    }
}

pub fn a_record_without_dependencies_is_released_at_once(make: Make<'_>) {
    let rig = Rig::new(make);
    rig.publish(&[]);
    assert_eq!(rig.look(), 0);
    assert!(rig.is_released());
    assert_eq!(rig.timer(), None);
}

pub fn a_record_is_released_when_all_are_visible(make: Make<'_>) {
    let rig = Rig::new(make);
    let of = dependencies(&[("p", 2), ("q", 9), ("r", 1)]);
    rig.publish(&of);
    show_all(&rig, &of[1..]);
    assert_eq!(rig.look(), 3, "eight and one of q, one of r");
    assert!(!rig.is_released(), "one of its own partition is missing");
    let due_ms = rig.timer().unwrap().next_at_ms;
    assert_eq!(due_ms, rig.world.now_ms() + PERIOD_MS);
    rig.show("p", "d000", true);
    assert_eq!(rig.look(), 0, "what was seen elsewhere is not read again");
    assert!(rig.is_released());
    assert!(rig.world.timer_keys().is_empty());
}

pub fn a_late_one_is_where_the_walk_goes_on(make: Make<'_>) {
    let rig = Rig::new(make);
    let of = dependencies(&[("q", 40)]);
    rig.publish(&of);
    show_all(&rig, &of[..24]);
    show_all(&rig, &of[25..]);
    assert_eq!(rig.look(), 4, "three pages, and the one that is blocked");
    assert_eq!(rig.position(), Some(24));
    for _ in 0..3 {
        assert_eq!(rig.look(), 1, "the blocked page alone");
    }
    rig.show("q", "d024", true);
    assert_eq!(rig.look(), 2);
    assert!(rig.is_released());
}

pub fn one_that_is_missing_inside_a_page_is_where_the_walk_goes_on(make: Make<'_>) {
    let rig = Rig::new(make);
    let of = dependencies(&[("q", 12), ("r", 3)]);
    rig.publish(&of);
    show_all(&rig, &of);
    rig.show("q", "d005", false);
    assert_eq!(rig.look(), 1);
    assert_eq!(rig.position(), Some(5));
    rig.show("q", "d005", true);
    rig.show("r", "d001", false);
    assert_eq!(rig.look(), 2, "the rest of q in one page, and r");
    assert_eq!(rig.position(), Some(13));
    rig.show("r", "d001", true);
    assert_eq!(rig.look(), 1);
    assert!(rig.is_released());
}

pub fn a_restart_goes_on_at_the_durable_cursor(make: Make<'_>) {
    let mut rig = Rig::new(make);
    let of = dependencies(&[("q", 30)]);
    rig.publish(&of);
    show_all(&rig, &of[..17]);
    assert_eq!(rig.look(), 3);
    rig.restart();
    show_all(&rig, &of);
    assert_eq!(rig.look(), 2, "17 to 24, and 25 to 29");
    assert!(rig.is_released());
}

/// The order in which a record names them is no matter, nor how often.
pub fn dependencies_are_walked_in_their_order(make: Make<'_>) {
    let rig = Rig::new(make);
    let of = dependencies(&[("q", 8), ("r", 8)]);
    let mut named: Vec<_> = of.iter().rev().cloned().collect();
    named.extend(of.clone());
    rig.publish(&named);
    show_all(&rig, &of[..10]);
    assert_eq!(rig.look(), 2);
    assert_eq!(rig.position(), Some(10));
    show_all(&rig, &of);
    assert_eq!(rig.look(), 1);
    assert!(rig.is_released());
}

pub fn local_ones_are_looked_at_again_in_every_fire(make: Make<'_>) {
    let rig = Rig::new(make);
    rig.publish(&dependencies(&[("p", 2), ("q", 1)]));
    rig.show("q", "d000", true);
    rig.show("p", "d000", true);
    assert_eq!(rig.look(), 1);
    rig.show("p", "d000", false);
    rig.show("p", "d001", true);
    assert_eq!(rig.look(), 0);
    assert!(!rig.is_released(), "the first was withdrawn meanwhile");
    rig.show("p", "d000", true);
    rig.look();
    assert!(rig.is_released());
}

pub fn an_application_that_knows_better_need_not_wait(make: Make<'_>) {
    let rig = Rig::new(make);
    let of = dependencies(&[("q", 9)]);
    rig.publish(&of);
    show_all(&rig, &of[..8]);
    rig.look();
    rig.show("q", "d008", true);
    let look_now = || {
        let key = Key::from_static(RECORD.as_bytes());
        block_on(rig.rechecks.look_now(&rig.world.partition, &key)).unwrap()
    };
    assert!(look_now());
    let before = rig.remote.counts();
    assert_eq!(rig.tick().total.fired, 1, "though nothing was due");
    assert_eq!((rig.remote.counts() - before).get_manys, 1);
    assert!(!look_now(), "it waits no more");
}

pub fn other_partitions_may_lie_in_another_store(make: Make<'_>) {
    let mut rig = Rig::new(make);
    let elsewhere = Arc::new(MemoryStore::new(Arc::clone(rig.world.runtime.clock())));
    let handler = PublicationRecheck::new(Press, rig.world.timers.clone());
    let handler = handler.reads(Arc::clone(&elsewhere) as Arc<dyn ReadStore>);
    rig.engine = rig.world.engine_of([handler.entry()]);
    let of = dependencies(&[("p", 1), ("q", 1)]);
    rig.publish(&of);
    show_all(&rig, &of);
    rig.look();
    assert!(!rig.is_released(), "the row of q lies in the wrong store");
    let row = Batch::new().put("d000", "visible");
    let q = Partition::new("q").unwrap();
    assert!(block_on(elsewhere.apply(&q, row)).unwrap().is_committed());
    assert_eq!(rig.look(), 0);
    assert!(rig.is_released());
}
