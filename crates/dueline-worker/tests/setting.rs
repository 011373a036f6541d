//! Goal: the alarm is set before the commit that needs it, for the heads of its own turn, never at the time
//! that is being served. Method: one object, its turns looked at one by one.
#![cfg(test)]

mod home;

use std::pin::pin;

use dueline::store::{Batch, NamespaceStore};
use dueline::timers::{Policy, Registration, TickBudget, Timer, TimerKind};
use dueline_worker::simulated::{AlarmEnd, StorageCall};
use dueline_worker::{ObjectOptions, Start};
use home::handlers::{Seen, notes};
use home::{A, Home, START_MS};

fn noting(seen: &Seen) -> [(TimerKind, Registration); 1] {
    [(A, Registration::inline(notes(seen)))]
}

#[test]
fn a_schedule_sets_the_alarm_in_the_turn_of_its_commit() {
    let home = Home::new();
    let driver = home.driver(noting(&Seen::default()));
    home.turns.borrow_mut().clear();
    home.schedule(&driver, A, "a", START_MS + 5_000);
    let turns = home.turns.borrow();
    assert_eq!(turns.len(), 1);
    assert_eq!(turns[0].commits.len(), 1);
    assert_eq!(turns[0].alarm_ms, Some(START_MS + 5_000));
    assert_eq!(home.alarm_ms(), Some(START_MS + 5_000));
}

#[test]
fn only_an_earlier_timer_moves_the_alarm() {
    let home = Home::new();
    let driver = home.driver(noting(&Seen::default()));
    home.schedule(&driver, A, "a", START_MS + 5_000);
    let before = home.storage().counts().alarm_writes;
    home.schedule(&driver, A, "later", START_MS + 9_000);
    home.schedule(&driver, A, "same", START_MS + 5_000);
    assert_eq!(home.storage().counts().alarm_writes, before);
    home.schedule(&driver, A, "earlier", START_MS + 4_000);
    assert_eq!(home.storage().counts().alarm_writes, before + 1);
    assert_eq!(home.alarm_ms(), Some(START_MS + 4_000));
}

#[test]
fn a_timer_that_is_due_sets_the_alarm_for_the_next_millisecond() {
    let home = Home::new();
    let driver = home.driver(noting(&Seen::default()));
    home.schedule(&driver, A, "a", START_MS - 500);
    assert_eq!(home.alarm_ms(), Some(START_MS + 1));
}

#[test]
fn an_alarm_that_is_refused_at_once_leaves_nothing_written() {
    let home = Home::new();
    let driver = home.driver(noting(&Seen::default()));
    home.fail(StorageCall::SetAlarm);
    let timer = Timer::new(A, "a").due_at(START_MS + 5_000).named();
    let refused = home.run(
        driver
            .timers()
            .schedule(&home.partition, timer, Policy::Replace),
    );
    assert!(refused.is_err());
    home.heal();
    assert!(home.pending(&driver).is_empty());
    // What needs no alarm is written all the same.
    let batch = Batch::new().put("row", "value");
    assert!(
        home.run(driver.store().apply(&home.partition, batch))
            .is_ok()
    );
}

#[test]
fn an_alarm_that_is_refused_later_makes_the_commit_unknown_and_the_next_entry_sets_it() {
    let home = Home::new();
    let driver = home.driver(noting(&Seen::default()));
    home.fail(StorageCall::ConfirmAlarm);
    let timer = Timer::new(A, "a").due_at(START_MS + 5_000);
    let plan = home
        .run(
            driver
                .timers()
                .plan(&home.partition, &timer, Policy::Replace),
        )
        .unwrap();
    let answer = home.run(driver.store().apply(&home.partition, plan.batch));
    assert_eq!(
        answer.unwrap_err().kind(),
        dueline::store::StoreErrorKind::Unknown
    );
    home.heal();
    assert_eq!(home.pending(&driver), ["a"]);
    home.restore(&driver);
    assert_eq!(home.alarm_ms(), Some(START_MS + 5_000));
}

#[test]
fn the_alarm_goes_to_the_next_head_when_its_handler_ends_and_away_when_there_is_none() {
    let home = Home::new();
    let seen = Seen::default();
    let driver = home.driver(noting(&seen));
    home.schedule(&driver, A, "a", START_MS + 1_000);
    home.schedule(&driver, A, "b", START_MS + 3_000);
    let report = home.next_alarm(&driver).unwrap();
    assert_eq!(report.total.fired, 1);
    assert_eq!(report.next_alarm_ms, Some(START_MS + 3_000));
    assert_eq!(home.alarm_ms(), Some(START_MS + 3_000));
    home.next_alarm(&driver).unwrap();
    assert_eq!(home.alarm_ms(), None);
    assert_eq!(seen.all(), ["a", "b"]);
}

#[test]
fn a_cancelled_timers_alarm_finds_nothing_and_moves_on() {
    let home = Home::new();
    let driver = home.driver(noting(&Seen::default()));
    home.schedule(&driver, A, "a", START_MS + 1_000);
    home.schedule(&driver, A, "b", START_MS + 3_000);
    let timers = driver.timers();
    home.run(timers.cancel(&home.partition, A, &"a".into(), None))
        .unwrap();
    let report = home.next_alarm(&driver).unwrap();
    assert_eq!(report.total.progressed(), 0);
    assert_eq!(home.alarm_ms(), Some(START_MS + 3_000));
}

#[test]
fn a_request_between_any_two_turns_of_an_alarm_is_not_forgotten() {
    for at_turn in 0..6 {
        let home = Home::new();
        let seen = Seen::default();
        let driver = home.driver(noting(&seen));
        home.schedule(&driver, A, "a", START_MS + 1_000);
        home.schedule(&driver, A, "z", START_MS + 90_000);
        let info = home.begin_alarm();
        {
            let mut alarm = pin!(driver.on_alarm(info));
            for turn in 0.. {
                if turn == at_turn {
                    home.schedule(&driver, A, "b", START_MS + 2_000);
                }
                if home.turn(alarm.as_mut()).is_ready() {
                    break;
                }
            }
        }
        home.end_alarm(AlarmEnd::Well);
        if home.pending(&driver).contains(&"b".to_owned()) {
            assert_eq!(home.alarm_ms(), Some(START_MS + 2_000), "turn {at_turn}");
        }
    }
}

#[test]
fn what_a_budget_leaves_is_never_set_for_the_time_that_is_served() {
    let home = Home::new();
    let seen = Seen::default();
    let budget = TickBudget {
        max_fired: 1,
        ..TickBudget::default()
    };
    let options = ObjectOptions {
        budget,
        drain_ticks_max: 1,
        ..ObjectOptions::default()
    };
    let driver = home.open(noting(&seen), Start::Fresh, options);
    for reference in ["a", "b", "c"] {
        home.schedule(&driver, A, reference, START_MS + 1_000);
    }
    let mut served = Vec::new();
    while let Some(at_ms) = home.alarm_ms() {
        served.push(at_ms - START_MS);
        let report = home.next_alarm(&driver).unwrap();
        assert!(report.total.fired <= 1);
    }
    assert_eq!(served[..3], [1_000, 1_001, 1_002]);
    assert_eq!(seen.all(), ["a", "b", "c"]);
}
