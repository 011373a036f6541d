//! Goal: many timers are scheduled by one commit, all of them or none, whatever is refused. Method: one object, its
//! turns and rows looked at behind each call, under each way to be refused.
#![cfg(test)]

mod home;

use dueline::sql::SizeLimit;
use dueline::store::{Batch, StoreErrorKind};
use dueline::timers::{
    Asked, Policy, Refused, Registration, ScheduleOutcome, Scheduled, Timer, TimerError, TimerState,
};
use dueline_worker::simulated::StorageCall;
use dueline_worker::{ObjectDriver, ObjectOptions, Start};
use home::handlers::{Seen, notes};
use home::{A, Home, START_MS};

fn opened(home: &Home, options: ObjectOptions) -> ObjectDriver {
    let kinds = [(A, Registration::inline(notes(&Seen::default())))];
    let driver = home.open(kinds, Start::Fresh, options);
    home.schedule(&driver, A, "there", START_MS + 50_000);
    driver
}

fn asked(timer: Timer, policy: Policy) -> Asked {
    Asked {
        timer,
        policy,
        if_match: None,
    }
}

fn named(reference: &'static str, due_ms: u64) -> Asked {
    let timer = Timer::new(A, reference).due_at(due_ms).named();
    asked(timer, Policy::Replace)
}

fn anonymous(due_ms: u64) -> Asked {
    asked(Timer::new(A, "").due_at(due_ms), Policy::Replace)
}

fn schedule(home: &Home, driver: &ObjectDriver, all: &[Asked]) -> Result<Vec<Scheduled>, Refused> {
    home.run(driver.schedule_all(&home.partition, all))
}

fn kind_of(refused: &Refused) -> Option<StoreErrorKind> {
    match &refused.error {
        TimerError::Store(error) => Some(error.kind()),
        _ => None,
    }
}

#[test]
fn all_are_there_behind_one_turn_and_one_write_of_the_alarm() {
    let home = Home::new();
    let driver = opened(&home, ObjectOptions::default());
    let before = home.storage().counts();
    home.turns.borrow_mut().clear();
    let all: Vec<Asked> = (0..1_000)
        .map(|number| anonymous(START_MS + 40_000 - number))
        .collect();
    let done = schedule(&home, &driver, &all).unwrap();
    let dues = done.iter().map(|scheduled| scheduled.due_at_ms);
    assert!(dues.eq((0..1_000).map(|number| START_MS + 40_000 - number)));
    let after = home.storage().counts();
    let turns = home.turns.borrow();
    assert_eq!((turns.len(), turns[0].commits.len()), (1, 1_000));
    assert_eq!(after.alarm_writes - before.alarm_writes, 1);
    assert_eq!(home.alarm_ms(), Some(START_MS + 39_001));
    // A row for each, and the wake that is moved to the earliest.
    assert_eq!(after.rows_written - before.rows_written, 1_001);
    drop(turns);
    assert_eq!(home.pending(&driver).len(), 1_000, "a page of them");
}

#[test]
fn each_meets_its_name_as_its_policy_says() {
    let home = Home::new();
    let driver = opened(&home, ObjectOptions::default());
    home.schedule(&driver, A, "kept", START_MS + 60_000);
    home.schedule(&driver, A, "kicked", START_MS + 70_000);
    let known = home
        .run(driver.timers().get(&home.partition, A, &"there".into()))
        .unwrap()
        .unwrap();
    let mut matched = named("there", START_MS + 80_000);
    matched.if_match = Some(known.generation);
    let kicked = Timer::new(A, "kicked").due_at(START_MS + 90_000).named();
    let kept = Timer::new(A, "kept").due_at(START_MS + 10_000).named();
    let all = [
        asked(kept, Policy::IfAbsent),
        anonymous(START_MS + 55_000),
        asked(kicked, Policy::KeepEarliest),
        named("new", START_MS + 56_000),
        matched,
    ];
    let done = schedule(&home, &driver, &all).unwrap();
    let seen: Vec<(ScheduleOutcome, u64, TimerState)> = done
        .iter()
        .map(|one| (one.outcome, one.due_at_ms - START_MS, one.state))
        .collect();
    let pending = TimerState::Pending;
    assert_eq!(
        seen,
        [
            (ScheduleOutcome::Kept, 60_000, pending),
            (ScheduleOutcome::Created, 55_000, pending),
            (ScheduleOutcome::Replaced, 70_000, pending),
            (ScheduleOutcome::Created, 56_000, pending),
            (ScheduleOutcome::Replaced, 80_000, pending),
        ]
    );
    assert_eq!(
        home.pending(&driver),
        ["", "new", "kept", "kicked", "there"]
    );
    assert_ne!(done[4].generation, known.generation);
    assert!(schedule(&home, &driver, &[]).unwrap().is_empty());
}

