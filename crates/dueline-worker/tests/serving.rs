//! Goal: whatever a timer does, its alarm ends well; one budget serves all partitions; calls run within the
//! alarm and hold nothing up. Method: one object, alarm by alarm.
#![cfg(test)]

mod home;

use std::pin::pin;

use dueline::store::{NamespaceStore, Partition, ReadStore};
use dueline::timers::{Fired, HandlerError, Policy, Registration, TickBudget, Timer, TimerKind};
use dueline_testkit::handler;
use dueline_worker::simulated::{AlarmEnd, StorageCall};
use dueline_worker::{ObjectOptions, Start};
use home::handlers::{CallsFor, Seen, fails, notes, reference_of};
use home::{A, B, Home, START_MS};

fn calls_for(home: &Home, seen: &Seen, ms: u64) -> Registration {
    Registration::detached(CallsFor {
        ms,
        runtime: home.runtime(),
        seen: seen.clone(),
    })
}

#[test]
fn whatever_a_timer_does_its_alarm_ends_well() {
    let home = Home::new();
    let seen = Seen::default();
    let bad = handler(|_, timer| {
        let reference = reference_of(timer);
        Box::pin(async move {
            match reference.as_str() {
                "error" => Err(HandlerError::new("it fails")),
                "hangs" => std::future::pending().await,
                "guard" => Ok(Fired::Done(
                    dueline::store::Batch::new().require_present("never"),
                )),
                "undecodable" => Err(HandlerError::undecodable("it does not decode")),
                "dead" => Ok(Fired::Dead {
                    reason: "as told".to_owned(),
                    batch: dueline::store::Batch::new(),
                }),
                _ => Ok(Fired::Done(
                    (0..200).fold(dueline::store::Batch::new(), |batch, n| {
                        batch.put(format!("{n}"), "")
                    }),
                )),
            }
        })
    });
    let driver = home.driver([
        (A, Registration::inline(bad)),
        (B, Registration::inline(notes(&seen))),
    ]);
    for reference in ["error", "hangs", "guard", "undecodable", "dead", "too much"] {
        home.schedule(&driver, A, reference, START_MS + 1_000);
    }
    home.schedule(&driver, B, "good", START_MS + 1_000);
    let report = home.next_alarm(&driver).unwrap();
    assert_eq!(report.total.failed + report.total.dead, 6);
    assert_eq!(seen.all(), ["good"]);
    let next_ms = report.next_alarm_ms.unwrap();
    assert!(next_ms > home.now_ms(), "the first retry is to come");
}

/// The platform keeps an alarm that is set while another is being served.
#[test]
fn an_alarm_set_by_the_constructor_does_not_outlive_the_last_timer() {
    let home = Home::new();
    let seen = Seen::default();
    let noting = || [(A, Registration::inline(notes(&seen)))];
    let driver = home.driver(noting());
    home.schedule(&driver, A, "last", START_MS + 1_000);
    let info = home.begin_alarm();
    let newer = home.open(noting(), Start::Fresh, ObjectOptions::default());
    home.restore(&newer);
    assert_eq!(home.run(newer.on_alarm(info)).unwrap().total.fired, 1);
    home.end_alarm(AlarmEnd::Well);
    assert_eq!(home.alarm_ms(), None, "nothing is pending");
}

#[test]
fn all_partitions_of_an_object_share_one_budget_in_the_order_of_their_wakes() {
    let home = Home::new();
    let seen = Seen::default();
    let options = ObjectOptions {
        budget: TickBudget {
            max_fired: 3,
            ..TickBudget::default()
        },
        drain_ticks_max: 1,
        ..ObjectOptions::default()
    };
    let kinds = [(A, Registration::inline(notes(&seen)))];
    let driver = home.open(kinds, Start::Fresh, options);
    for (index, (name, reference)) in [("z", "first"), ("y", "second"), ("x", "third")]
        .into_iter()
        .enumerate()
    {
        let partition = Partition::new(name).unwrap();
        for number in 0..2 {
            let timer = Timer::new(A, reference).due_at(START_MS + 1_000 + index as u64 + number);
            let scheduled = driver.timers().schedule(&partition, timer, Policy::Replace);
            home.run(scheduled).unwrap();
        }
    }
    home.clock.advance_ms(2_000);
    let report = home.next_alarm(&driver).unwrap();
    assert_eq!(report.total.fired, 3);
    assert!(report.stopped_on_budget);
    assert_eq!(seen.all(), ["first", "first", "second"]);
    assert_eq!(home.next_alarm(&driver).unwrap().total.fired, 3);
    assert_eq!(home.alarm_ms(), None);
}

