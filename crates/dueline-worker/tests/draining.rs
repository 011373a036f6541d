//! Goal: an alarm that is behind goes on for some ticks, and neither starves what waits behind nor spins on what comes
//! due again and again. Method: one object with a small budget, alarm by alarm.
#![cfg(test)]

mod home;

use std::pin::pin;

use dueline::store::{Batch, Partition};
use dueline::timers::{DueTimer, Fired, Policy, Registration, TickBudget, Timer, TimerHandler};
use dueline_testkit::handler;
use dueline_worker::simulated::AlarmEnd;
use dueline_worker::{ObjectOptions, Start};
use home::handlers::{CallsFor, Seen, notes, reference_of};
use home::{A, B, Home, START_MS};

fn fires_at_most(max_fired: u32, drain_ticks_max: u32) -> ObjectOptions {
    ObjectOptions {
        budget: TickBudget {
            max_fired,
            ..TickBudget::default()
        },
        drain_ticks_max,
        ..ObjectOptions::default()
    }
}

#[test]
fn a_backlog_is_worked_off_in_a_few_ticks_of_an_alarm_with_requests_in_between() {
    let home = Home::new();
    let seen = Seen::default();
    let options = fires_at_most(2, 3);
    let driver = home.open(
        [(A, Registration::inline(notes(&seen)))],
        Start::Fresh,
        options,
    );
    let late = ["a", "b", "c", "d", "e", "f", "g", "h", "i"];
    for (reference, due_ms) in late.into_iter().zip(START_MS..) {
        home.schedule(&driver, A, reference, due_ms);
    }
    home.clock.advance_ms(1_000);
    let info = home.begin_alarm();
    let mut alarm = pin!(driver.on_alarm(info));
    // Behind each tick the platform has turns, in which a request is answered.
    for ticks in 1..3 {
        while home.clock.next_sleep_end().is_none() {
            assert!(home.turn(alarm.as_mut()).is_pending());
        }
        assert_eq!(seen.all(), late[..2 * ticks]);
        home.schedule(&driver, A, "later", START_MS + 60_000);
        home.clock.advance_ms(1);
    }
    let report = home.run(alarm).unwrap();
    assert_eq!((report.ticks, report.total.fired), (3, 6));
    assert!(report.stopped_on_budget);
    home.end_alarm(AlarmEnd::Well);
    let report = home.next_alarm(&driver).unwrap();
    assert_eq!((report.ticks, report.total.fired), (2, 3));
    assert_eq!(seen.all(), late);
    assert!(!report.stopped_on_budget);
    assert_eq!(home.alarm_ms(), Some(START_MS + 60_000));
}

/// A platform bounds what an alarm may take, whatever it does with it.
#[test]
fn slow_handlers_have_the_time_of_one_tick_in_an_alarm() {
    let home = Home::new();
    let clock = home.clock.clone();
    let slow = handler(move |_, _| {
        clock.advance_ms(40);
        Box::pin(async { Ok(Fired::Done(Batch::new())) })
    });
    let options = ObjectOptions {
        budget: TickBudget {
            max_fired: 1,
            max_elapsed_ms: 100,
            ..TickBudget::default()
        },
        ..ObjectOptions::default()
    };
    let driver = home.open([(A, Registration::inline(slow))], Start::Fresh, options);
    for reference in ["a", "b", "c", "d", "e"] {
        home.schedule(&driver, A, reference, START_MS + 1_000);
    }
    let report = home.next_alarm(&driver).unwrap();
    assert_eq!((report.ticks, report.total.fired), (3, 3));
    assert!(report.stopped_on_budget);
    let report = home.next_alarm(&driver).unwrap();
    assert_eq!((report.ticks, report.total.fired), (2, 2));
    assert_eq!(home.alarm_ms(), None);
}

/// Comes due again at once, for ever.
fn again(seen: &Seen) -> impl TimerHandler + 'static + use<> {
    let seen = seen.clone();
    handler(move |ctx, timer: &DueTimer| {
        seen.note(reference_of(timer));
        let again = Fired::Reschedule {
            due_at_ms: ctx.now_ms(),
            payload: timer.payload().clone(),
            batch: Batch::new(),
        };
        Box::pin(async { Ok(again) })
    })
}

#[test]
fn what_comes_due_again_at_once_neither_spins_nor_starves_others() {
    let home = Home::new();
    let (restless, seen) = (Seen::default(), Seen::default());
    let kinds = [
        (A, Registration::inline(again(&restless))),
        (B, Registration::inline(notes(&seen))),
    ];
    let driver = home.open(kinds, Start::Fresh, fires_at_most(2, 3));
    let other = Partition::new("other").unwrap();
    for reference in ["a", "b", "c"] {
        home.schedule(&driver, A, reference, START_MS + 1_000);
        let timer = Timer::new(B, reference).due_at(START_MS + 1_000);
        home.run(driver.timers().schedule(&other, timer, Policy::Replace))
            .unwrap();
    }
    for alarms in 1..=3 {
        let report = home.next_alarm(&driver).unwrap();
        assert!(report.ticks <= 3, "alarm {alarms}: {} ticks", report.ticks);
        assert!(restless.len() <= 6 * alarms);
    }
    assert_eq!(seen.all(), ["a", "b", "c"]);
    assert!(home.alarm_ms().is_some());
}

#[test]
fn a_backlog_is_worked_off_beside_a_call_that_takes_its_time() {
    let home = Home::new();
    let seen = Seen::default();
    let slow = CallsFor {
        ms: 5_000,
        runtime: home.runtime(),
        seen: seen.clone(),
    };
    let kinds = [
        (A, Registration::detached(slow)),
        (B, Registration::inline(notes(&seen))),
    ];
    let driver = home.open(kinds, Start::Fresh, fires_at_most(2, 3));
    home.schedule(&driver, A, "slow", START_MS + 1_000);
    let late: Vec<&str> = "a b c d e f g h i j k l m n o p q r s t"
        .split(' ')
        .collect();
    for (reference, due_ms) in late.iter().copied().zip(START_MS + 1_000..) {
        home.schedule(&driver, B, reference, due_ms);
    }
    home.clock.advance_ms(2_000);
    let report = home.next_alarm(&driver).unwrap();
    assert_eq!((report.total.fired, report.settled.fired), (20, 1));
    // The call goes out with the first tick, and its answer comes last.
    let wanted = [&["a", "call slow"], &late[1..], &["answer slow"]].concat();
    assert_eq!(seen.all(), wanted);
    assert_eq!(home.alarm_ms(), None);
}
