//! Lanes, pauses and what was set aside.

use dueline::rows::{DeadKey, DeadReason, DeadRow, Header, PauseKey, QuarantineKey, class};
use dueline::store::{Batch, Key, WakeSettle, WakeStore};
use dueline::timers::{
    LANE_COUNT_MAX, LaneCount, LaneSummary, Timer, TimerError, TimerKind, TimerState,
};
use dueline_testkit::block_on;

use super::fixture::{KIND, NOW_MS, World, reference_of};

fn lanes(world: &World) -> Vec<LaneSummary> {
    block_on(world.timers.lanes(&world.partition)).unwrap()
}

fn rows(rows: usize) -> LaneCount {
    LaneCount { rows, more: false }
}

#[test]
fn a_summary_shows_each_kind_with_its_timers_its_dead_and_its_pause() {
    let world = World::new();
    assert_eq!(lanes(&world), []);
    world.put_in_state("a", TimerState::Pending, 50_000);
    world.put_in_state("b", TimerState::Retrying, 40_000);
    world.put_in_state("c", TimerState::Dead, 9_000);
    world.put_in_state("d", TimerState::Claimed, 60_000);
    // The claim of a run that was cut is over.
    world.put_in_state("e", TimerState::Claimed, NOW_MS);
    world.schedule(Timer::new(TimerKind(0xFF), "last").due_at(7));
    let dead = DeadKey {
        kind: TimerKind(200),
        dead_at_ms: 1,
        generation: 1,
        reference: reference_of("x"),
    };
    let row = DeadRow {
        header: Header::default(),
        reason: DeadReason::Handler,
        codec_version: 0,
        payload: "".into(),
    };
    world.write(Batch::new().put(dead.encode(), row.encode()));
    block_on(world.timers.pause(&world.partition, TimerKind(17))).unwrap();
    let empty = LaneSummary {
        kind: KIND,
        first_due_ms: None,
        paused_since_ms: None,
        timers: rows(0),
        retrying: 0,
        claimed: 0,
        dead: rows(0),
    };
    let expected = [
        LaneSummary {
            first_due_ms: Some(NOW_MS),
            timers: rows(4),
            retrying: 2,
            claimed: 1,
            dead: rows(1),
            ..empty
        },
        LaneSummary {
            kind: TimerKind(17),
            paused_since_ms: Some(NOW_MS),
            ..empty
        },
        LaneSummary {
            kind: TimerKind(200),
            dead: rows(1),
            ..empty
        },
        LaneSummary {
            kind: TimerKind(0xFF),
            first_due_ms: Some(7),
            timers: rows(1),
            ..empty
        },
    ];
    assert_eq!(lanes(&world), expected);
}

#[test]
fn kinds_are_found_by_seeks_and_counted_up_to_a_bound() {
    let world = World::new();
    for number in 0..=LANE_COUNT_MAX {
        world.schedule(Timer::new(KIND, "a").due_at(number as u64));
    }
    world.schedule(Timer::new(TimerKind(17), "b"));
    let summary = lanes(&world);
    let expected = LaneCount {
        rows: LANE_COUNT_MAX,
        more: true,
    };
    assert_eq!(summary[0].timers, expected);
    assert_eq!(summary[1].timers, rows(1));
}

#[test]
fn a_key_too_damaged_to_name_its_kind_is_shown_as_kind_0() {
    let world = World::new();
    world.write(Batch::new().put(vec![class::TIMER, 0], "?"));
    world.schedule(Timer::new(KIND, "a").due_at(50_000));
    let kinds: Vec<_> = lanes(&world)
        .iter()
        .map(|lane| (lane.kind, lane.timers))
        .collect();
    assert_eq!(kinds, [(TimerKind::INVALID, rows(1)), (KIND, rows(1))]);
}

#[test]
fn a_pause_that_stands_keeps_its_beginning() {
    let world = World::new();
    let pause = |kind| block_on(world.timers.pause(&world.partition, kind)).unwrap();
    let resume = |kind| block_on(world.timers.resume(&world.partition, kind)).unwrap();
    let paused = || block_on(world.timers.paused(&world.partition)).unwrap();
    assert!(!resume(KIND), "it was not paused");
    assert!(pause(KIND));
    world.clock.advance_ms(500);
    assert!(!pause(KIND), "it was paused already");
    assert!(pause(TimerKind(3)));
    assert_eq!(paused(), [(TimerKind(3), NOW_MS + 500), (KIND, NOW_MS)]);
    assert!(resume(KIND));
    assert_eq!(paused(), [(TimerKind(3), NOW_MS + 500)]);
    let zero = world.timers.pause(&world.partition, TimerKind::INVALID);
    assert!(matches!(block_on(zero), Err(TimerError::Invalid(_))));
}

#[test]
fn a_paused_kind_can_be_scheduled_and_cancelled_and_wakes_when_resumed() {
    let world = World::new();
    block_on(world.timers.pause(&world.partition, KIND)).unwrap();
    world.schedule(Timer::new(KIND, "a").due_at(50_000).named());
    world.schedule(Timer::new(KIND, "b").due_at(60_000).named());
    let reference = reference_of("b");
    let cancelled = world
        .timers
        .cancel(&world.partition, KIND, &reference, None);
    assert!(block_on(cancelled).unwrap().is_some());
    // A tick that finds the kind paused leaves it without a wake.
    let served_ms = world.memory.wakes().iter().map(|wake| wake.at_ms).collect();
    let settle = WakeSettle {
        kind: KIND,
        served_ms,
    };
    let next = block_on(world.memory.settle_wake(&world.partition, settle)).unwrap();
    assert_eq!((next, world.memory.wakes().len()), (None, 0));

    block_on(world.timers.resume(&world.partition, KIND)).unwrap();
    let wakes = world.memory.wakes();
    assert_eq!((wakes.len(), wakes[0].at_ms), (1, 50_000));
}

#[test]
fn a_pause_row_that_does_not_decode_is_reported() {
    let world = World::new();
    world.write(Batch::new().put(PauseKey { kind: KIND }.encode(), "?"));
    let answer = block_on(world.timers.paused(&world.partition));
    assert!(matches!(answer, Err(TimerError::Store(_))));
}

#[test]
fn rows_set_aside_are_listed_under_the_keys_they_were_found_at() {
    let world = World::new();
    let keys: Vec<Key> = [vec![0x77, 0], vec![0x77, 0, 16], vec![0x77, 0, 16, 1, 2]]
        .map(Key::from)
        .to_vec();
    for key in &keys {
        let batch = Batch::new().put(QuarantineKey::of(key).encode(), "as found");
        world.write(batch);
    }
    let mut found = Vec::new();
    let mut after = None;
    loop {
        let page = world
            .timers
            .quarantined(&world.partition, after.as_ref(), 1);
        let page = block_on(page).unwrap();
        found.extend(page.rows);
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(
        found.iter().map(|row| row.key.clone()).collect::<Vec<_>>(),
        keys
    );
    assert!(found.iter().all(|row| row.value == "as found"));
}
