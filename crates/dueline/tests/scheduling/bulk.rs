//! Many timers in one call.

use dueline::Bytes;
use dueline::rows::class;
use dueline::store::{NamespaceStore, StoreErrorKind};
use dueline::timers::{Policy, ScheduleOutcome, Scheduled, Timer, TimerError, TimerState, Timers};
use dueline_testkit::{CommitFault, block_on};

use super::fixture::{KIND, World, move_batch};

fn schedule_many(
    world: &World,
    timers: Vec<(Timer, Policy)>,
) -> Vec<Result<Scheduled, TimerError>> {
    block_on(world.timers.schedule_many(&world.partition, timers))
}

fn named(number: u64) -> Timer {
    Timer::new(KIND, format!("n{number:04}"))
        .due_at(50_000 + number)
        .named()
}

fn all_new(count: u64) -> Vec<(Timer, Policy)> {
    (0..count)
        .map(|number| (named(number), Policy::Replace))
        .collect()
}

#[test]
fn no_timers_are_no_work() {
    let world = World::new();
    assert!(schedule_many(&world, Vec::new()).is_empty());
    assert_eq!(world.store.counts().commits(), 0);
}

#[test]
fn a_hundred_new_timers_share_one_commit() {
    let world = World::new();
    let answers = schedule_many(&world, all_new(100));
    assert_eq!(world.store.counts().commits(), 1);
    assert_eq!(
        world.store.counts().batches,
        4,
        "25 of four operations each"
    );
    for (number, answer) in answers.iter().enumerate() {
        let made = answer.as_ref().unwrap();
        assert_eq!(
            (made.due_at_ms, made.outcome),
            (50_000 + number as u64, ScheduleOutcome::Created)
        );
        let view = world.get(&format!("n{number:04}")).unwrap();
        assert_eq!(view.generation, made.generation);
    }
    world.check();
}

#[test]
fn a_thousand_replacements_share_few_commits_and_lose_no_guard() {
    let world = World::new();
    schedule_many(&world, all_new(1_000));
    let before = world.store.counts();
    let answers = schedule_many(&world, all_new(1_000));
    let cost = world.store.counts() - before;
    assert_eq!((cost.commits(), cost.applies), (4, 0));
    let replaced = |answer: &Result<Scheduled, _>| {
        answer
            .as_ref()
            .is_ok_and(|made| made.outcome == ScheduleOutcome::Replaced)
    };
    assert!(answers.iter().all(replaced));
    assert_eq!(world.class_rows(class::TIMER).len(), 1_000);
    world.check();
}

#[test]
fn each_timer_meets_its_name_as_its_policy_says_and_answers_stay_in_order() {
    let world = World::new();
    world.put_in_state("pending", TimerState::Pending, 60_000);
    world.put_in_state("retrying", TimerState::Retrying, 60_000);
    world.put_in_state("kept", TimerState::Claimed, 60_000);
    world.put_in_state("dead", TimerState::Dead, 9_000);
    let timer = |reference: &'static str| Timer::new(KIND, reference).due_at(50_000);
    let answers = schedule_many(
        &world,
        vec![
            (timer("new").named(), Policy::IfAbsent),
            (timer("pending").named(), Policy::KeepEarliest),
            (timer("too late").due_at(u64::MAX), Policy::Replace),
            (timer("retrying").named(), Policy::KeepEarliest),
            (timer("kept").named(), Policy::IfAbsent),
            (timer("dead").named(), Policy::Replace),
            (timer("anonymous"), Policy::IfAbsent),
        ],
    );
    let found: Vec<_> = answers
        .iter()
        .map(|answer| {
            answer
                .as_ref()
                .ok()
                .map(|made| (made.outcome, made.due_at_ms))
        })
        .collect();
    let expected = [
        Some((ScheduleOutcome::Created, 50_000)),
        Some((ScheduleOutcome::Replaced, 50_000)),
        None,
        Some((ScheduleOutcome::Replaced, 60_000)),
        Some((ScheduleOutcome::Kept, 60_000)),
        Some((ScheduleOutcome::Created, 50_000)),
        Some((ScheduleOutcome::Created, 50_000)),
    ];
    assert_eq!(found, expected);
    assert!(matches!(&answers[2], Err(TimerError::Invalid(_))));
    assert_eq!(world.class_rows(class::TIMER).len(), 6);
    assert_eq!(world.class_rows(class::DEAD).len(), 0);
    world.check();
}

#[test]
fn of_two_of_one_name_the_later_counts_and_the_earlier_leaves_no_row() {
    let world = World::new();
    let timer = |due_ms| Timer::new(KIND, "a").due_at(due_ms).named();
    let answers = schedule_many(
        &world,
        vec![
            (timer(50_000), Policy::Replace),
            (named(1), Policy::Replace),
            (timer(60_000), Policy::Replace),
            (timer(55_000), Policy::KeepEarliest),
            (timer(1), Policy::IfAbsent),
        ],
    );
    let outcomes: Vec<_> = answers
        .iter()
        .map(|answer| answer.as_ref().unwrap().outcome)
        .collect();
    use ScheduleOutcome::{Created, Kept, Replaced};
    assert_eq!(outcomes, [Created, Created, Replaced, Replaced, Kept]);
    assert_eq!(world.get("a").unwrap().due_at_ms, 55_000);
    assert_eq!(world.class_rows(class::TIMER).len(), 2);
    world.check();
}