#[test]
fn one_that_is_refused_leaves_nothing_of_the_others_and_the_alarm_as_it_was() {
    let home = Home::new();
    let driver = opened(&home, ObjectOptions::default());
    let mut stale = named("there", START_MS + 1_000);
    stale.if_match = Some(1);
    let mut absent = named("absent", START_MS + 1_000);
    absent.if_match = Some(1);
    let before = home.storage().counts();
    for one in [stale, absent.clone()] {
        let all = [
            anonymous(START_MS + 1_000),
            named("n", START_MS + 2_000),
            one,
        ];
        let refused = schedule(&home, &driver, &all).unwrap_err();
        assert_eq!(refused.index, Some(2));
        match refused.error {
            TimerError::GenerationMismatch { .. } => {}
            TimerError::NotFound => assert_eq!(all[2].timer, absent.timer),
            other => panic!("{other}"),
        }
    }
    let payload = Timer::new(A, "").payload(vec![0; 480 * 1_024 + 1]);
    let all = [named("n", START_MS), asked(payload, Policy::Replace)];
    assert_eq!(schedule(&home, &driver, &all).unwrap_err().index, Some(1));
    let after = home.storage().counts();
    assert_eq!(after.rows_written, before.rows_written);
    assert_eq!(after.alarm_writes, before.alarm_writes);
    assert_eq!(home.pending(&driver), ["there"]);
}

#[test]
fn two_of_one_name_are_none() {
    let home = Home::new();
    let driver = opened(&home, ObjectOptions::default());
    for name in ["new", "there"] {
        let all = [
            anonymous(START_MS + 60_000),
            named(name, START_MS + 60_000),
            named(name, START_MS + 70_000),
        ];
        let refused = schedule(&home, &driver, &all).unwrap_err();
        assert_eq!(refused.index, None);
        assert_eq!(kind_of(&refused), Some(StoreErrorKind::Unavailable));
        assert_eq!(home.pending(&driver), ["there"], "{name}");
    }
}

#[test]
fn a_database_that_fills_up_in_between_takes_none() {
    let home = Home::new();
    let limit = SizeLimit::new(1_024 * 1_024).with_reserve(0);
    let driver = opened(
        &home,
        ObjectOptions {
            size_limit: Some(limit),
            ..ObjectOptions::default()
        },
    );
    let large = |number: u64| {
        let timer = Timer::new(A, "").due_at(START_MS + 60_000 + number);
        asked(timer.payload(vec![7; 32 * 1_024]), Policy::Replace)
    };
    let all: Vec<Asked> = (0..64).map(large).collect();
    let refused = schedule(&home, &driver, &all).unwrap_err();
    assert_eq!(
        (refused.index, kind_of(&refused)),
        (None, Some(StoreErrorKind::Full))
    );
    assert_eq!(home.pending(&driver), ["there"]);
    assert!(schedule(&home, &driver, &all[..4]).is_ok());
}

#[test]
fn what_the_storage_refuses_is_none_and_what_it_refuses_later_is_not_known() {
    for call in [
        StorageCall::Read,
        StorageCall::Transaction,
        StorageCall::SetAlarm,
    ] {
        let home = Home::new();
        let driver = opened(&home, ObjectOptions::default());
        home.fail(call);
        let all = [named("a", START_MS + 1_000), anonymous(START_MS + 2_000)];
        let refused = schedule(&home, &driver, &all).unwrap_err();
        assert_eq!(
            kind_of(&refused),
            Some(StoreErrorKind::Unavailable),
            "{call:?}"
        );
        home.heal();
        assert_eq!(home.pending(&driver), ["there"], "{call:?}");
    }
    let home = Home::new();
    let driver = opened(&home, ObjectOptions::default());
    home.fail(StorageCall::ConfirmAlarm);
    let all = [named("a", START_MS + 1_000), anonymous(START_MS + 2_000)];
    let refused = schedule(&home, &driver, &all).unwrap_err();
    assert_eq!(
        (refused.index, kind_of(&refused)),
        (None, Some(StoreErrorKind::Unknown))
    );
    home.heal();
    assert_eq!(home.pending(&driver), ["a", "", "there"]);
}

#[test]
fn batches_of_ones_own_are_whole_too() {
    let home = Home::new();
    let driver = opened(&home, ObjectOptions::default());
    let batch = |key: &'static str| Batch::new().require_absent(key).put(key, "value");
    let store = driver.store();
    let lost =
        home.run(store.apply_whole(&home.partition, vec![batch("a"), batch("b"), batch("a")]));
    assert_eq!(lost.committed(), 0);
    assert_eq!(lost.stopped_by.unwrap().kind(), StoreErrorKind::Unavailable);
    let done = home.run(store.apply_whole(&home.partition, vec![batch("a"), batch("b")]));
    assert_eq!((done.committed(), done.stopped_by.is_none()), (2, true));
}
