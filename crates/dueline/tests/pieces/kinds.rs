//! Sets of kinds and the ids of occurrences.

use std::collections::BTreeSet;

use dueline::Bytes;
use dueline::store::Partition;
use dueline::timers::{KindSet, OccurrenceId, TimerKind};
use proptest::collection::vec;
use proptest::prelude::*;

proptest! {
    #[test]
    fn a_set_of_kinds_is_the_set_of_what_was_put_in_and_not_taken_out(
        steps in vec((any::<u8>(), any::<bool>()), 0..600),
    ) {
        let (mut set, mut model) = (KindSet::new(), BTreeSet::new());
        for (kind, insert) in steps {
            let kind = TimerKind(kind);
            if insert {
                set.insert(kind);
                model.insert(kind);
            } else {
                set.remove(kind);
                model.remove(&kind);
            }
            prop_assert_eq!(set.contains(kind), model.contains(&kind));
        }
        prop_assert_eq!(set.is_empty(), model.is_empty());
        prop_assert!(set.iter().eq(model.iter().copied()), "ascending");
        prop_assert_eq!(model.into_iter().collect::<KindSet>(), set);
    }
}

#[test]
fn the_set_of_all_kinds_holds_every_kind_once() {
    let all: Vec<u8> = KindSet::all().iter().map(|kind| kind.0).collect();
    assert_eq!(all, (0..=u8::MAX).collect::<Vec<_>>());
    assert!(!TimerKind(0).is_valid() && TimerKind(1).is_valid());
}

#[test]
fn the_hash_of_an_occurrence_tells_all_its_parts_apart_and_never_changes() {
    let id = |partition: &str, kind: u8, reference: &'static [u8], generation: u64| OccurrenceId {
        partition: Partition::new(partition.to_owned()).unwrap(),
        kind: TimerKind(kind),
        reference: Bytes::from_static(reference),
        generation,
    };
    let ids = [
        id("p", 16, b"x", 1),
        id("p", 16, b"x", 2),
        id("p", 17, b"x", 1),
        id("q", 16, b"x", 1),
        id("px", 16, b"", 1),
        id("p", 16, b"", 1),
        id("p", 16, b"x\0", 1),
    ];
    let hashes: BTreeSet<u64> = ids.iter().map(|id| id.hash64(0)).collect();
    assert_eq!(hashes.len(), ids.len());
    assert_ne!(ids[0].hash64(0), ids[0].hash64(1), "the salt counts");
    // Stored jitter and compact ids depend on it: this number may never change.
    assert_eq!(ids[0].hash64(0), GOLDEN);
}

const GOLDEN: u64 = 12_286_253_121_059_628_221;
