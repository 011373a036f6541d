//! Random verbs and moves of the engine on a few names, against a simple model.
//!
//! Goal: whatever comes after whatever, each name is as the model says, the partition holds exactly
//! the rows that the names and the anonymous timers account for, and every answer is the model's.
//! Method: the model keeps a record per name and applies the documented rule of each verb to it.

use std::collections::BTreeMap;

use dueline::rows::class;
use dueline::timers::{
    Change, ListQuery, Policy, ScheduleOutcome, Scheduled, Timer, TimerError, TimerState,
};
use dueline_testkit::block_on;
use proptest::prelude::*;

use super::fixture::{KIND, World, move_batch, reference_of};

const NAMES: [&str; 3] = ["a", "b", "c"];

#[derive(Clone, Copy, Debug)]
enum Action {
    Schedule(Policy, u64),
    ScheduleIfMatch { due_ms: u64, right: bool },
    Many([(Policy, u64); 4]),
    Cancel,
    Reschedule(u64),
    NewPayload,
    FireNow,
    Requeue,
    Purge,
    Engine(TimerState),
    Advance(u64),
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Record {
    state: TimerState,
    asked_ms: u64,
    next_ms: u64,
    attempt: u16,
    payload: u64,
    generation: u64,
}

#[derive(Default)]
struct Model {
    names: BTreeMap<&'static str, Record>,
    payload: u64,
    now_ms: u64,
}

impl Model {
    fn fresh(&mut self, due_ms: u64) -> Record {
        self.payload += 1;
        Record {
            state: TimerState::Pending,
            asked_ms: due_ms,
            next_ms: due_ms,
            attempt: 0,
            payload: self.payload,
            generation: 0,
        }
    }

