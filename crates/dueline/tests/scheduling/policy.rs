//! Every cell of the policy table.

use dueline::rows::{TimerKey, TimerRow, class};
use dueline::timers::{Policy, ScheduleOutcome, Scheduled, Timer, TimerState};
use dueline_testkit::block_on;

use super::fixture::{KIND, World};

/// When the timer of each state is looked at next.
const AT_MS: u64 = 50_000;
/// An asked due before and behind it.
const EARLIER_MS: u64 = 30_000;
const LATER_MS: u64 = 70_000;

/// The row that a schedule leaves.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Left {
    due_ms: u64,
    asked_ms: u64,
    attempt: u16,
    state: TimerState,
    failed: bool,
}

fn fresh(due_ms: u64) -> Left {
    Left {
        due_ms,
        asked_ms: due_ms,
        attempt: 0,
        state: TimerState::Pending,
        failed: false,
    }
}

/// Schedules over a timer in this state and returns what was answered and what the old generation
/// was.
fn meet(world: &World, state: Option<TimerState>, policy: Policy, due_ms: u64) -> (Scheduled, u64) {
    let old = state.map_or(0, |state| world.put_in_state("a", state, AT_MS));
    let timer = Timer::new(KIND, "a").due_at(due_ms).payload("new").named();
    let answer = block_on(world.timers.schedule(&world.partition, timer, policy)).unwrap();
    world.check();
    (answer, old)
}

fn assert_written(
    state: Option<TimerState>,
    policy: Policy,
    due_ms: u64,
    outcome: ScheduleOutcome,
    left: Left,
) {
    let world = World::new();
    let case = format!("{policy:?} at {due_ms} over {state:?}");
    let (answer, old) = meet(&world, state, policy, due_ms);
    assert_eq!(answer.outcome, outcome, "{case}");
    assert_ne!(answer.generation, old, "{case}");

    let rows = world.class_rows(class::TIMER);
    assert_eq!(rows.len(), 1, "{case}");
    assert_eq!(world.class_rows(class::DEAD).len(), 0, "{case}");
    let key = TimerKey::decode(&rows[0].0).unwrap();
    let row = TimerRow::decode(&rows[0].1).unwrap();
    assert_eq!(key.generation, answer.generation, "{case}");
    assert_eq!(row.payload.as_ref(), b"new", "{case}");
    let found = Left {
        due_ms: key.due_ms,
        asked_ms: row.header.original_due_ms,
        attempt: row.header.attempt,
        state: world.get("a").unwrap().state,
        failed: row.header.failure.is_some(),
    };
    assert_eq!(found, left, "{case}");
    assert_eq!(
        (answer.due_at_ms, answer.state),
        (left.due_ms, left.state),
        "{case}"
    );
}

#[test]
fn replace_creates_or_takes_the_place_of_whatever_is_there() {
    use ScheduleOutcome::{Created, Replaced};
    for due_ms in [EARLIER_MS, LATER_MS] {
        for (state, outcome) in [
            (None, Created),
            (Some(TimerState::Pending), Replaced),
            (Some(TimerState::Retrying), Replaced),
            (Some(TimerState::Claimed), Replaced),
            (Some(TimerState::Dead), Created),
        ] {
            assert_written(state, Policy::Replace, due_ms, outcome, fresh(due_ms));
        }
    }
}

#[test]
fn a_kick_of_a_pending_timer_keeps_the_earlier_due() {
    let kick = |due_ms, left| {
        let outcome = ScheduleOutcome::Replaced;
        assert_written(
            Some(TimerState::Pending),
            Policy::KeepEarliest,
            due_ms,
            outcome,
            left,
        );
    };
    kick(EARLIER_MS, fresh(EARLIER_MS));
    kick(AT_MS, fresh(AT_MS));
    kick(LATER_MS, fresh(AT_MS));
}

#[test]
fn a_kick_of_a_retrying_timer_keeps_its_back_off_and_its_attempts() {
    for due_ms in [EARLIER_MS, LATER_MS] {
        let left = Left {
            due_ms: AT_MS,
            asked_ms: 5_000,
            attempt: 1,
            state: TimerState::Retrying,
            failed: true,
        };
        let outcome = ScheduleOutcome::Replaced;
        assert_written(
            Some(TimerState::Retrying),
            Policy::KeepEarliest,
            due_ms,
            outcome,
            left,
        );
    }
}

