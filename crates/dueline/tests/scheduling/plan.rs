//! Plans that commit together with the caller's state.

use dueline::rows::{PauseKey, TimerKey, TimerRow, class};
use dueline::store::{Batch, BatchOutcome, Key, NamespaceStore, StoreErrorKind, Value};
use dueline::timers::{
    Asked, Explained, Plan, Policy, ScheduleOutcome, SeenName, Timer, TimerError, TimerState,
    earliest_timer_put,
};
use dueline_testkit::block_on;

use super::fixture::{KIND, World, reference_of};

fn timer() -> Timer {
    Timer::new(KIND, "a").due_at(50_000).payload("new").named()
}

fn apply(world: &World, batch: Batch) -> BatchOutcome {
    block_on(world.memory.apply(&world.partition, batch)).unwrap()
}

fn plan_again(world: &World, timer: &Timer, policy: Policy, seen: SeenName) -> Plan {
    block_on(
        world
            .timers
            .plan_again(&world.partition, timer, policy, seen),
    )
    .unwrap()
}

/// Which guard was lost and what was seen.
fn lost(outcome: BatchOutcome) -> (usize, Option<Value>) {
    match outcome {
        BatchOutcome::PreconditionFailed { index, observed } => (index, observed),
        other => panic!("expected a lost guard, got {other:?}"),
    }
}

/// The caller's state around a plan: two guards before it, one behind.
fn composed(plan: &Plan) -> Batch {
    Batch::new()
        .require_absent("order")
        .require_absent("seat")
        .put("order", "held")
        .append(plan.batch.clone())
        .require_absent("hold")
        .put("hold", "yes")
}

#[test]
fn state_and_timer_commit_together() {
    let world = World::new();
    for (step, plan) in [
        world.timers.plan_new(&timer()).unwrap(),
        block_on(
            world
                .timers
                .plan(&world.partition, &timer(), Policy::Replace),
        )
        .unwrap(),
    ]
    .into_iter()
    .enumerate()
    {
        let batch = Batch::new()
            .put("order", format!("held {step}"))
            .append(plan.batch);
        let outcome = apply(&world, batch);
        if step == 0 {
            assert_eq!(outcome, BatchOutcome::Committed);
            let view = world.get("a").unwrap();
            assert_eq!(view.generation, plan.scheduled.generation);
        } else {
            // Planned before the first was committed, so its guard is lost, and the state with it.
            assert_eq!(lost(outcome).0, 0);
            assert_eq!(world.rows()[&Key::from("order")], "held 0");
        }
        world.check();
    }
}

#[test]
fn a_lost_guard_is_explained_as_the_callers_or_the_timers() {
    let world = World::new();
    let plan = world.timers.plan_new(&timer()).unwrap();
    let explain = |world: &World| {
        let (index, observed) = lost(apply(world, composed(&plan)));
        plan.explain(2, index, observed)
    };
    for (key, position) in [("order", 0), ("seat", 1), ("hold", 2)] {
        world.write(Batch::new().put(key, "taken"));
        let explained = explain(&world);
        assert!(
            matches!(explained, Explained::Caller { index } if index == position),
            "{key}: {explained:?}"
        );
        world.write(Batch::new().delete(key));
    }
    world.put_in_state("a", TimerState::Retrying, 60_000);
    let Explained::TimerChanged(seen) = explain(&world) else {
        panic!("the name was the timer's guard");
    };
    let before = world.store.counts();
    let again = plan_again(&world, &timer(), Policy::Replace, seen);
    assert_eq!(
        (world.store.counts() - before).row_reads(),
        0,
        "planned from what was seen"
    );
    assert_eq!(apply(&world, composed(&again)), BatchOutcome::Committed);
    assert_eq!(world.get("a").unwrap().state, TimerState::Pending);
    world.check();
}

