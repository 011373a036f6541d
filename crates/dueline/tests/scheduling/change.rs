//! Rescheduling, updating, replacing one generation, firing by hand.

use dueline::Bytes;
use dueline::rows::{
    DeadReason, DeadRow, Flags, Header, NameKey, NameRow, NameState, TimerKey, TimerRow,
};
use dueline::store::Batch;
use dueline::timers::{
    Change, ScheduleOutcome, Scheduled, Timer, TimerError, TimerState, TimerView,
};
use dueline_testkit::block_on;

use super::fixture::{KIND, NOW_MS, World, reference_of};

const AT_MS: u64 = 50_000;

fn update(world: &World, change: Change, if_match: Option<u64>) -> Result<Scheduled, TimerError> {
    block_on(
        world
            .timers
            .update(&world.partition, KIND, &reference_of("a"), change, if_match),
    )
}

fn fire_now(world: &World) -> Result<Scheduled, TimerError> {
    block_on(
        world
            .timers
            .fire_now(&world.partition, KIND, &reference_of("a")),
    )
}

fn new_payload() -> Change {
    Change {
        payload: Some("new".into()),
        ..Change::default()
    }
}

/// (asked due, next look, state, attempt, payload)
fn seen(view: &TimerView) -> (u64, u64, TimerState, u16, Bytes) {
    let payload = view.payload.clone();
    (
        view.due_at_ms,
        view.next_at_ms,
        view.state,
        view.attempt,
        payload,
    )
}

#[test]
fn a_reschedule_makes_any_timer_pending_at_its_new_due_with_its_payload() {
    for state in TimerState::ALL {
        let world = World::new();
        let old = world.put_in_state("a", state, AT_MS);
        let reference = reference_of("a");
        let answer = world
            .timers
            .reschedule(&world.partition, KIND, &reference, 70_000, Some(old));
        let answer = block_on(answer).unwrap();
        let view = world.get("a").unwrap();
        assert_eq!(
            seen(&view),
            (70_000, 70_000, TimerState::Pending, 0, "old".into()),
            "{state}"
        );
        assert_eq!(view.last_error, None);
        assert_eq!(view.generation, answer.generation);
        assert_ne!(answer.generation, old);
        let created = answer.outcome == ScheduleOutcome::Created;
        assert_eq!(created, state == TimerState::Dead);
        world.check();
    }
}

#[test]
fn a_new_payload_alone_keeps_when_the_timer_runs() {
    let cases = [
        (TimerState::Pending, (AT_MS, AT_MS, TimerState::Pending, 0)),
        (
            TimerState::Retrying,
            (5_000, AT_MS, TimerState::Retrying, 1),
        ),
        (TimerState::Claimed, (5_000, 5_000, TimerState::Pending, 0)),
    ];
    for (state, (due, next, left, attempt)) in cases {
        let world = World::new();
        let old = world.put_in_state("a", state, AT_MS);
        let answer = update(&world, new_payload(), None).unwrap();
        assert_ne!(answer.generation, old);
        assert_eq!(answer.outcome, ScheduleOutcome::Replaced);
        let view = world.get("a").unwrap();
        assert_eq!(
            seen(&view),
            (due, next, left, attempt, "new".into()),
            "{state}"
        );
        world.check();
    }
}

#[test]
fn a_dead_timer_needs_a_due_to_be_updated() {
    let world = World::new();
    world.put_in_state("a", TimerState::Dead, AT_MS);
    let before = world.rows();
    assert!(matches!(
        update(&world, new_payload(), None),
        Err(TimerError::Invalid(_))
    ));
    assert_eq!(world.rows(), before);
    let change = Change {
        due_at_ms: Some(70_000),
        ..new_payload()
    };
    update(&world, change, None).unwrap();
    let expected = (70_000, 70_000, TimerState::Pending, 0, "new".into());
    assert_eq!(seen(&world.get("a").unwrap()), expected);
    world.check();
}

#[test]
fn what_cannot_be_changed_is_refused_and_nothing_is_written() {
    let world = World::new();
    assert!(matches!(
        update(&world, new_payload(), None),
        Err(TimerError::NotFound)
    ));
    assert!(matches!(fire_now(&world), Err(TimerError::NotFound)));
    let timer = Timer::new(KIND, "a").named();
    let missing = world
        .timers
        .schedule_if_match(&world.partition, timer.clone(), 1);
    assert!(matches!(block_on(missing), Err(TimerError::NotFound)));

    let generation = world.schedule(timer.clone().due_at(AT_MS)).generation;
    let before = world.rows();
    assert!(matches!(
        update(&world, Change::default(), None),
        Err(TimerError::Invalid(_))
    ));
    let mismatch = |error| matches!(error, TimerError::GenerationMismatch { current } if current == generation);
    assert!(mismatch(
        update(&world, new_payload(), Some(7)).unwrap_err()
    ));
    let other = world.timers.schedule_if_match(&world.partition, timer, 7);
    assert!(mismatch(block_on(other).unwrap_err()));
    let anonymous = Timer::new(KIND, "a");
    let nameless = world
        .timers
        .schedule_if_match(&world.partition, anonymous, generation);
    assert!(matches!(block_on(nameless), Err(TimerError::Invalid(_))));
    assert_eq!(world.rows(), before);
}

