//! Goal: a deployment that lacks a kind leaves its timers alone, and the one that has it again finds them
//! within an hour by itself. Method: one object under a moved clock, its drivers with and without the kind.
#![cfg(test)]

mod home;

use dueline::timers::{Registration, TimerKind};
use dueline_worker::simulated::{AlarmEnd, StorageCall};
use dueline_worker::{AlarmError, ObjectDriver, Restored};
use home::handlers::{Seen, notes};
use home::{A, B, Home, START_MS};

const HOUR_MS: u64 = 3_600_000;

fn knows(home: &Home, kinds: &[TimerKind], seen: &Seen) -> ObjectDriver {
    let registered = kinds
        .iter()
        .map(|kind| (*kind, Registration::inline(notes(seen))));
    home.driver(registered)
}

/// A timer of a kind whose handler is gone since.
fn left_behind(home: &Home, due_ms: u64) -> ObjectDriver {
    let before = knows(home, &[A, B], &Seen::default());
    home.schedule(&before, B, "unknown", due_ms);
    knows(home, &[A], &Seen::default())
}

#[test]
fn an_idle_object_is_woken_every_hour_until_a_deployment_knows_the_kind_again() {
    let home = Home::new();
    let driver = left_behind(&home, START_MS + 1_000);
    for hour in 1..=3 {
        let report = home.next_alarm(&driver).unwrap();
        let next_ms = START_MS + 1_000 + hour * HOUR_MS;
        assert_eq!((report.ticks, report.next_alarm_ms), (0, Some(next_ms)));
        assert_eq!(home.alarm_ms(), Some(next_ms));
        assert_eq!(home.pending(&driver), ["unknown"]);
    }
    // No request comes: the alarm makes the instance of the repaired deployment.
    let seen = Seen::default();
    let info = home.begin_alarm();
    let repaired = knows(&home, &[A, B], &seen);
    home.run(repaired.on_alarm(info)).unwrap();
    home.end_alarm(AlarmEnd::Well);
    assert_eq!(seen.all(), ["unknown"]);
    assert_eq!(home.now_ms(), START_MS + 1_000 + 3 * HOUR_MS);
    assert_eq!(home.alarm_ms(), None);
}

#[test]
fn one_that_is_due_later_than_in_an_hour_has_its_alarm_then() {
    let home = Home::new();
    let due_ms = START_MS + 5 * HOUR_MS;
    let driver = left_behind(&home, due_ms);
    home.schedule(&driver, A, "a", START_MS + 1_000);
    assert_eq!(
        home.next_alarm(&driver).unwrap().next_alarm_ms,
        Some(due_ms)
    );
    let report = home.next_alarm(&driver).unwrap();
    assert_eq!(report.next_alarm_ms, Some(due_ms + HOUR_MS));
}

#[test]
fn known_kinds_have_their_alarms_as_if_the_others_were_not_there() {
    let home = Home::new();
    let driver = left_behind(&home, START_MS + 500);
    home.schedule(&driver, A, "soon", START_MS + 2_000);
    home.schedule(&driver, A, "in half an hour", START_MS + HOUR_MS / 2);
    home.schedule(&driver, A, "in three hours", START_MS + 3 * HOUR_MS);
    let mut alarms = Vec::new();
    for _ in 0..5 {
        home.next_alarm(&driver).unwrap();
        alarms.push(home.alarm_ms().unwrap() - START_MS);
    }
    let half_ms = HOUR_MS / 2;
    let expected = [
        2_000,
        half_ms,
        half_ms + HOUR_MS,
        half_ms + 2 * HOUR_MS,
        3 * HOUR_MS,
    ];
    assert_eq!(alarms, expected);
}

#[test]
fn whoever_enters_sets_a_missing_alarm_for_it_and_never_puts_one_off() {
    let home = Home::new();
    let driver = left_behind(&home, START_MS + 1_000);
    assert!(home.object.borrow_mut().lose_alarm());
    home.clock.advance_ms(10_000);
    let at_ms = home.now_ms() + HOUR_MS;
    assert_eq!(home.restore(&driver), Restored::Set { at_ms });
    for minutes in [10, 20, 25] {
        home.clock.advance_ms(minutes * 60_000);
        assert_eq!(home.restore(&driver), Restored::Sound);
        let _newer = knows(&home, &[A], &Seen::default());
        assert_eq!(home.alarm_ms(), Some(at_ms), "behind {minutes} minutes");
    }
}

#[test]
fn a_put_that_replaces_an_alarm_of_which_nothing_is_known_keeps_the_hour() {
    for kind in [A, B] {
        let home = Home::new();
        let driver = left_behind(&home, START_MS + 1_000);
        home.fail(StorageCall::SetAlarm);
        home.next_alarm(&driver).unwrap_err();
        home.heal();
        home.schedule(&driver, kind, "far", home.now_ms() + 9 * HOUR_MS);
        let at_ms = home.storage().alarm_ms();
        assert_eq!(at_ms, Some(home.now_ms() + HOUR_MS), "{kind}");
    }
}

#[test]
fn an_alarm_that_cannot_be_set_for_it_is_thrown() {
    let home = Home::new();
    let driver = left_behind(&home, START_MS + 1_000);
    home.fail(StorageCall::SetAlarm);
    assert!(matches!(
        home.next_alarm(&driver),
        Err(AlarmError::Alarm(_))
    ));
    home.heal();
    // The platform's retry finds the storage well.
    home.next_alarm(&driver).unwrap();
    assert_eq!(home.alarm_ms(), Some(home.now_ms() + HOUR_MS));
}