    /// The record a schedule leaves, its generation still the old one's or 0, and what it is called.
    fn schedule(
        &mut self,
        old: Option<&Record>,
        policy: Policy,
        due_ms: u64,
    ) -> (Record, ScheduleOutcome) {
        let fresh = self.fresh(due_ms);
        let Some(old) = old else {
            return (fresh, ScheduleOutcome::Created);
        };
        let outcome = match old.state {
            TimerState::Dead => ScheduleOutcome::Created,
            _ => ScheduleOutcome::Replaced,
        };
        match (policy, old.state) {
            (Policy::IfAbsent, _) => (*old, ScheduleOutcome::Kept),
            (Policy::KeepEarliest, TimerState::Pending) => {
                let kicked = Record {
                    asked_ms: old.asked_ms.min(due_ms),
                    next_ms: old.next_ms.min(due_ms),
                    ..fresh
                };
                (kicked, outcome)
            }
            (Policy::KeepEarliest, TimerState::Retrying) => {
                let kicked = Record {
                    payload: fresh.payload,
                    ..*old
                };
                (kicked, outcome)
            }
            _ => (fresh, outcome),
        }
    }
}

fn action() -> impl Strategy<Value = Action> {
    let policy = prop_oneof![
        Just(Policy::Replace),
        Just(Policy::KeepEarliest),
        Just(Policy::IfAbsent)
    ];
    // Few dues, so that some are equal and some lie in the past.
    let due = (0_u64..8).prop_map(|step| step * 5_000);
    let state = prop_oneof![
        Just(TimerState::Pending),
        Just(TimerState::Retrying),
        Just(TimerState::Claimed),
        Just(TimerState::Dead)
    ];
    prop_oneof![
        4 => (policy.clone(), due.clone()).prop_map(|(policy, due)| Action::Schedule(policy, due)),
        1 => (due.clone(), any::<bool>())
            .prop_map(|(due_ms, right)| Action::ScheduleIfMatch { due_ms, right }),
        2 => proptest::array::uniform4((policy, due.clone())).prop_map(Action::Many),
        1 => Just(Action::Cancel),
        1 => due.prop_map(Action::Reschedule),
        1 => Just(Action::NewPayload),
        1 => Just(Action::FireNow),
        1 => Just(Action::Requeue),
        1 => Just(Action::Purge),
        5 => state.prop_map(Action::Engine),
        1 => (0_u64..10_000).prop_map(Action::Advance),
    ]
}

/// Notes what a schedule left and checks its answer.
fn note(model: &mut Model, name: &'static str, left: (Record, ScheduleOutcome), made: Scheduled) {
    let (mut record, outcome) = left;
    assert_eq!(
        (made.outcome, made.state, made.due_at_ms),
        (outcome, record.state, record.next_ms)
    );
    if outcome == ScheduleOutcome::Kept || outcome == ScheduleOutcome::Moved {
        assert_eq!(made.generation, record.generation);
    } else if let Some(old) = model.names.get(name) {
        assert_ne!(
            made.generation, old.generation,
            "a change draws a new generation"
        );
    }
    record.generation = made.generation;
    model.names.insert(name, record);
}

fn timer(name: &'static str, due_ms: u64, payload: u64) -> Timer {
    Timer::new(KIND, name)
        .due_at(due_ms)
        .payload(payload.to_string())
        .named()
}

fn schedule(world: &World, model: &mut Model, name: &'static str, policy: Policy, due_ms: u64) {
    let old = model.names.get(name).copied();
    let left = model.schedule(old.as_ref(), policy, due_ms);
    let timer = timer(name, due_ms, model.payload);
    let made = block_on(world.timers.schedule(&world.partition, timer, policy)).unwrap();
    note(model, name, left, made);
}

/// Four timers in one call, the first and the last of one name.
fn schedule_many(world: &World, model: &mut Model, asked: [(Policy, u64); 4]) {
    let names = [NAMES[0], NAMES[1], NAMES[2], NAMES[0]];
    let first_payload = model.payload + 1;
    let timers = names
        .into_iter()
        .zip(asked)
        .zip(first_payload..)
        .map(|((name, (policy, due_ms)), payload)| (timer(name, due_ms, payload), policy));
    let answers = block_on(
        world
            .timers
            .schedule_many(&world.partition, timers.collect()),
    );
    for ((name, (policy, due_ms)), made) in names.into_iter().zip(asked).zip(answers) {
        let old = model.names.get(name).copied();
        let left = model.schedule(old.as_ref(), policy, due_ms);
        note(model, name, left, made.unwrap());
    }
}

fn schedule_if_match(
    world: &World,
    model: &mut Model,
    name: &'static str,
    due_ms: u64,
    right: bool,
) {
    let old = model.names.get(name).copied();
    let generation = old
        .as_ref()
        .map_or(1, |old| old.generation + u64::from(!right));
    let left = model.schedule(old.as_ref(), Policy::Replace, due_ms);
    let timer = timer(name, due_ms, model.payload);
    let made = block_on(
        world
            .timers
            .schedule_if_match(&world.partition, timer, generation),
    );
    match old {
        None => assert!(matches!(made, Err(TimerError::NotFound))),
        Some(_) if !right => assert!(matches!(made, Err(TimerError::GenerationMismatch { .. }))),
        Some(_) => note(model, name, left, made.unwrap()),
    }
}

fn cancel(world: &World, model: &mut Model, name: &'static str) {
    let reference = reference_of(name);
    let done = block_on(
        world
            .timers
            .cancel(&world.partition, KIND, &reference, None),
    )
    .unwrap();
    let cancelled = model
        .names
        .remove(name)
        .map(|old| (old.state, old.generation));
    assert_eq!(done.map(|done| (done.state, done.generation)), cancelled);
}

fn change(world: &World, model: &mut Model, name: &'static str, due_at_ms: Option<u64>) {
    let old = model.names.get(name).copied();
    let payload = due_at_ms.is_none().then(|| model.payload + 1);
    let change = Change {
        due_at_ms,
        payload: payload.map(|payload| payload.to_string().into()),
    };
    let reference = reference_of(name);
    let made = world
        .timers
        .update(&world.partition, KIND, &reference, change, None);
    let made = block_on(made);
    let Some(old) = old else {
        assert!(matches!(made, Err(TimerError::NotFound)));
        return;
    };
    if due_at_ms.is_none() && old.state == TimerState::Dead {
        assert!(matches!(made, Err(TimerError::Invalid(_))));
        return;
    }
    let outcome = model.schedule(Some(&old), Policy::Replace, 0).1;
    let due_ms = due_at_ms.unwrap_or(old.asked_ms);
    let mut record = Record {
        payload: payload.unwrap_or(old.payload),
        ..model.fresh(due_ms)
    };
    if due_at_ms.is_none() && old.state != TimerState::Claimed {
        record.next_ms = old.next_ms;
        record.attempt = old.attempt;
        record.state = old.state;
    }
    note(model, name, (record, outcome), made.unwrap());
}

fn requeued(model: &Model, old: Record) -> (Record, ScheduleOutcome) {
    let record = Record {
        state: TimerState::Pending,
        next_ms: model.now_ms,
        attempt: 0,
        ..old
    };
    (record, ScheduleOutcome::Moved)
}

fn fire_now(world: &World, model: &mut Model, name: &'static str) {
    let reference = reference_of(name);
    let made = block_on(world.timers.fire_now(&world.partition, KIND, &reference));
    let Some(old) = model.names.get(name).copied() else {
        assert!(matches!(made, Err(TimerError::NotFound)));
        return;
    };
    let left = match old.state {
        TimerState::Dead => requeued(model, old),
        TimerState::Pending | TimerState::Retrying if old.next_ms > model.now_ms => {
            let record = Record {
                next_ms: model.now_ms,
                ..old
            };
            (record, ScheduleOutcome::Moved)
        }
        _ => (old, ScheduleOutcome::Kept),
    };
    note(model, name, left, made.unwrap());
}

/// The first dead timer, if there is one: requeued or purged.
fn first_dead(world: &World, model: &mut Model, purge: bool) {
    let page = block_on(world.timers.dead(&world.partition, None, None, 1)).unwrap();
    let Some(view) = page.dead.into_iter().next() else {
        assert!(
            model
                .names
                .values()
                .all(|record| record.state != TimerState::Dead)
        );
        return;
    };
    let name = NAMES
        .into_iter()
        .find(|name| *name == view.reference)
        .unwrap();
    let old = model.names[name];
    if purge {
        assert!(block_on(world.timers.purge(&world.partition, &view.id)).unwrap());
        model.names.remove(name);
    } else {
        let made = block_on(world.timers.requeue(&world.partition, &view.id)).unwrap();
        let left = requeued(model, old);
        note(model, name, left, made.unwrap());
    }
}

/// A move of the engine, 7 s from now.
fn engine(world: &World, model: &mut Model, name: &'static str, state: TimerState) {
    let next_ms = model.now_ms + 7_000;
    let Some(record) = model.names.get_mut(name) else {
        return;
    };
    // A release only follows a claim, and the dead move no more.
    let released = state == TimerState::Pending;
    if record.state == TimerState::Dead || (released && record.attempt > 0) {
        return;
    }
    if record.state == state && record.next_ms == next_ms {
        return;
    }
    world.write(move_batch(
        &world.memory,
        &world.partition,
        name,
        state,
        next_ms,
    ));
    record.state = state;
    record.next_ms = next_ms;
    record.attempt = match state {
        TimerState::Pending => record.attempt,
        TimerState::Retrying | TimerState::Claimed => record.attempt + 1,
        TimerState::Dead => 20,
    };
}

fn run(world: &World, model: &mut Model, name: &'static str, action: Action) {
    match action {
        Action::Schedule(policy, due_ms) => schedule(world, model, name, policy, due_ms),
        Action::ScheduleIfMatch { due_ms, right } => {
            schedule_if_match(world, model, name, due_ms, right);
        }
        Action::Many(asked) => schedule_many(world, model, asked),
        Action::Cancel => cancel(world, model, name),
        Action::Reschedule(due_ms) => change(world, model, name, Some(due_ms)),
        Action::NewPayload => change(world, model, name, None),
        Action::FireNow => fire_now(world, model, name),
        Action::Requeue => first_dead(world, model, false),
        Action::Purge => first_dead(world, model, true),
        Action::Engine(state) => engine(world, model, name, state),
        Action::Advance(by_ms) => {
            world.clock.advance_ms(by_ms);
            model.now_ms += by_ms;
        }
    }
}

/// Everything there is, read in three ways, is what the model holds.
fn compare(world: &World, model: &Model) {
    world.check();
    for name in NAMES {
        let found = world.get(name).map(|view| Record {
            state: view.state,
            asked_ms: view.due_at_ms,
            next_ms: view.next_at_ms,
            attempt: view.attempt,
            payload: String::from_utf8(view.payload.to_vec())
                .unwrap()
                .parse()
                .unwrap(),
            generation: view.generation,
        });
        assert_eq!(found.as_ref(), model.names.get(name), "{name}");
    }
    let rows = world.class_rows(class::TIMER).len() + world.class_rows(class::DEAD).len();
    assert_eq!(rows, model.names.len(), "a row that no name accounts for");
    let query = |prefix| ListQuery {
        prefix,
        ..ListQuery::new(KIND)
    };
    for prefix in [None, Some("".into())] {
        let page = block_on(world.timers.list(&world.partition, &query(prefix))).unwrap();
        assert_eq!(page.timers.len(), model.names.len());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(256) })]

    #[test]
    fn random_verbs_and_moves_leave_what_the_model_says(
        actions in prop::collection::vec((prop::sample::select(&NAMES[..]), action()), 1..60),
    ) {
        let world = World::new();
        let mut model = Model { now_ms: super::fixture::NOW_MS, ..Model::default() };
        for (name, action) in actions {
            run(&world, &mut model, name, action);
            compare(&world, &model);
        }
    }
}