#[test]
fn one_generation_is_replaced_once() {
    for state in TimerState::ALL {
        let world = World::new();
        let old = world.put_in_state("a", state, AT_MS);
        let timer = || Timer::new(KIND, "a").due_at(70_000).named();
        let replace = |old| {
            block_on(
                world
                    .timers
                    .schedule_if_match(&world.partition, timer(), old),
            )
        };
        let made = replace(old).unwrap();
        assert_ne!(made.generation, old);
        assert!(
            matches!(replace(old), Err(TimerError::GenerationMismatch { .. })),
            "{state}"
        );
        world.check();
    }
}

#[test]
fn a_row_that_does_not_decode_can_be_seen_replaced_and_cancelled_but_not_changed() {
    for replace in [true, false] {
        let world = World::new();
        world.put_in_state("a", TimerState::Pending, AT_MS);
        let name = NameKey {
            kind: KIND,
            reference: reference_of("a"),
        };
        let row = NameRow::decode(&world.rows()[&name.encode()]).unwrap();
        world.write(Batch::new().put(row.target(&name), "\u{9}from the future"));
        let view = world.get("a").unwrap();
        assert_eq!((view.state, view.next_at_ms), (TimerState::Pending, AT_MS));
        assert_eq!(view.payload, "\u{9}from the future");
        assert!(view.last_error.unwrap().error.contains("unknown version"));
        assert!(matches!(
            update(&world, new_payload(), None),
            Err(TimerError::Store(_))
        ));
        if replace {
            world.schedule(Timer::new(KIND, "a").named());
            world.check();
        } else {
            let reference = reference_of("a");
            let cancelled = world
                .timers
                .cancel(&world.partition, KIND, &reference, None);
            assert!(block_on(cancelled).unwrap().is_some());
            assert!(world.rows().is_empty());
        }
    }
}

#[test]
fn a_timer_set_aside_with_an_unreadable_header_is_not_rescheduled() {
    let world = World::new();
    let name = NameKey {
        kind: KIND,
        reference: reference_of("a"),
    };
    let row = NameRow {
        state: NameState::Dead,
        due_ms: 9_000,
        generation: 3,
    };
    let dead = DeadRow {
        header: Header {
            flags: Flags {
                named: true,
                ..Flags::default()
            },
            ..Header::default()
        },
        reason: DeadReason::UndecodableHeader,
        codec_version: 0,
        payload: "\u{9}from the future".into(),
    };
    world.write(
        Batch::new()
            .put(name.encode(), row.encode())
            .put(row.target(&name), dead.encode()),
    );
    let reference = reference_of("a");
    let refused = world
        .timers
        .reschedule(&world.partition, KIND, &reference, AT_MS, None);
    assert!(matches!(block_on(refused), Err(TimerError::Invalid(_))));
    world.check();
}

#[test]
fn firing_by_hand_is_a_move_that_keeps_everything_but_the_time() {
    for state in [TimerState::Pending, TimerState::Retrying] {
        let world = World::new();
        let generation = world.put_in_state("a", state, AT_MS);
        let before = world.get("a").unwrap();
        let answer = fire_now(&world).unwrap();
        let expected = Scheduled {
            generation,
            due_at_ms: NOW_MS,
            state,
            outcome: ScheduleOutcome::Moved,
        };
        assert_eq!(answer, expected);
        let expected = TimerView {
            next_at_ms: NOW_MS,
            ..before
        };
        assert_eq!(world.get("a").unwrap(), expected);
        world.check();
    }
}

#[test]
fn firing_by_hand_leaves_a_timer_alone_that_is_running_or_about_to() {
    for (state, at_ms) in [
        (TimerState::Pending, NOW_MS),
        (TimerState::Retrying, NOW_MS),
        (TimerState::Claimed, AT_MS),
    ] {
        let world = World::new();
        world.put_in_state("a", state, at_ms);
        let before = world.rows();
        assert_eq!(fire_now(&world).unwrap().outcome, ScheduleOutcome::Kept);
        assert_eq!(world.rows(), before, "{state}");
    }
}

#[test]
fn firing_a_dead_timer_by_hand_requeues_it() {
    let world = World::new();
    let generation = world.put_in_state("a", TimerState::Dead, 9_000);
    let answer = fire_now(&world).unwrap();
    assert_eq!(
        (answer.generation, answer.state),
        (generation, TimerState::Pending)
    );
    let expected = (5_000, NOW_MS, TimerState::Pending, 0, "old".into());
    assert_eq!(seen(&world.get("a").unwrap()), expected);
    world.check();
}

#[test]
fn a_move_to_a_key_that_is_taken_goes_a_millisecond_later() {
    let world = World::new();
    let generation = world.put_in_state("a", TimerState::Pending, AT_MS);
    for taken in 0..3 {
        let key = TimerKey {
            kind: KIND,
            due_ms: NOW_MS + taken,
            generation,
            reference: reference_of("a"),
        };
        world.write(Batch::new().put(key.encode(), TimerRow::default().encode()));
    }
    assert_eq!(fire_now(&world).unwrap().due_at_ms, NOW_MS + 3);
    world.check();
}