#[test]
fn a_refused_partition_is_held_back_and_the_alarm_with_it() {
    let home = Home::new();
    let driver = home.driver([(A, Registration::inline(notes(&Seen::default())))]);
    home.schedule(&driver, A, "a", START_MS + 1_000);
    home.fail(StorageCall::Transaction);
    let mut waits = Vec::new();
    for _ in 0..4 {
        let report = home.next_alarm(&driver).unwrap();
        assert_eq!(report.refused, 1);
        waits.push(report.next_alarm_ms.unwrap() - home.now_ms());
    }
    assert_eq!(waits, [1_000, 2_000, 4_000, 8_000]);
    home.heal();
    assert_eq!(home.next_alarm(&driver).unwrap().total.fired, 1);
    assert_eq!(home.alarm_ms(), None);
}

#[test]
fn a_partition_that_takes_a_timer_again_is_held_back_no_longer() {
    let home = Home::new();
    let driver = home.driver([(A, Registration::inline(notes(&Seen::default())))]);
    home.schedule(&driver, A, "a", START_MS + 1_000);
    home.fail(StorageCall::Transaction);
    for _ in 0..6 {
        assert_eq!(home.next_alarm(&driver).unwrap().refused, 1);
    }
    home.heal();
    // The next look would be half a minute away.
    let due_ms = home.now_ms() + 100;
    home.schedule(&driver, A, "b", due_ms);
    assert_eq!(home.next_alarm(&driver).unwrap().total.fired, 2);
    assert_eq!(home.now_ms(), due_ms);
}

#[test]
fn calls_run_within_their_alarm_so_many_at_a_time_and_are_settled_there() {
    let home = Home::new();
    let seen = Seen::default();
    let kinds = [(A, calls_for(&home, &seen, 300).concurrency(2))];
    let driver = home.driver(kinds);
    for reference in ["a", "b", "c"] {
        home.schedule(&driver, A, reference, START_MS + 1_000);
    }
    let report = home.next_alarm(&driver).unwrap();
    assert_eq!((report.total.claimed, report.settled.fired), (3, 3));
    let seen = seen.all();
    assert_eq!(seen[..2], ["call a", "call b"]);
    let third = seen.iter().position(|line| line == "call c").unwrap();
    let answer = seen.iter().position(|line| line.starts_with("answer"));
    assert!(answer.unwrap() < third, "{seen:?}");
    for reference in ["a", "b", "c"] {
        let value = home.run(driver.store().get(&home.partition, &reference.into()));
        assert_eq!(value.unwrap(), Some("settled".into()));
    }
    assert_eq!(home.alarm_ms(), None);
}

#[test]
fn a_slow_call_does_not_delay_what_comes_due_meanwhile() {
    let home = Home::new();
    let seen = Seen::default();
    let driver = home.driver([
        (A, calls_for(&home, &seen, 20_000)),
        (B, Registration::inline(notes(&seen))),
    ]);
    home.schedule(&driver, A, "slow", START_MS + 1_000);
    home.schedule(&driver, B, "soon", START_MS + 3_000);
    let info = home.begin_alarm();
    {
        let mut alarm = pin!(driver.on_alarm(info));
        while !seen.all().contains(&"call slow".to_owned()) {
            assert!(home.turn(alarm.as_mut()).is_pending());
        }
        // A request brings something that is due even earlier.
        home.schedule(&driver, B, "sooner", START_MS + 1_500);
        let mut fired_at = Vec::new();
        while fired_at.len() < 2 {
            let before = seen.len();
            assert!(home.turn(alarm.as_mut()).is_pending());
            if seen.len() > before {
                fired_at.push(home.now_ms() - START_MS);
            } else if let Some(sleep) = home.clock.next_sleep_end() {
                home.clock.advance(sleep);
            }
        }
        assert_eq!(fired_at, [1_500, 3_000]);
        home.run(alarm).unwrap();
    }
    home.end_alarm(AlarmEnd::Well);
    assert_eq!(seen.all(), ["call slow", "sooner", "soon", "answer slow"]);
}

