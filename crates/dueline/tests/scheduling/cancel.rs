//! Cancelling by name, and that it is final.

use dueline::rows::{NameKey, NameRow, class};
use dueline::store::{Batch, BatchOutcome, NamespaceStore, StoreErrorKind};
use dueline::timers::{Cancelled, Policy, Timer, TimerError, TimerState};
use dueline_testkit::{CommitFault, block_on};

use super::fixture::{KIND, NOW_MS, World, reference_of};

fn cancel(world: &World, if_match: Option<u64>) -> Result<Option<Cancelled>, TimerError> {
    block_on(
        world
            .timers
            .cancel(&world.partition, KIND, &reference_of("a"), if_match),
    )
}

fn cancel_unless_claimed(world: &World) -> Result<Option<Cancelled>, TimerError> {
    let reference = reference_of("a");
    block_on(
        world
            .timers
            .cancel_unless_claimed(&world.partition, KIND, &reference, None),
    )
}

/// What a run that read the timer before would commit: an effect, guarded by the timer's row.
fn effect_of_a_run(world: &World) -> Batch {
    let name = NameKey {
        kind: KIND,
        reference: reference_of("a"),
    };
    let row = NameRow::decode(&world.rows()[&name.encode()]).unwrap();
    Batch::new()
        .require_present(row.target(&name))
        .put("effect", "done")
}

#[test]
fn a_cancel_removes_every_trace_whatever_the_state() {
    for state in TimerState::ALL {
        let world = World::new();
        let generation = world.put_in_state("a", state, 50_000);
        let cancelled = cancel(&world, None).unwrap();
        assert_eq!(cancelled, Some(Cancelled { state, generation }));
        assert!(world.rows().is_empty(), "{state}");
        assert_eq!(cancel(&world, None).unwrap(), None, "it is gone");
    }
}

/// Both ways to plan a cancel.
fn plan_cancel(world: &World) -> [Batch; 2] {
    let (timers, partition) = (&world.timers, &world.partition);
    let alone = block_on(timers.plan_cancel(partition, KIND, &reference_of("a"))).unwrap();
    let timer = Timer::new(KIND, "a").named();
    let found = block_on(timers.plan(partition, &timer, Policy::IfAbsent)).unwrap();
    [alone, found.into_cancel(&timer).unwrap()]
}

fn apply(world: &World, batch: Batch) -> BatchOutcome {
    block_on(world.memory.apply(&world.partition, batch)).unwrap()
}

#[test]
fn a_planned_cancel_goes_with_the_batch_it_is_appended_to_whatever_the_state() {
    for state in TimerState::ALL {
        for way in 0..2 {
            let world = World::new();
            world.put_in_state("a", state, 50_000);
            let planned = plan_cancel(&world)[way].clone();
            let batch = Batch::new().put("state", "over").append(planned);
            assert_eq!(apply(&world, batch), BatchOutcome::Committed);
            let keys: Vec<_> = world.rows().into_keys().collect();
            assert_eq!(keys, ["state"], "{state}");
        }
    }
}

#[test]
fn a_planned_cancel_does_not_commit_over_what_it_has_not_seen() {
    let world = World::new();
    let before = plan_cancel(&world);
    world.schedule(Timer::new(KIND, "a").due_at(50_000).named());
    let replaced = plan_cancel(&world);
    world.schedule(Timer::new(KIND, "a").due_at(60_000).named());
    for batch in before.into_iter().chain(replaced) {
        let outcome = apply(&world, Batch::new().put("state", "over").append(batch));
        assert!(matches!(outcome, BatchOutcome::PreconditionFailed { .. }));
    }
    // The first finds it, the next ones that it is gone.
    for _ in 0..2 {
        for batch in plan_cancel(&world) {
            drop(apply(&world, batch));
        }
    }
    assert!(world.rows().is_empty(), "nothing of them is left");
}