#[test]
fn one_that_is_overtaken_goes_alone_and_holds_up_nobody() {
    let world = World::new();
    let rival = Timers::new(world.memory.clone(), world.timers.runtime().clone());
    world.store.before_commit(1, move |_, partition, _| {
        for number in [30, 99] {
            let timer = named(number).due_at(1);
            block_on(rival.schedule(partition, timer, Policy::Replace)).unwrap();
        }
    });
    let answers = schedule_many(&world, all_new(100));
    for (number, answer) in answers.iter().enumerate() {
        let made = answer.as_ref().unwrap();
        let overtaken = [30, 99].contains(&number);
        assert_eq!(
            made.outcome == ScheduleOutcome::Replaced,
            overtaken,
            "{number}"
        );
        assert_eq!(
            world.get(&format!("n{number:04}")).unwrap().due_at_ms,
            made.due_at_ms
        );
    }
    assert_eq!(world.class_rows(class::TIMER).len(), 100);
    world.check();
}

#[test]
fn a_kick_whose_row_moves_while_it_is_planned_is_planned_again() {
    let world = World::new();
    world.put_in_state("a", TimerState::Pending, 60_000);
    let (memory, partition) = (world.memory.clone(), world.partition.clone());
    let mut reads = 0;
    world.store.fail_reads_with(move |_| {
        reads += 1;
        if reads == 2 {
            let batch = move_batch(&memory, &partition, "a", TimerState::Retrying, 70_000);
            assert!(
                block_on(memory.apply(&partition, batch))
                    .unwrap()
                    .is_committed()
            );
        }
        None
    });
    let kick = Timer::new(KIND, "a").due_at(50_000).payload("new").named();
    let answer = schedule_many(&world, vec![(kick, Policy::KeepEarliest)])
        .remove(0)
        .unwrap();
    assert_eq!(
        (answer.state, answer.due_at_ms),
        (TimerState::Retrying, 70_000)
    );
    world.check();
}

#[test]
fn large_payloads_are_spread_over_batches() {
    let world = World::new();
    let payload = Bytes::from(vec![7; 400 * 1024]);
    let timers = (0..5).map(|number| (named(number).payload(payload.clone()), Policy::Replace));
    let answers = schedule_many(&world, timers.collect());
    assert!(answers.iter().all(Result::is_ok));
    let counts = world.store.counts();
    assert_eq!(
        (counts.commits(), counts.batches),
        (1, 3),
        "two of them fill a mebibyte"
    );
    world.check();
}

#[test]
fn many_large_payloads_are_spread_over_transactions() {
    let world = World::new();
    let payload = Bytes::from(vec![7; 256 * 1024]);
    let timers = (0..70).map(|number| (named(number).payload(payload.clone()), Policy::Replace));
    let answers = schedule_many(&world, timers.collect());
    assert!(answers.iter().all(Result::is_ok));
    assert_eq!(world.store.counts().commits(), 3, "8 MiB each");
    assert_eq!(world.class_rows(class::TIMER).len(), 70);
    world.check();
}

#[test]
fn an_error_of_the_store_is_answered_to_those_it_stopped() {
    let world = World::new();
    let fault = CommitFault::StoppedAfter {
        batches: 2,
        kind: StoreErrorKind::Unavailable,
    };
    world.store.fail_commit(1, fault);
    let answers = schedule_many(&world, all_new(100));
    for (number, answer) in answers.iter().enumerate() {
        let there = world.get(&format!("n{number:04}")).is_some();
        assert_eq!(answer.is_ok(), there, "{number}");
        assert_eq!(there, number < 50, "{number}");
        if let Err(error) = answer {
            let TimerError::Store(error) = error else {
                panic!("not the store's error: {error}");
            };
            assert_eq!(error.kind(), StoreErrorKind::Unavailable);
        }
    }
    world.check();
}

#[test]
fn an_unknown_outcome_is_answered_to_all_it_covers_and_can_be_sent_again() {
    let world = World::new();
    world.store.fail_commit(1, CommitFault::AnswerLost);
    let unknown = |answer: &Result<Scheduled, _>| matches!(answer, Err(TimerError::Store(_)));
    assert!(schedule_many(&world, all_new(40)).iter().all(unknown));
    let again = schedule_many(&world, all_new(40));
    assert!(again.iter().all(Result::is_ok));
    assert_eq!(world.class_rows(class::TIMER).len(), 40);
    world.check();
}

#[test]
fn names_that_cannot_be_read_are_answered_to_each() {
    let world = World::new();
    world.store.fail_read(1, StoreErrorKind::Unavailable);
    let answers = schedule_many(&world, all_new(3));
    assert!(
        answers
            .iter()
            .all(|answer| matches!(answer, Err(TimerError::Store(_))))
    );
    assert!(world.rows().is_empty());
}
