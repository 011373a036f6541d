//! Goal: whoever enters the object finds its alarm set, or sets it. Method: the platform loses it, gives it
//! up, or it was set for a later time; then a constructor or a request looks.
#![cfg(test)]

mod home;

use dueline::timers::Registration;
use dueline_worker::simulated::{AlarmEnd, Delivery, RETRIES_MAX, StorageCall};
use dueline_worker::{AlarmError, AlarmInfo, ObjectOptions, ObjectStorage, Restored, Start};
use home::handlers::{Seen, notes};
use home::{A, Home, START_MS};

fn noting(seen: &Seen) -> [(dueline::timers::TimerKind, Registration); 1] {
    [(A, Registration::inline(notes(seen)))]
}

/// Takes the alarm away behind the driver's back.
fn take_away(home: &Home) {
    home.run(home.storage().delete_alarm().unwrap()).unwrap();
    home.end_turn();
    assert_eq!(home.alarm_ms(), None);
}

#[test]
fn a_missing_alarm_is_set_again_by_a_request_and_by_a_constructor() {
    let home = Home::new();
    let seen = Seen::default();
    let driver = home.driver(noting(&seen));
    home.schedule(&driver, A, "a", START_MS + 1_000);
    let set = Restored::Set {
        at_ms: START_MS + 1_000,
    };
    take_away(&home);
    assert_eq!(home.restore(&driver), set);
    assert_eq!(home.alarm_ms(), Some(START_MS + 1_000));
    take_away(&home);
    let newer = home.open(noting(&seen), Start::Fresh, ObjectOptions::default());
    assert_eq!(home.alarm_ms(), None);
    assert_eq!(home.restore(&newer), set);
    assert_eq!(home.alarm_ms(), Some(START_MS + 1_000));
}

#[test]
fn an_alarm_that_is_too_late_is_set_earlier() {
    let home = Home::new();
    let driver = home.driver(noting(&Seen::default()));
    home.schedule(&driver, A, "a", START_MS + 1_000);
    home.run(home.storage().set_alarm(START_MS + 8_000).unwrap())
        .unwrap();
    home.end_turn();
    home.restore(&driver);
    assert_eq!(home.alarm_ms(), Some(START_MS + 1_000));
}

#[test]
fn an_alarm_the_platform_has_forgotten_is_noticed_once_it_is_over() {
    let home = Home::new();
    let driver = home.driver(noting(&Seen::default()));
    home.schedule(&driver, A, "a", START_MS + 1_000);
    assert!(home.object.borrow_mut().lose_alarm());
    home.clock.advance_ms(2_000);
    assert_eq!(home.restore(&driver), Restored::Sound);
    home.clock.advance_ms(1);
    assert!(matches!(home.restore(&driver), Restored::Set { .. }));
    assert_eq!(home.next_alarm(&driver).unwrap().total.fired, 1);
}

/// The next timer is put without a look at the alarm before.
#[test]
fn an_alarm_that_was_lost_is_not_taken_for_that_of_the_next_timer() {
    let home = Home::new();
    let driver = home.driver(noting(&Seen::default()));
    home.schedule(&driver, A, "a", START_MS + 1_000);
    assert!(home.object.borrow_mut().lose_alarm());
    home.clock.advance_ms(2_001);
    home.schedule(&driver, A, "b", START_MS + 9_000);
    // At once: what waited for the one that was lost is overdue.
    assert_eq!(home.alarm_ms(), Some(START_MS + 2_002));
    assert_eq!(home.next_alarm(&driver).unwrap().total.fired, 1);
    assert_eq!(home.alarm_ms(), Some(START_MS + 9_000));
}

/// Found while nothing was pending; a clock that is set back makes it look as if it were to come.
#[test]
fn an_alarm_that_was_lost_while_nothing_was_pending_is_none_of_the_next_timer() {
    let home = Home::new();
    let driver = home.driver(noting(&Seen::default()));
    // An instance before this one has left it.
    home.run(home.storage().set_alarm(START_MS + 1_000).unwrap())
        .unwrap();
    home.end_turn();
    assert!(home.object.borrow_mut().lose_alarm());
    home.clock.advance_ms(2_001);
    assert_eq!(home.restore(&driver), Restored::Sound);
    home.clock.jump_wall_ms(-1_500);
    home.schedule(&driver, A, "a", START_MS + 9_000);
    assert_eq!(home.alarm_ms(), Some(START_MS + 9_000));
}

#[test]
fn nothing_is_set_where_nothing_is_pending() {
    let home = Home::new();
    let driver = home.driver(noting(&Seen::default()));
    assert_eq!(home.restore(&driver), Restored::Sound);
    assert_eq!(home.storage().counts().alarm_writes, 0);
}

#[test]
fn a_sound_alarm_costs_one_read_of_it_and_no_row() {
    let home = Home::new();
    let driver = home.driver(noting(&Seen::default()));
    home.schedule(&driver, A, "a", START_MS + 1_000);
    let before = home.storage().counts();
    assert_eq!(home.run(driver.restore()).unwrap(), Restored::Sound);
    let after = home.storage().counts();
    assert_eq!(after.alarm_reads, before.alarm_reads + 1);
    assert_eq!(after.rows_read, before.rows_read);
    assert_eq!(after.alarm_writes, before.alarm_writes);
}