#[test]
fn a_taken_key_is_explained_as_the_timers_and_drawn_again() {
    let world = World::new();
    for timer in [timer(), Timer::new(KIND, "a").due_at(50_000)] {
        let plan = world.timers.plan_new(&timer).unwrap();
        let taken = TimerKey {
            kind: KIND,
            due_ms: 50_000,
            generation: plan.scheduled.generation,
            reference: reference_of("a"),
        };
        world.write(Batch::new().put(taken.encode(), TimerRow::default().encode()));
        let (index, observed) = lost(apply(&world, plan.batch.clone()));
        let Explained::TimerChanged(seen) = plan.explain(0, index, observed) else {
            panic!("the new key was the timer's guard");
        };
        let again = plan_again(&world, &timer, Policy::Replace, seen);
        assert_eq!(again.scheduled.outcome, ScheduleOutcome::Created);
        assert_eq!(apply(&world, again.batch), BatchOutcome::Committed);
    }
    world.check();
}

#[test]
fn a_plan_that_keeps_a_timer_still_guards_it() {
    let world = World::new();
    world.put_in_state("a", TimerState::Pending, 60_000);
    let plan = || {
        block_on(
            world
                .timers
                .plan(&world.partition, &timer(), Policy::IfAbsent),
        )
        .unwrap()
    };
    let kept = plan();
    assert_eq!(kept.scheduled.outcome, ScheduleOutcome::Kept);
    assert!(kept.batch.writes.is_empty());
    assert_eq!(apply(&world, composed(&kept)), BatchOutcome::Committed);
    world.write(Batch::new().delete("order").delete("hold"));

    // The timer goes between the plan and the commit: the state must not be committed without it.
    let kept = plan();
    block_on(
        world
            .timers
            .cancel(&world.partition, KIND, &reference_of("a"), None),
    )
    .unwrap();
    let (index, observed) = lost(apply(&world, composed(&kept)));
    let Explained::TimerChanged(seen) = kept.explain(2, index, observed) else {
        panic!("the name was the timer's guard");
    };
    let again = plan_again(&world, &timer(), Policy::IfAbsent, seen);
    assert_eq!(again.scheduled.outcome, ScheduleOutcome::Created);
    assert_eq!(apply(&world, composed(&again)), BatchOutcome::Committed);
    assert_eq!(world.class_rows(class::TIMER).len(), 1);
    world.check();
}

#[test]
fn a_plan_over_any_state_leaves_one_row() {
    for state in TimerState::ALL {
        for policy in [Policy::Replace, Policy::KeepEarliest, Policy::IfAbsent] {
            let world = World::new();
            world.put_in_state("a", state, 60_000);
            let plan = block_on(world.timers.plan(&world.partition, &timer(), policy)).unwrap();
            assert!(plan.batch.ops() <= 5, "as documented");
            assert_eq!(apply(&world, composed(&plan)), BatchOutcome::Committed);
            let rows = world.class_rows(class::TIMER).len() + world.class_rows(class::DEAD).len();
            assert_eq!(rows, 1, "{policy:?} over {state}");
            assert_eq!(
                world.get("a").unwrap().generation,
                plan.scheduled.generation
            );
            world.check();
        }
    }
}

#[test]
fn the_earliest_timer_of_a_batch_is_what_it_makes_due() {
    let world = World::new();
    let plan = |due_ms| {
        let timer = Timer::new(KIND, "b").due_at(due_ms);
        world.timers.plan_new(&timer).unwrap().batch
    };
    let state = Batch::new().put("order", "held").delete("hold");
    assert_eq!(earliest_timer_put(&state), None);
    let two = state
        .append(plan(70_000))
        .append(plan(40_000))
        .append(plan(90_000));
    assert_eq!(earliest_timer_put(&two), Some(40_000));
    let resumed = two.delete(PauseKey { kind: KIND }.encode());
    assert_eq!(earliest_timer_put(&resumed), Some(0));
    let removed = Batch::new().delete(plan(40_000).writes[0].key().clone());
    assert_eq!(
        earliest_timer_put(&removed),
        None,
        "a removal makes nothing due"
    );
}