#[test]
fn nothing_of_a_cancelled_or_replaced_timer_commits_afterwards() {
    for state in [
        TimerState::Pending,
        TimerState::Retrying,
        TimerState::Claimed,
    ] {
        for replace in [false, true] {
            let world = World::new();
            world.put_in_state("a", state, 50_000);
            let effect = effect_of_a_run(&world);
            if replace {
                world.schedule(Timer::new(KIND, "a").due_at(50_000).named());
            } else {
                cancel(&world, None).unwrap().expect("it was there");
            }
            let outcome = block_on(world.memory.apply(&world.partition, effect)).unwrap();
            assert!(matches!(
                outcome,
                BatchOutcome::PreconditionFailed { index: 0, .. }
            ));
        }
    }
}

#[test]
fn a_kick_also_takes_the_guard_of_a_run_that_began_before_it() {
    for state in [
        TimerState::Pending,
        TimerState::Retrying,
        TimerState::Claimed,
    ] {
        let world = World::new();
        world.put_in_state("a", state, 50_000);
        let effect = effect_of_a_run(&world);
        let kick = Timer::new(KIND, "a").due_at(90_000).named();
        block_on(
            world
                .timers
                .schedule(&world.partition, kick, Policy::KeepEarliest),
        )
        .unwrap();
        let outcome = block_on(world.memory.apply(&world.partition, effect)).unwrap();
        assert!(!outcome.is_committed(), "{state}");
    }
}

#[test]
fn if_match_takes_the_generation_and_nothing_else() {
    let world = World::new();
    let generation = world.put_in_state("a", TimerState::Retrying, 50_000);
    let refused = cancel(&world, Some(generation + 1));
    let current = |error| matches!(error, TimerError::GenerationMismatch { current } if current == generation);
    assert!(current(refused.unwrap_err()));
    assert!(world.get("a").is_some(), "nothing was written");
    assert!(
        cancel(&world, Some(generation)).unwrap().is_some(),
        "a retry keeps the generation"
    );
    assert_eq!(cancel(&world, Some(generation)).unwrap(), None);
}

#[test]
fn a_claimed_timer_can_be_left_alone_while_its_claim_lasts() {
    let world = World::new();
    let ends_at_ms = NOW_MS + 40_000;
    world.put_in_state("a", TimerState::Claimed, ends_at_ms);
    world.clock.advance_ms(39_999);
    match cancel_unless_claimed(&world) {
        Err(TimerError::Claimed { ends_at_ms: said }) => assert_eq!(said, ends_at_ms),
        other => panic!("expected a refusal, got {other:?}"),
    }
    assert!(world.get("a").is_some());
    world.clock.advance_ms(1);
    assert!(
        cancel_unless_claimed(&world).unwrap().is_some(),
        "its call has been dropped"
    );
}

#[test]
fn a_timer_that_is_not_claimed_is_cancelled_either_way() {
    for state in [TimerState::Pending, TimerState::Retrying, TimerState::Dead] {
        let world = World::new();
        world.put_in_state("a", state, 50_000);
        assert_eq!(cancel_unless_claimed(&world).unwrap().unwrap().state, state);
        assert!(world.rows().is_empty());
    }
}

#[test]
fn an_anonymous_timer_of_the_same_reference_is_not_touched() {
    let world = World::new();
    world.schedule(Timer::new(KIND, "a"));
    assert_eq!(cancel(&world, None).unwrap(), None);
    world.schedule(Timer::new(KIND, "a").named());
    assert!(cancel(&world, None).unwrap().is_some());
    assert_eq!(world.class_rows(class::TIMER).len(), 1);
}

#[test]
fn after_an_unknown_outcome_a_second_cancel_settles_it() {
    for fault in [
        CommitFault::AnswerLost,
        CommitFault::NotWritten(StoreErrorKind::Unknown),
    ] {
        let world = World::new();
        world.put_in_state("a", TimerState::Pending, 50_000);
        world.store.fail_commit(1, fault);
        match cancel(&world, None) {
            Err(TimerError::Store(error)) => assert_eq!(error.kind(), StoreErrorKind::Unknown),
            other => panic!("expected an error, got {other:?}"),
        }
        cancel(&world, None).unwrap();
        assert!(world.rows().is_empty());
    }
}
