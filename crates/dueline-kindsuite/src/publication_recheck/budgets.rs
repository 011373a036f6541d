//! How much one fire does.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use dueline::kinds::publication_recheck::RemoteAllowance;
use dueline_testkit::ReadCall;

use super::{Rig, dependencies};
use crate::Make;

/// Dependencies that are visible without a row, one in each of so many partitions.
fn scattered(many: usize) -> Vec<(String, String)> {
    (0..many)
        .map(|number| (format!("shard-{number:05}"), "none".to_owned()))
        .collect()
}

pub fn a_long_walk_takes_as_many_fires_as_it_must(make: Make<'_>) {
    let rig = Rig::new(make);
    rig.publish(&scattered(4_352));
    let began_ms = rig.world.now_ms();
    let before = rig.remote.counts();
    for fire in 1..=34 {
        assert!(!rig.is_released(), "before fire {fire}");
        assert_eq!(rig.look(), 128, "fire {fire}");
    }
    assert!(rig.is_released());
    let read = rig.remote.counts() - before;
    assert_eq!(read.get_manys, 4_352, "each page once");
    assert!(rig.world.now_ms() - began_ms < 100, "without waiting");
}

/// Four reads for all who share it, until it is filled again.
#[derive(Debug, Default)]
struct Shared(AtomicU64);

impl RemoteAllowance for Shared {
    fn take(&self) -> bool {
        self.0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
                left.checked_sub(1)
            })
            .is_ok()
    }
}

pub fn a_shared_allowance_is_not_exceeded(make: Make<'_>) {
    let shared = Arc::new(Shared::default());
    let rig = Rig::with_allowance(make, Some(shared.clone()));
    rig.publish(&scattered(10));
    for (reads, position) in [(4, 4), (0, 4), (4, 8)] {
        shared.0.store(reads, Ordering::Relaxed);
        assert_eq!(rig.look(), reads);
        assert_eq!(rig.position(), Some(position));
        let due_ms = rig.timer().unwrap().next_at_ms;
        assert_eq!(due_ms, rig.world.now_ms() + 1_000);
    }
    shared.0.store(4, Ordering::Relaxed);
    assert_eq!(rig.look(), 2);
    assert!(rig.is_released());
    assert_eq!(shared.0.load(Ordering::Relaxed), 2, "no more than was read");
}

/// Partitions that answer slowly: what was seen is kept before the run is cut at its deadline.
pub fn a_slow_walk_keeps_what_it_has_seen(make: Make<'_>) {
    let rig = Rig::new(make);
    rig.publish(&scattered(20));
    let clock = rig.world.clock.clone();
    rig.remote.fail_reads_with(move |call| {
        if call == ReadCall::GetMany {
            clock.advance_ms(2_000);
        }
        None
    });
    assert_eq!(rig.look(), 8, "16 s of 30");
    assert_eq!(rig.position(), Some(8));
    assert_eq!(rig.look(), 8);
    assert_eq!(rig.look(), 4);
    assert!(rig.is_released());
}

pub fn many_local_ones_are_read_in_pages(make: Make<'_>) {
    let rig = Rig::new(make);
    let of: Vec<_> = (0..600)
        .map(|number| ("p".to_owned(), format!("none{number:03}")))
        .collect();
    rig.publish(&of);
    let before = rig.world.costs();
    assert_eq!(rig.look(), 0);
    let read = rig.world.costs_since(&before).calls.get_manys;
    assert_eq!(read, 4, "the record, and 256, 256, 88 of its dependencies");
    assert!(rig.is_released());
}

/// Guards of local dependencies are left out where they find no room.
pub fn a_release_stays_within_its_batch(make: Make<'_>) {
    for many in [70, 80, 90, 300] {
        let rig = Rig::new(make);
        let of: Vec<_> = (0..many)
            .map(|number| ("p".to_owned(), format!("none{number:03}")))
            .collect();
        rig.publish(&of);
        rig.look();
        assert!(rig.is_released(), "{many}");
        assert!(rig.world.largest_batch().0 <= 100);
    }
    let rig = Rig::new(make);
    rig.publish(&dependencies(&[("p", 3)]));
    for key in ["d000", "d001", "d002"] {
        // Three rows that a batch could not hold beside each other.
        rig.show("p", key, true);
    }
    rig.look();
    assert!(rig.is_released());
}