#[test]
fn only_an_alarm_that_is_known_and_will_come_needs_no_closer_look() {
    let home = Home::new();
    let driver = home.driver(noting(&Seen::default()));
    assert!(
        !driver.is_alarm_sound(None),
        "nothing is known to be pending"
    );
    let at_ms = START_MS + 1_000;
    home.schedule(&driver, A, "a", at_ms);
    assert!(driver.is_alarm_sound(Some(at_ms)));
    for other in [None, Some(at_ms - 1), Some(at_ms + 1)] {
        assert!(!driver.is_alarm_sound(other), "{other:?}");
    }
    home.clock.advance_ms(2_001);
    assert!(!driver.is_alarm_sound(Some(at_ms)), "it is long over");
    assert_eq!(home.next_alarm(&driver).unwrap().total.fired, 1);
    assert!(!driver.is_alarm_sound(Some(at_ms)), "it was served");
}

#[test]
fn an_alarm_whose_end_cannot_be_written_is_thrown_given_up_and_restored() {
    let home = Home::new();
    let seen = Seen::default();
    let driver = home.driver(noting(&seen));
    home.schedule(&driver, A, "a", START_MS + 1_000);
    home.schedule(&driver, A, "b", START_MS + 500_000);
    home.fail(StorageCall::SetAlarm);
    for _ in 0..=RETRIES_MAX {
        let thrown = home.next_alarm(&driver);
        assert!(matches!(thrown, Err(AlarmError::Alarm(_))), "{thrown:?}");
    }
    // What was due has run nevertheless, once.
    assert_eq!(seen.all(), ["a"]);
    assert_eq!(home.alarm_ms(), None);
    assert!(home.run(driver.restore()).is_err());
    home.heal();
    assert!(matches!(home.restore(&driver), Restored::Set { .. }));
    assert_eq!(home.alarm_ms(), Some(START_MS + 500_000));
}

/// It was thrown once. The platform then held back the next timer until it had tried the alarm again, up to
/// minutes later, though nothing had waited for that.
#[test]
fn an_alarm_that_nothing_needs_and_that_cannot_be_deleted_is_not_thrown() {
    for refused in [StorageCall::SetAlarm, StorageCall::ConfirmAlarm] {
        let home = Home::new();
        let seen = Seen::default();
        let driver = home.driver(noting(&seen));
        home.schedule(&driver, A, "a", START_MS + 1_000);
        home.fail(refused);
        let report = home.next_alarm(&driver).unwrap();
        assert_eq!((report.total.fired, report.next_alarm_ms), (1, None));
        home.heal();
        assert!(!home.object.borrow().waits_for_retry());
        home.schedule(&driver, A, "b", START_MS + 1_500);
        assert_eq!(home.alarm_ms(), Some(START_MS + 1_500));
        assert_eq!(home.next_alarm(&driver).unwrap().total.fired, 1);
        assert_eq!(home.now_ms(), START_MS + 1_500);
        assert_eq!(seen.all(), ["a", "b"]);
    }
}

/// An alarm came early by the object's clock, and a request missed it before its handler had begun, and set it
/// again at its own time. Nothing was left to do, and it could not be deleted: it stayed stored, never to come.
#[test]
fn an_alarm_that_is_found_at_the_time_that_was_served_is_not_trusted() {
    let home = Home::new();
    let seen = Seen::default();
    let driver = home.driver(noting(&seen));
    home.schedule(&driver, A, "a", START_MS);
    assert!(matches!(
        home.object.borrow_mut().deliver(START_MS),
        Delivery::Run(_)
    ));
    let again = Restored::Set {
        at_ms: START_MS + 1,
    };
    assert_eq!(home.restore(&driver), again);
    home.fail(StorageCall::SetAlarm);
    let report = home.run(driver.on_alarm(AlarmInfo::default())).unwrap();
    assert_eq!(report.total.fired, 1);
    home.end_alarm(AlarmEnd::Well);
    home.heal();
    assert_eq!(home.restore(&driver), Restored::Sound);
    home.schedule(&driver, A, "b", START_MS);
    assert_eq!(home.next_alarm(&driver).unwrap().total.fired, 1);
    assert_eq!(seen.all(), ["a", "b"]);
}

#[test]
fn heads_that_cannot_be_read_are_thrown_and_the_retry_finds_them() {
    let home = Home::new();
    let seen = Seen::default();
    let driver = home.driver(noting(&seen));
    home.schedule(&driver, A, "a", START_MS + 1_000);
    home.fail(StorageCall::Read);
    let thrown = home.next_alarm(&driver);
    assert!(matches!(thrown, Err(AlarmError::Heads(_))), "{thrown:?}");
    home.heal();
    assert_eq!(home.next_alarm(&driver).unwrap().total.fired, 1);
    assert_eq!(home.alarm_ms(), None);
}

#[test]
fn a_request_beside_an_alarm_leaves_the_alarm_to_it() {
    let home = Home::new();
    let driver = home.driver(noting(&Seen::default()));
    home.schedule(&driver, A, "a", START_MS + 1_000);
    let info = home.begin_alarm();
    {
        let mut alarm = std::pin::pin!(driver.on_alarm(info));
        // Its first turn may be its last: the question is asked by whoever comes between.
        let ended = home.turn(alarm.as_mut()).is_ready();
        let restored = home.restore(&driver);
        assert!(ended || restored == Restored::Serving);
        if !ended {
            home.run(alarm).unwrap();
        }
    }
    home.end_alarm(AlarmEnd::Well);
    assert_eq!(home.alarm_ms(), None);
}
