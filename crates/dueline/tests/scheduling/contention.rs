//! Other writers between a verb's reads and its commit, and keys that are taken.

use std::sync::Arc;

use dueline::rows::class;
use dueline::runtime::{Entropy, Runtime};
use dueline::store::{Group, NamespaceStore, Partition, WakeStore};
use dueline::timers::{Change, Policy, ScheduleOutcome, Timer, TimerError, TimerState, Timers};
use dueline_testkit::{ManualClock, block_on};

use super::fixture::{KIND, World, move_batch, reference_of};

/// A process whose random bits are always the same.
#[derive(Debug)]
struct Stuck;

impl Entropy for Stuck {
    fn next_u64(&self) -> u64 {
        7
    }
}

fn stuck_process(world: &World) -> Timers {
    let clock: &ManualClock = &world.clock;
    let runtime = Runtime::new(
        Arc::new(clock.clone()),
        Arc::new(clock.clone()),
        Arc::new(Stuck),
    );
    Timers::new(world.store.clone(), runtime)
}

#[test]
fn a_drawn_key_that_is_taken_is_drawn_again() {
    let world = World::new();
    let (one, other) = (stuck_process(&world), stuck_process(&world));
    let timer = Timer::new(KIND, "a").due_at(50_000);
    let mut generations = Vec::new();
    for timers in [&one, &one, &one, &other, &other] {
        let made = block_on(timers.schedule(&world.partition, timer.clone(), Policy::Replace));
        generations.push(made.unwrap().generation);
    }
    generations.sort_unstable();
    generations.dedup();
    assert_eq!(generations.len(), 5, "two timers share a generation");
    assert_eq!(
        world.class_rows(class::TIMER).len(),
        5,
        "one was overwritten"
    );
}

#[test]
fn a_replacement_never_takes_the_generation_of_what_it_replaces() {
    let world = World::new();
    let (one, other) = (stuck_process(&world), stuck_process(&world));
    let timer = |due_ms| Timer::new(KIND, "a").due_at(due_ms).named();
    let first = block_on(one.schedule(&world.partition, timer(50_000), Policy::Replace)).unwrap();
    // The other process draws the same generation for another due: no key collides.
    let second =
        block_on(other.schedule_if_match(&world.partition, timer(60_000), first.generation));
    assert_ne!(second.unwrap().generation, first.generation);
    world.check();
}

#[test]
fn draws_that_collide_for_ever_end_as_contended() {
    let world = World::new();
    for generation in 0..80 {
        let first = (super::fixture::NOW_MS << 20) + generation;
        let key = dueline::rows::TimerKey {
            kind: KIND,
            due_ms: 50_000,
            generation: first,
            reference: reference_of("a"),
        };
        let row = dueline::rows::TimerRow::default();
        world.write(dueline::store::Batch::new().put(key.encode(), row.encode()));
    }
    let before = world.rows();
    let timer = Timer::new(KIND, "a").due_at(50_000).named();
    let answer = block_on(stuck_process(&world).schedule(&world.partition, timer, Policy::Replace));
    assert!(matches!(answer, Err(TimerError::Contended)));
    assert_eq!(world.rows(), before);
}

/// What the engine might do just before a commit: move the timer to another due.
fn race_with_moves(world: &World, commits: u64) {
    for nth in 1..=commits {
        let memory = world.memory.clone();
        let race = move |store: &dyn WakeStore, partition: &Partition, _: &Group| {
            let batch = move_batch(&memory, partition, "a", TimerState::Retrying, 50_000 + nth);
            let outcome = block_on(NamespaceStore::apply(store, partition, batch)).unwrap();
            assert!(outcome.is_committed());
        };
        world.store.before_commit(nth, race);
    }
}

/// One verb on the timer `a`; returns whether it was contended.
type Verb = fn(&World) -> Result<(), TimerError>;

const VERBS: [(&str, Verb); 6] = [
    ("replace", |world| {
        let timer = Timer::new(KIND, "a").due_at(80_000).named();
        let done = world
            .timers
            .schedule(&world.partition, timer, Policy::Replace);
        block_on(done).map(|_| ())
    }),
    ("kick", |world| {
        let timer = Timer::new(KIND, "a").due_at(80_000).named();
        let done = world
            .timers
            .schedule(&world.partition, timer, Policy::KeepEarliest);
        block_on(done).map(|_| ())
    }),
    ("cancel", |world| {
        let reference = reference_of("a");
        let done = world
            .timers
            .cancel(&world.partition, KIND, &reference, None);
        block_on(done).map(|done| assert!(done.is_some(), "never not found because of a move"))
    }),
    ("update", |world| {
        let change = Change {
            payload: Some("new".into()),
            ..Change::default()
        };
        let reference = reference_of("a");
        block_on(
            world
                .timers
                .update(&world.partition, KIND, &reference, change, None),
        )
        .map(|_| ())
    }),
    ("reschedule", |world| {
        let reference = reference_of("a");
        let done = world
            .timers
            .reschedule(&world.partition, KIND, &reference, 80_000, None);
        block_on(done).map(|_| ())
    }),
    ("fire now", |world| {
        block_on(
            world
                .timers
                .fire_now(&world.partition, KIND, &reference_of("a")),
        )
        .map(|_| ())
    }),
];