#[test]
fn a_kick_of_a_claimed_timer_is_pending_at_its_own_due() {
    for due_ms in [EARLIER_MS, LATER_MS] {
        let outcome = ScheduleOutcome::Replaced;
        let state = Some(TimerState::Claimed);
        assert_written(state, Policy::KeepEarliest, due_ms, outcome, fresh(due_ms));
    }
}

#[test]
fn a_kick_of_no_timer_or_a_dead_one_creates_it() {
    for state in [None, Some(TimerState::Dead)] {
        for due_ms in [EARLIER_MS, LATER_MS] {
            let outcome = ScheduleOutcome::Created;
            assert_written(state, Policy::KeepEarliest, due_ms, outcome, fresh(due_ms));
        }
    }
}

#[test]
fn if_absent_creates_what_is_not_there() {
    let outcome = ScheduleOutcome::Created;
    assert_written(None, Policy::IfAbsent, LATER_MS, outcome, fresh(LATER_MS));
}

#[test]
fn if_absent_writes_nothing_over_any_state_and_says_what_is_there() {
    for state in TimerState::ALL {
        let world = World::new();
        let old = world.put_in_state("a", state, AT_MS);
        let before = world.rows();
        let timer = Timer::new(KIND, "a").due_at(1).payload("new").named();
        let answer = block_on(
            world
                .timers
                .schedule(&world.partition, timer, Policy::IfAbsent),
        )
        .unwrap();
        let expected = Scheduled {
            generation: old,
            due_at_ms: AT_MS,
            state,
            outcome: ScheduleOutcome::Kept,
        };
        assert_eq!(answer, expected);
        assert_eq!(world.rows(), before, "{state}");
    }
}

#[test]
fn a_kick_keeps_the_due_as_asked_apart_from_the_due_of_the_key() {
    // A timer fired by hand lies at now, before the due it was asked for.
    let world = World::new();
    world.put_in_state("a", TimerState::Pending, AT_MS);
    let reference = super::fixture::reference_of("a");
    block_on(world.timers.fire_now(&world.partition, KIND, &reference)).unwrap();
    let kick = Timer::new(KIND, "a").due_at(EARLIER_MS).named();
    block_on(
        world
            .timers
            .schedule(&world.partition, kick, Policy::KeepEarliest),
    )
    .unwrap();
    let view = world.get("a").unwrap();
    assert_eq!(
        view.next_at_ms,
        super::fixture::NOW_MS,
        "not later than it was"
    );
    assert_eq!(view.due_at_ms, EARLIER_MS);
    world.check();
}

#[test]
fn anonymous_timers_of_one_reference_stand_side_by_side_whatever_the_policy() {
    let world = World::new();
    for policy in [Policy::Replace, Policy::KeepEarliest, Policy::IfAbsent] {
        let timer = Timer::new(KIND, "a").due_at(AT_MS);
        let made = block_on(world.timers.schedule(&world.partition, timer, policy)).unwrap();
        assert_eq!(made.outcome, ScheduleOutcome::Created);
    }
    assert_eq!(world.class_rows(class::TIMER).len(), 3);
    assert_eq!(world.class_rows(class::NAME).len(), 0);
    assert_eq!(world.get("a"), None);
    world.check();
}

#[test]
fn a_new_timer_costs_one_commit_and_no_read() {
    let world = World::new();
    for timer in [Timer::new(KIND, "a").named(), Timer::new(KIND, "a")] {
        let before = world.store.counts();
        world.schedule(timer);
        let cost = world.store.counts() - before;
        assert_eq!((cost.commits(), cost.row_reads()), (1, 0));
    }
}

#[test]
fn a_replacement_plans_from_the_lost_guard_without_a_read() {
    let world = World::new();
    world.schedule(Timer::new(KIND, "a").named());
    let before = world.store.counts();
    world.schedule(Timer::new(KIND, "a").due_at(AT_MS).named());
    let cost = world.store.counts() - before;
    assert_eq!((cost.commits(), cost.row_reads()), (2, 0));
    world.check();
}