#[test]
fn a_call_over_its_deadline_fails_and_the_alarm_ends() {
    let home = Home::new();
    let kinds = [(
        A,
        calls_for(&home, &Seen::default(), u64::MAX >> 20).deadline_ms(2_000),
    )];
    let driver = home.driver(kinds);
    home.schedule(&driver, A, "a", START_MS + 1_000);
    let report = home.next_alarm(&driver).unwrap();
    assert_eq!((report.total.claimed, report.settled.failed), (1, 1));
    assert_eq!(home.now_ms(), START_MS + 3_000);
}

#[test]
fn an_object_that_is_evicted_in_a_call_finds_the_timer_again_when_its_claim_ends() {
    let home = Home::new();
    let seen = Seen::default();
    let kinds = |seen: &Seen| [(A, calls_for(&home, seen, 5_000).deadline_ms(6_000))];
    let driver = home.driver(kinds(&seen));
    home.schedule(&driver, A, "a", START_MS + 1_000);
    let info = home.begin_alarm();
    {
        let mut alarm = pin!(driver.on_alarm(info));
        while seen.len() == 0 {
            assert!(home.turn(alarm.as_mut()).is_pending());
        }
    }
    drop(driver);
    let now_ms = home.now_ms();
    let unsynced = home.object.borrow().unsynced();
    home.object.borrow_mut().crash(unsynced, now_ms).unwrap();
    // The alarm that was set before the claim looks, and finds when the claim ends.
    let again = home.driver(kinds(&seen));
    while seen.len() < 2 {
        home.next_alarm(&again).unwrap();
    }
    assert_eq!(seen.all(), ["call a", "call a", "answer a"]);
    let claim_ends_ms = START_MS + 1_000 + 6_000 + 10_000;
    assert_eq!(home.now_ms(), claim_ends_ms + 5_000);
    assert!(home.pending(&again).is_empty());
}

#[test]
fn an_alarm_that_stayed_so_long_makes_no_more_calls_and_ticks_once_a_second_until_its_calls_end() {
    let home = Home::new();
    let seen = Seen::default();
    let options = ObjectOptions {
        stay_ms: 1_000,
        ..ObjectOptions::default()
    };
    let kinds = [
        (A, calls_for(&home, &seen, 4_000)),
        (B, Registration::inline(notes(&seen))),
    ];
    let driver = home.open(kinds, Start::Fresh, options);
    home.schedule(&driver, A, "slow", START_MS + 1_000);
    home.schedule(&driver, A, "next", START_MS + 3_000);
    let quick = ["a", "b", "c", "d", "e", "f", "g", "h"];
    for (reference, due_ms) in quick.into_iter().zip((START_MS + 2_500..).step_by(500)) {
        home.schedule(&driver, B, reference, due_ms);
    }
    let report = home.next_alarm(&driver).unwrap();
    assert_eq!(home.now_ms(), START_MS + 5_000);
    assert_eq!((report.settled.fired, report.total.claimed), (1, 1));
    assert_eq!(report.ticks, 4, "that of the call, and one for each second");
    assert_eq!(report.total.fired, 6, "those due by then");
    let report = home.next_alarm(&driver).unwrap();
    assert_eq!((report.settled.fired, report.total.claimed), (1, 1));
    assert_eq!(home.now_ms(), START_MS + 9_001);
    assert_eq!(home.alarm_ms(), None);
    assert_eq!(seen.len(), 4 + quick.len());
}

