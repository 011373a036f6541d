//! Kinds allotted to names.

use dueline::rows::{KindNameRow, NEXT_KIND_KEY};
use dueline::store::{Batch, Partition};
use dueline::timers::{TimerError, TimerKind, Timers};
use dueline_testkit::block_on;

use super::fixture::World;

fn kind(world: &World, name: &str) -> Result<TimerKind, TimerError> {
    block_on(world.timers.kind_for_name(&world.partition, name))
}

#[test]
fn a_name_keeps_the_kind_it_was_given_at_first_use() {
    let world = World::new();
    assert_eq!(
        kind(&world, "expire").unwrap(),
        TimerKind::APPLICATION_FIRST
    );
    assert_eq!(kind(&world, "remind").unwrap(), TimerKind(17));
    assert_eq!(
        kind(&world, "expire").unwrap(),
        TimerKind::APPLICATION_FIRST
    );
    let names = block_on(world.timers.kind_names(&world.partition)).unwrap();
    let expected = [
        ("expire".into(), TimerKind(16)),
        ("remind".into(), TimerKind(17)),
    ];
    assert_eq!(names, expected);
}

#[test]
fn partitions_allot_for_themselves() {
    let world = World::new();
    kind(&world, "expire").unwrap();
    let other = Partition::new("other").unwrap();
    let given = block_on(world.timers.kind_for_name(&other, "remind")).unwrap();
    assert_eq!(given, TimerKind::APPLICATION_FIRST);
}

#[test]
fn every_application_kind_is_given_once_and_then_no_more() {
    let world = World::new();
    let mut given: Vec<TimerKind> = (0..224)
        .map(|number| kind(&world, &format!("name {number}")).unwrap())
        .collect();
    given.sort_unstable();
    given.dedup();
    assert_eq!(given.len(), 224);
    assert_eq!(given.first(), Some(&TimerKind::APPLICATION_FIRST));
    assert_eq!(given.last(), Some(&TimerKind::APPLICATION_LAST));
    let before = world.rows();
    assert!(matches!(
        kind(&world, "one more"),
        Err(TimerError::Invalid(_))
    ));
    assert_eq!(world.rows(), before);
    assert_eq!(
        kind(&world, "name 0").unwrap(),
        TimerKind::APPLICATION_FIRST,
        "still known"
    );
    assert_eq!(
        block_on(world.timers.kind_names(&world.partition))
            .unwrap()
            .len(),
        224
    );
}

#[test]
fn two_processes_never_give_one_kind_to_two_names() {
    let world = World::new();
    let rival = Timers::new(world.memory.clone(), world.timers.runtime().clone());
    for (nth, name) in [(1, "theirs"), (2, "ours")] {
        let rival = rival.clone();
        world.store.before_commit(nth, move |_, partition, _| {
            block_on(rival.kind_for_name(partition, name)).unwrap();
        });
    }
    let ours = kind(&world, "ours").unwrap();
    assert_eq!(ours, TimerKind(17), "the rival was faster both times");
    assert_eq!(
        kind(&world, "theirs").unwrap(),
        TimerKind::APPLICATION_FIRST
    );
}

#[test]
fn a_name_has_between_1_and_128_bytes() {
    let world = World::new();
    assert!(matches!(kind(&world, ""), Err(TimerError::Invalid(_))));
    assert!(matches!(
        kind(&world, &"n".repeat(129)),
        Err(TimerError::Invalid(_))
    ));
    assert!(kind(&world, &"n".repeat(128)).is_ok());
}

#[test]
fn a_damaged_counter_is_reported_not_restarted() {
    let world = World::new();
    world.write(Batch::new().put(NEXT_KIND_KEY, "??"));
    assert!(matches!(kind(&world, "expire"), Err(TimerError::Store(_))));
    let last = KindNameRow {
        kind: TimerKind::APPLICATION_LAST,
    };
    world.write(Batch::new().put(NEXT_KIND_KEY, last.encode()));
    assert_eq!(kind(&world, "expire").unwrap(), TimerKind::APPLICATION_LAST);
    assert!(matches!(
        kind(&world, "remind"),
        Err(TimerError::Invalid(_))
    ));
}
