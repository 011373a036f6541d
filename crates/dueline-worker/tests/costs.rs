//! What things cost on an object, counted: the figures of the crate's front page.
#![cfg(test)]

mod home;

use dueline::store::{Batch, NamespaceStore};
use dueline::timers::{Asked, Policy, Registration, Timer, TimerKind};
use dueline_worker::simulated::StorageCounts;
use dueline_worker::{ObjectDriver, ObjectOptions, Start};
use home::handlers::{CallsFor, Seen, fails, notes};
use home::{A, B, Home, START_MS};

const C: TimerKind = TimerKind(18);

/// Statements, rows read and written, writes of the alarm, and turns that wrote.
#[derive(Debug, PartialEq, Eq)]
struct Cost {
    statements: u64,
    rows_read: u64,
    rows_written: u64,
    alarm_writes: u64,
    turns: usize,
}

fn of(
    statements: u64,
    (rows_read, rows_written): (u64, u64),
    alarm_writes: u64,
    turns: usize,
) -> Cost {
    Cost {
        statements,
        rows_read,
        rows_written,
        alarm_writes,
        turns,
    }
}

fn cost(home: &Home, what: impl FnOnce()) -> Cost {
    let before: StorageCounts = home.storage().counts();
    home.turns.borrow_mut().clear();
    what();
    let after = home.storage().counts();
    Cost {
        statements: after.statements - before.statements,
        rows_read: after.rows_read - before.rows_read,
        rows_written: after.rows_written - before.rows_written,
        alarm_writes: after.alarm_writes - before.alarm_writes,
        turns: home.turns.borrow().len(),
    }
}

fn worn_in(home: &Home) -> ObjectDriver {
    let calls = CallsFor {
        ms: 10,
        runtime: home.runtime(),
        seen: Seen::default(),
    };
    let driver = home.open(
        [
            (
                A,
                Registration::inline(notes(&Seen::default())).group_max(64),
            ),
            (B, Registration::inline(fails())),
            (C, Registration::detached(calls)),
        ],
        Start::Fresh,
        ObjectOptions::default(),
    );
    home.storage().record_wakes(false);
    // The partition exists, and something far away is pending.
    home.schedule(&driver, A, "far", START_MS + 1_000_000);
    driver
}

fn schedule_many(home: &Home, driver: &ObjectDriver, kind: TimerKind, count: u64) {
    for number in 0..count {
        let timer = Timer::new(kind, format!("{number}")).due_at(START_MS + 1_000);
        let timers = driver.timers();
        home.run(timers.schedule(&home.partition, timer, Policy::Replace))
            .unwrap();
    }
}

#[test]
fn schedules() {
    let home = Home::new();
    let driver = worn_in(&home);
    let anonymous = |due_ms: u64| {
        let timer = Timer::new(A, "a").due_at(due_ms);
        let timers = driver.timers();
        home.run(timers.schedule(&home.partition, timer, Policy::Replace))
            .unwrap();
    };
    let earlier = cost(&home, || anonymous(START_MS + 5_000));
    let later = cost(&home, || anonymous(START_MS + 6_000));
    let named = cost(&home, || home.schedule(&driver, A, "n", START_MS + 6_000));
    let own_row = cost(&home, || {
        let batch = Batch::new().put("row", "value");
        let _committed = home
            .run(driver.store().apply(&home.partition, batch))
            .unwrap();
    });
    assert_eq!(earlier, of(4, (1, 2), 1, 1), "due before everything else");
    assert_eq!(later, of(1, (0, 1), 0, 1), "due later");
    assert_eq!(named, of(2, (0, 2), 0, 1), "with a name");
    assert_eq!(own_row, of(2, (1, 1), 0, 1), "no timer at all");
}

#[test]
fn schedules_of_a_hundred_in_one_commit() {
    let home = Home::new();
    let driver = worn_in(&home);
    let all = |due_ms: u64, named: bool| {
        let asked = (0..100).map(|number| {
            let timer = Timer::new(A, format!("{number}")).due_at(due_ms);
            Asked {
                timer: if named { timer.named() } else { timer },
                policy: Policy::Replace,
                if_match: None,
            }
        });
        let asked: Vec<Asked> = asked.collect();
        home.run(driver.schedule_all(&home.partition, &asked))
            .unwrap();
    };
    let earlier = cost(&home, || all(START_MS + 5_000, false));
    let later = cost(&home, || all(START_MS + 6_000, false));
    let named = cost(&home, || all(START_MS + 6_000, true));
    let replaced = cost(&home, || all(START_MS + 7_000, true));
    assert_eq!(
        earlier,
        of(103, (1, 101), 1, 1),
        "due before everything else"
    );
    assert_eq!(later, of(100, (0, 100), 0, 1), "due later");
    assert_eq!(named, of(301, (1, 200), 0, 1), "with new names");
    assert_eq!(replaced, of(501, (201, 300), 0, 1), "with known names");
}

#[test]
fn fires() {
    for (what, kind, count, expected) in [
        ("one timer", A, 1, of(10, (5, 2), 1, 1)),
        ("32 timers in a group", A, 32, of(41, (36, 33), 1, 1)),
        ("one that fails", B, 1, of(18, (9, 5), 2, 1)),
        ("one call", C, 1, of(26, (13, 8), 2, 2)),
    ] {
        let home = Home::new();
        let driver = worn_in(&home);
        schedule_many(&home, &driver, kind, count);
        let fired = cost(&home, || {
            home.next_alarm(&driver).unwrap();
        });
        assert_eq!(fired, expected, "{what}");
    }
}

#[test]
fn looks() {
    let home = Home::new();
    let driver = worn_in(&home);
    let request = cost(&home, || {
        home.restore(&driver);
    });
    let newer = cost(&home, || {
        let _newer = home.driver([(A, Registration::inline(notes(&Seen::default())))]);
    });
    home.schedule(&driver, A, "a", START_MS + 1_000);
    let timers = driver.timers();
    home.run(timers.cancel(&home.partition, A, &"a".into(), None))
        .unwrap();
    let spurious = cost(&home, || {
        home.next_alarm(&driver).unwrap();
    });
    home.schedule(&driver, A, "b", START_MS + 2_000);
    home.begin_alarm();
    let made = cost(&home, || {
        let _newer = home.driver([(A, Registration::inline(notes(&Seen::default())))]);
    });
    assert_eq!(
        made,
        of(7, (5, 1), 1, 1),
        "a new instance, made by its alarm"
    );
    assert_eq!(request, of(0, (0, 0), 0, 0), "a request, its alarm sound");
    assert_eq!(
        newer,
        of(6, (5, 0), 0, 0),
        "a new instance, its alarm sound"
    );
    assert_eq!(spurious, of(9, (4, 1), 1, 1), "an alarm for nothing");
}

#[test]
fn the_hourly_alarm() {
    let home = Home::new();
    let driver = worn_in(&home);
    home.schedule(&driver, B, "b", START_MS + 1_000);
    let away = home.driver([(A, Registration::inline(notes(&Seen::default())))]);
    let first = cost(&home, || {
        home.next_alarm(&away).unwrap();
    });
    assert_eq!(
        first,
        of(6, (5, 0), 1, 1),
        "an alarm for a kind without a handler"
    );
}