/// A call that hangs holds its alarm up to its deadline; whatever fits in beside it does not wait for the next.
#[test]
fn an_alarm_that_stayed_so_long_makes_the_calls_that_end_before_those_it_waits_for() {
    let home = Home::new();
    let seen = Seen::default();
    let options = ObjectOptions {
        stay_ms: 1_000,
        ..ObjectOptions::default()
    };
    let kinds = [
        (A, calls_for(&home, &seen, 60_000).deadline_ms(20_000)),
        (B, calls_for(&home, &seen, 100).deadline_ms(2_000)),
    ];
    let driver = home.open(kinds, Start::Fresh, options);
    home.schedule(&driver, A, "hangs", START_MS + 1_000);
    home.schedule(&driver, A, "too long", START_MS + 4_000);
    home.schedule(&driver, B, "at once", START_MS + 5_000);
    home.schedule(&driver, B, "just", START_MS + 19_000);
    home.schedule(&driver, B, "late", START_MS + 19_500);
    let report = home.next_alarm(&driver).unwrap();
    assert_eq!(home.now_ms(), START_MS + 21_000);
    assert_eq!((report.settled.fired, report.settled.failed), (2, 1));
    let begun = [
        "call hangs",
        "call at once",
        "answer at once",
        "call just",
        "answer just",
    ];
    assert_eq!(seen.all(), begun);
    // Late by less than its own deadline, however long that of the others is.
    let report = home.next_alarm(&driver).unwrap();
    assert_eq!(report.total.claimed, 2);
    assert_eq!(
        report.worst_lateness_ms, 17_001,
        "that of the kind which hangs"
    );
    assert_eq!(seen.all()[5..7], ["call too long", "call late"]);
}

#[test]
fn a_second_alarm_waits_for_the_first() {
    let home = Home::new();
    let seen = Seen::default();
    let driver = home.driver([(A, calls_for(&home, &seen, 1_000))]);
    home.schedule(&driver, A, "a", START_MS + 1_000);
    let info = home.begin_alarm();
    {
        let mut first = pin!(driver.on_alarm(info));
        while seen.len() == 0 {
            assert!(home.turn(first.as_mut()).is_pending());
        }
        let mut second = pin!(driver.on_alarm(info));
        assert!(home.turn(second.as_mut()).is_pending());
        assert_eq!(home.run(first).unwrap().settled.fired, 1);
        let report = home.run(second).unwrap();
        assert_eq!((report.ticks, report.next_alarm_ms), (0, None));
    }
    home.end_alarm(AlarmEnd::Well);
    assert_eq!(home.alarm_ms(), None);
}

#[test]
fn a_paused_kind_sets_no_alarm_until_it_is_resumed() {
    let home = Home::new();
    let seen = Seen::default();
    let driver = home.driver([(A, Registration::inline(notes(&seen)))]);
    home.schedule(&driver, A, "a", START_MS + 1_000);
    home.run(driver.timers().pause(&home.partition, A)).unwrap();
    assert_eq!(home.next_alarm(&driver).unwrap().total.progressed(), 0);
    assert_eq!(home.alarm_ms(), None);
    home.clock.advance_ms(60_000);
    home.run(driver.timers().resume(&home.partition, A))
        .unwrap();
    assert_eq!(home.alarm_ms(), Some(home.now_ms() + 1));
    assert_eq!(home.next_alarm(&driver).unwrap().total.fired, 1);
}

#[test]
fn a_failing_timer_is_retried_by_its_own_back_off_until_it_is_dead() {
    let home = Home::new();
    let driver = home.driver([(A, Registration::inline(fails()))]);
    home.schedule(&driver, A, "a", START_MS + 1_000);
    let mut alarms = 0;
    while home.alarm_ms().is_some() {
        home.next_alarm(&driver).unwrap();
        alarms += 1;
    }
    assert!(home.pending(&driver).is_empty());
    // Twenty attempts by default, and no alarm in between but one for each retry that was put.
    assert!((20..=40).contains(&alarms), "{alarms} alarms");
    let _kind: TimerKind = A;
    assert!(driver.store().capabilities().wakes);
}
