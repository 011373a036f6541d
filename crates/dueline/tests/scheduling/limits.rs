//! The limits of a timer, each reached and each exceeded by one, and a store that is full.

use dueline::Bytes;
use dueline::limits::{DUE_MS_MAX, PAYLOAD_BYTES_MAX, REFERENCE_BYTES_MAX};
use dueline::store::{Batch, StoreErrorKind};
use dueline::timers::{
    Change, Policy, ScheduleOutcome, Scheduled, Timer, TimerError, TimerKind, TimerState,
};
use dueline_testkit::block_on;

use super::fixture::{KIND, World, reference_of};

fn schedule(world: &World, timer: Timer) -> Result<Scheduled, TimerError> {
    block_on(
        world
            .timers
            .schedule(&world.partition, timer, Policy::Replace),
    )
}

/// Refused by every verb that takes a timer, with this in the text, and nothing is read or written.
fn assert_refused(timer: &Timer, text: &str) {
    let world = World::new();
    let answers = [
        schedule(&world, timer.clone()).map(|_| ()),
        block_on(
            world
                .timers
                .plan(&world.partition, timer, Policy::KeepEarliest),
        )
        .map(|_| ()),
        world.timers.plan_new(timer).map(|_| ()),
        block_on(
            world
                .timers
                .schedule_if_match(&world.partition, timer.clone(), 1),
        )
        .map(|_| ()),
        block_on(
            world
                .timers
                .schedule_many(&world.partition, vec![(timer.clone(), Policy::Replace)]),
        )
        .remove(0)
        .map(|_| ()),
    ];
    for answer in answers {
        match answer {
            Err(TimerError::Invalid(detail)) => assert!(detail.contains(text), "{detail}"),
            other => panic!("expected a refusal, got {other:?}"),
        }
    }
    let counts = world.store.counts();
    assert_eq!((counts.commits(), counts.row_reads()), (0, 0));
}

#[test]
fn dues_from_the_epoch_to_the_end_of_9999_are_taken_as_they_are() {
    let world = World::new();
    for due_ms in [0, 1, DUE_MS_MAX - 1, DUE_MS_MAX] {
        let made = schedule(&world, Timer::new(KIND, "a").due_at(due_ms).named()).unwrap();
        assert_eq!(made.due_at_ms, due_ms);
        let view = world.get("a").unwrap();
        assert_eq!((view.due_at_ms, view.next_at_ms), (due_ms, due_ms));
    }
    world.check();
}

#[test]
fn a_due_behind_9999_is_refused_with_the_figure() {
    for due_ms in [DUE_MS_MAX + 1, u64::MAX] {
        let timer = Timer::new(KIND, "a").due_at(due_ms).named();
        assert_refused(&timer, "9999-12-31T23:59:59.999Z");
    }
    let world = World::new();
    world.put_in_state("a", TimerState::Pending, 50_000);
    let reference = reference_of("a");
    let late = world
        .timers
        .reschedule(&world.partition, KIND, &reference, DUE_MS_MAX + 1, None);
    assert!(matches!(block_on(late), Err(TimerError::Invalid(_))));
    assert_eq!(world.get("a").unwrap().due_at_ms, 50_000);
}

#[test]
fn the_longest_payload_is_kept_byte_for_byte_through_every_move() {
    let world = World::new();
    let payload = Bytes::from(vec![0xA5; PAYLOAD_BYTES_MAX]);
    let reference = Bytes::from(vec![0xFF; REFERENCE_BYTES_MAX]);
    let timer = Timer::new(KIND, reference.clone())
        .payload(payload.clone())
        .due_at(50_000);
    schedule(&world, timer.named()).unwrap();
    block_on(world.timers.fire_now(&world.partition, KIND, &reference)).unwrap();
    let moved = world
        .timers
        .reschedule(&world.partition, KIND, &reference, 60_000, None);
    block_on(moved).unwrap();
    let view = block_on(world.timers.get(&world.partition, KIND, &reference))
        .unwrap()
        .unwrap();
    assert_eq!(view.payload, payload);
    world.check();
}

#[test]
fn a_longer_payload_is_refused_with_the_figure() {
    let payload = Bytes::from(vec![0; PAYLOAD_BYTES_MAX + 1]);
    let timer = Timer::new(KIND, "a").payload(payload.clone()).named();
    assert_refused(&timer, "491520 bytes");
    let world = World::new();
    world.put_in_state("a", TimerState::Pending, 50_000);
    let change = Change {
        payload: Some(payload),
        ..Change::default()
    };
    let reference = reference_of("a");
    let changed = world
        .timers
        .update(&world.partition, KIND, &reference, change, None);
    assert!(matches!(block_on(changed), Err(TimerError::Invalid(_))));
}