#[test]
fn two_plans_of_one_name_do_not_share_a_batch() {
    for state in [None, Some(TimerState::Pending), Some(TimerState::Dead)] {
        let world = World::new();
        if let Some(state) = state {
            world.put_in_state("a", state, 60_000);
        }
        let before = world.rows();
        let plan = || {
            let timer = timer();
            let plan = world.timers.plan(&world.partition, &timer, Policy::Replace);
            block_on(plan).unwrap()
        };
        let cancel = || plan().into_cancel(&timer()).unwrap();
        let mut pairs = vec![(plan().batch, plan().batch)];
        if state.is_some() {
            pairs.push((plan().batch, cancel()));
            pairs.push((cancel(), plan().batch));
        }
        for (first, second) in pairs {
            let batch = Batch::new().append(first).append(second);
            let refused = block_on(world.memory.apply(&world.partition, batch)).unwrap_err();
            assert_eq!(refused.kind(), StoreErrorKind::Invalid);
            assert_eq!(world.rows(), before);
        }
    }
}

fn asked(timer: Timer) -> Asked {
    Asked {
        timer,
        policy: Policy::Replace,
        if_match: None,
    }
}

#[test]
fn plans_of_many_are_made_of_one_reading_and_say_which_is_refused() {
    let world = World::new();
    let there = world.schedule(timer());
    let before = world.store.counts();
    let mut matched = asked(timer());
    matched.if_match = Some(there.generation);
    let all = [
        asked(Timer::new(KIND, "b").due_at(60_000)),
        matched.clone(),
        asked(Timer::new(KIND, "c").due_at(70_000).named()),
    ];
    let plans = block_on(world.timers.plan_all(&world.partition, &all)).unwrap();
    let after = world.store.counts();
    assert_eq!(
        (after.gets, after.get_manys),
        (before.gets, before.get_manys + 1)
    );
    let outcomes: Vec<ScheduleOutcome> = plans.iter().map(|plan| plan.scheduled.outcome).collect();
    let (created, replaced) = (ScheduleOutcome::Created, ScheduleOutcome::Replaced);
    assert_eq!(outcomes, [created, replaced, created]);
    for plan in plans {
        assert_eq!(apply(&world, plan.batch), BatchOutcome::Committed);
    }
    world.check();
    // What has just been replaced is another generation.
    let refused = block_on(world.timers.plan_all(&world.partition, &all)).unwrap_err();
    assert_eq!(refused.index, Some(1));
    assert!(matches!(
        refused.error,
        TimerError::GenerationMismatch { current } if current != there.generation
    ));
    let mut absent = asked(Timer::new(KIND, "absent").named());
    absent.if_match = Some(1);
    let refused = block_on(world.timers.plan_all(&world.partition, &[absent])).unwrap_err();
    assert!(matches!(refused.error, TimerError::NotFound));
    let mut anonymous = asked(Timer::new(KIND, "a"));
    anonymous.if_match = Some(there.generation);
    let refused = block_on(world.timers.plan_all(&world.partition, &[anonymous])).unwrap_err();
    assert!(
        matches!(refused.error, TimerError::NotFound),
        "it has no name"
    );
}

#[test]
fn the_later_plan_of_a_name_loses_to_the_earlier() {
    let world = World::new();
    let all = [asked(timer()), asked(timer())];
    let plans = block_on(world.timers.plan_all(&world.partition, &all)).unwrap();
    let mut outcomes = plans.into_iter().map(|plan| apply(&world, plan.batch));
    assert_eq!(outcomes.next(), Some(BatchOutcome::Committed));
    assert_eq!(
        outcomes.next().map(|outcome| outcome.is_committed()),
        Some(false)
    );
}