#[test]
fn each_verb_starts_over_when_the_timer_moves_before_its_commit() {
    for (name, verb) in VERBS {
        let world = World::new();
        world.put_in_state("a", TimerState::Pending, 50_000);
        race_with_moves(&world, 5);
        verb(&world).unwrap_or_else(|error| panic!("{name}: {error}"));
        world.check();
    }
}

#[test]
fn each_verb_is_contended_after_eight_lost_guards_and_has_written_nothing() {
    for (name, verb) in VERBS {
        let world = World::new();
        let generation = world.put_in_state("a", TimerState::Pending, 50_000);
        race_with_moves(&world, 30);
        let before = world.store.counts();
        assert!(matches!(verb(&world), Err(TimerError::Contended)), "{name}");
        let tried = (world.store.counts() - before).applies;
        assert_eq!(tried, 8, "{name}");
        assert_eq!(world.get("a").unwrap().generation, generation, "{name}");
        world.check();
    }
}

#[test]
fn a_name_whose_row_has_just_moved_is_read_again_and_found() {
    let world = World::new();
    world.put_in_state("a", TimerState::Pending, 50_000);
    for nth in 1..=4 {
        // Between the read of the name and the read of the row: reads alternate.
        let memory = world.memory.clone();
        let partition = world.partition.clone();
        let mut reads = 0;
        world.store.fail_reads_with(move |_| {
            reads += 1;
            if reads % 2 == 0 && reads / 2 <= nth {
                let at_ms = 60_000 + reads;
                let batch = move_batch(&memory, &partition, "a", TimerState::Retrying, at_ms);
                let moved = block_on(NamespaceStore::apply(&*memory, &partition, batch)).unwrap();
                assert!(moved.is_committed());
            }
            None
        });
        let view = world.get("a").expect("it is there throughout");
        assert_eq!(view.state, TimerState::Retrying);
        world.store.heal();
    }
}

#[test]
fn a_name_that_always_moves_between_two_reads_is_contended_not_absent() {
    let world = World::new();
    world.put_in_state("a", TimerState::Pending, 50_000);
    let memory = world.memory.clone();
    let partition = world.partition.clone();
    let mut reads = 0;
    world.store.fail_reads_with(move |_| {
        reads += 1;
        if reads % 2 == 0 {
            let batch = move_batch(
                &memory,
                &partition,
                "a",
                TimerState::Retrying,
                60_000 + reads,
            );
            let moved = block_on(NamespaceStore::apply(&*memory, &partition, batch)).unwrap();
            assert!(moved.is_committed());
        }
        None
    });
    let answer = block_on(world.timers.get(&world.partition, KIND, &reference_of("a")));
    assert!(matches!(answer, Err(TimerError::Contended)));
}

#[test]
fn a_schedule_whose_answer_was_lost_can_be_sent_again_and_leaves_one_timer() {
    for policy in [Policy::Replace, Policy::KeepEarliest, Policy::IfAbsent] {
        for fault in [
            dueline_testkit::CommitFault::AnswerLost,
            dueline_testkit::CommitFault::NotWritten(dueline::store::StoreErrorKind::Unknown),
        ] {
            let world = World::new();
            let timer = Timer::new(KIND, "a").due_at(50_000).named();
            world.store.fail_commit(1, fault);
            let lost = block_on(
                world
                    .timers
                    .schedule(&world.partition, timer.clone(), policy),
            );
            assert!(matches!(lost, Err(TimerError::Store(_))));
            let again = block_on(world.timers.schedule(&world.partition, timer, policy)).unwrap();
            assert_eq!(again.state, TimerState::Pending);
            assert_eq!(world.class_rows(class::TIMER).len(), 1);
            world.check();
        }
    }
}

#[test]
fn a_name_that_vanishes_before_the_commit_is_created() {
    let world = World::new();
    world.put_in_state("a", TimerState::Pending, 50_000);
    // The second commit is the one planned from the lost guard.
    world.store.before_commit(2, |store, partition, _| {
        let name = dueline::rows::NameKey {
            kind: KIND,
            reference: reference_of("a"),
        };
        let value = block_on(store.get(partition, &name.encode()))
            .unwrap()
            .unwrap();
        let row = dueline::rows::NameRow::decode(&value).unwrap();
        let batch = dueline::store::Batch::new()
            .delete(name.encode())
            .delete(row.target(&name));
        assert!(
            block_on(store.apply(partition, batch))
                .unwrap()
                .is_committed()
        );
    });
    let made = world.schedule(Timer::new(KIND, "a").due_at(60_000).named());
    assert_eq!(made.outcome, ScheduleOutcome::Created);
    world.check();
}