#[test]
fn references_are_any_bytes_up_to_512() {
    let world = World::new();
    let references: Vec<Bytes> = vec![
        Bytes::new(),
        Bytes::from_static(b"\x00"),
        Bytes::from_static(b"\x00\x00"),
        Bytes::from_static(b"a\x00b"),
        Bytes::from_static(b"\xff"),
        Bytes::from_static(b"\xff\xff\xff\xff\xff\xff\xff\xff\xff"),
        Bytes::from(vec![0; REFERENCE_BYTES_MAX]),
        Bytes::from(vec![0xFF; REFERENCE_BYTES_MAX]),
    ];
    for (number, reference) in references.iter().enumerate() {
        let timer = Timer::new(KIND, reference.clone()).due_at(number as u64);
        schedule(&world, timer.named()).unwrap();
    }
    world.check();
    for (number, reference) in references.iter().enumerate() {
        let view = block_on(world.timers.get(&world.partition, KIND, reference))
            .unwrap()
            .unwrap();
        assert_eq!(
            (&view.reference, view.due_at_ms),
            (reference, number as u64)
        );
        let cancelled = world.timers.cancel(&world.partition, KIND, reference, None);
        assert!(block_on(cancelled).unwrap().is_some());
    }
    assert!(world.rows().is_empty());
}

#[test]
fn a_longer_reference_and_kind_0_are_refused_by_every_verb() {
    let long = Bytes::from(vec![0; REFERENCE_BYTES_MAX + 1]);
    assert_refused(&Timer::new(KIND, long.clone()).named(), "512 bytes");
    assert_refused(
        &Timer::new(TimerKind::INVALID, "a").named(),
        "kind from 1 to 255",
    );
    let world = World::new();
    for (kind, reference) in [(KIND, long), (TimerKind::INVALID, reference_of("a"))] {
        let (timers, partition) = (&world.timers, &world.partition);
        let change = Change {
            due_at_ms: Some(1),
            payload: None,
        };
        let answers = [
            block_on(timers.get(partition, kind, &reference)).map(|_| ()),
            block_on(timers.cancel(partition, kind, &reference, None)).map(|_| ()),
            block_on(timers.cancel_unless_claimed(partition, kind, &reference, None)).map(|_| ()),
            block_on(timers.update(partition, kind, &reference, change, None)).map(|_| ()),
            block_on(timers.fire_now(partition, kind, &reference)).map(|_| ()),
        ];
        for answer in answers {
            assert!(matches!(answer, Err(TimerError::Invalid(_))));
        }
    }
}

#[test]
fn a_full_store_refuses_new_timers_and_takes_every_removal_and_move() {
    let world = World::with(|memory| memory.with_capacity_limit(2_000).with_reserve(200));
    world.put_in_state("live", TimerState::Pending, 50_000);
    world.put_in_state("retried", TimerState::Dead, 9_000);
    world.put_in_state("purged", TimerState::Dead, 9_001);
    while schedule(&world, Timer::new(KIND, "filler").due_at(60_000)).is_ok() {}
    let full = |answer| matches!(answer, Err(TimerError::Store(error)) if error.kind() == StoreErrorKind::Full);
    assert!(full(schedule(&world, Timer::new(KIND, "new").named())));
    let many = vec![(Timer::new(KIND, "new").named(), Policy::Replace)];
    let many = block_on(world.timers.schedule_many(&world.partition, many)).remove(0);
    assert!(full(many));
    world.check();

    // The engine's own rows have taken the store over its limit, into the reserve.
    let mut engine = Batch::new().put("grown", vec![0; 100]);
    engine.uses_reserve = true;
    world.write(engine);
    assert!(world.memory.bytes() > 2_000);

    let dead = block_on(world.timers.dead(&world.partition, None, None, 10))
        .unwrap()
        .dead;
    let requeued = block_on(world.timers.requeue(&world.partition, &dead[0].id)).unwrap();
    assert_eq!(requeued.unwrap().outcome, ScheduleOutcome::Moved);
    let live = reference_of("live");
    let moved = block_on(world.timers.fire_now(&world.partition, KIND, &live)).unwrap();
    assert_eq!(moved.outcome, ScheduleOutcome::Moved);
    assert!(block_on(world.timers.pause(&world.partition, KIND)).unwrap());
    assert!(block_on(world.timers.purge(&world.partition, &dead[1].id)).unwrap());
    let cancelled = block_on(world.timers.cancel(&world.partition, KIND, &live, None)).unwrap();
    assert!(cancelled.is_some());
    world.check();
    world.write(Batch::new().delete("grown"));
    schedule(&world, Timer::new(KIND, "new").named()).expect("there is room again");
}
