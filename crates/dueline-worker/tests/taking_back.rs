//! Goal: an application that gives up a transaction of its own takes back what was committed in it, and nothing
//! else: whatever the instance remembers of it, every timer that is left fires, once. Method: one object, verbs
//! in transactions that are kept or taken back, first case by case and then at random against a list.
#![cfg(test)]

mod home;

use std::collections::BTreeMap;

use dueline::store::{Batch, NamespaceStore, ReadStore};
use dueline::timers::{Fired, Policy, Registration, Timer, TimerHandler, TimerKind};
use dueline_testkit::handler;
use dueline_testkit::model::Random;
use dueline_worker::ObjectDriver;
use dueline_worker::simulated::{AlarmEnd, Delivery};
use home::handlers::{Seen, notes, reference_of};
use home::{A, B, Home, START_MS};

fn driver(home: &Home, seen: &Seen) -> ObjectDriver {
    home.driver([
        (A, Registration::inline(notes(seen))),
        (B, Registration::inline(notes(seen))),
    ])
}

/// What is done here is taken back, and the object goes on. As a request does, it looks at the alarm then.
fn taken_back(home: &Home, driver: &ObjectDriver, inside: impl FnOnce()) {
    home.be_in_a_transaction(true);
    inside();
    home.be_in_a_transaction(false);
    home.object.borrow_mut().take_back(0).unwrap();
    home.restore(driver);
}

fn anonymous(home: &Home, driver: &ObjectDriver, reference: String, due_ms: u64) {
    let timer = Timer::new(A, reference).due_at(due_ms);
    let timers = driver.timers();
    home.run(timers.schedule(&home.partition, timer, Policy::Replace))
        .unwrap();
}

fn cancel(home: &Home, driver: &ObjectDriver, kind: TimerKind, name: &str) {
    let (name, timers) = (name.to_owned().into(), driver.timers());
    let _cancelled = home
        .run(timers.cancel(&home.partition, kind, &name, None))
        .unwrap();
}

/// The next alarm, if there is one. The platform hears of an earlier one before its transaction ends, so it may
/// come at the time of one that was taken back: then the stored one is still to come.
fn next_alarm(home: &Home, driver: &ObjectDriver) {
    let Some(at_ms) = home.alarm_ms() else { return };
    home.clock.advance_ms(at_ms.saturating_sub(home.now_ms()));
    let delivery = home.object.borrow_mut().deliver(home.now_ms());
    if let Delivery::Run(info) = delivery {
        home.run(driver.on_alarm(info)).unwrap();
        home.end_alarm(AlarmEnd::Well);
    }
}

fn fire_all(home: &Home, driver: &ObjectDriver) {
    for _ in 0..100 {
        next_alarm(home, driver);
    }
    assert_eq!(home.alarm_ms(), None);
}

#[test]
fn a_timer_behind_one_that_was_taken_back_fires() {
    let (home, seen) = (Home::new(), Seen::default());
    let driver = driver(&home, &seen);
    taken_back(&home, &driver, || {
        home.schedule(&driver, A, "declined", START_MS + 400);
    });
    assert_eq!(home.pending(&driver), Vec::<String>::new());
    home.schedule(&driver, A, "ordered", START_MS + 600);
    home.restore(&driver);
    fire_all(&home, &driver);
    assert_eq!(seen.all(), ["ordered"]);
}

#[test]
fn a_timer_beside_one_that_was_taken_back_fires() {
    let (home, seen) = (Home::new(), Seen::default());
    let driver = driver(&home, &seen);
    home.schedule(&driver, B, "other", START_MS + 5_000);
    taken_back(&home, &driver, || {
        anonymous(&home, &driver, "declined".to_owned(), START_MS + 400);
    });
    anonymous(&home, &driver, "ordered".to_owned(), START_MS + 600);
    home.restore(&driver);
    fire_all(&home, &driver);
    assert_eq!(seen.all(), ["ordered", "other"]);
}

#[test]
fn a_row_behind_a_partition_that_was_taken_back_is_found() {
    let (home, seen) = (Home::new(), Seen::default());
    let driver = driver(&home, &seen);
    let put = |value: &'static str| {
        let batch = Batch::new().put("row", value);
        let _committed = home
            .run(driver.store().apply(&home.partition, batch))
            .unwrap();
    };
    taken_back(&home, &driver, || put("declined"));
    put("kept");
    let key = "row".into();
    let found = home.run(driver.store().get(&home.partition, &key)).unwrap();
    assert_eq!(found.as_deref(), Some(b"kept".as_slice()));
}

#[test]
fn a_timer_whose_cancel_was_taken_back_fires() {
    let (home, seen) = (Home::new(), Seen::default());
    let driver = driver(&home, &seen);
    home.schedule(&driver, A, "kept", START_MS + 400);
    taken_back(&home, &driver, || {
        cancel(&home, &driver, A, "kept");
        home.schedule(&driver, A, "declined", START_MS + 300);
    });
    home.restore(&driver);
    fire_all(&home, &driver);
    assert_eq!(seen.all(), ["kept"]);
}

fn notes_kind_too(seen: &Seen) -> impl TimerHandler + 'static + use<> {
    let seen = seen.clone();
    handler(move |_, timer| {
        seen.note(format!("{} {}", timer.kind().0, reference_of(timer)));
        Box::pin(async { Ok(Fired::Done(Batch::new())) })
    })
}

/// The timers there ought to be, by kind and reference, with the time from which they may fire.
type Expected = BTreeMap<(TimerKind, String), u64>;

struct History {
    home: Home,
    driver: ObjectDriver,
    seen: Seen,
    random: Random,
    expected: Expected,
    anonymous: u64,
}

impl History {
    fn new(seed: u64) -> Self {
        let (home, seen) = (Home::new(), Seen::default());
        let driver = home.driver([
            (A, Registration::inline(notes_kind_too(&seen))),
            (B, Registration::inline(notes_kind_too(&seen))),
        ]);
        Self {
            home,
            driver,
            seen,
            random: Random::new(seed),
            expected: Expected::new(),
            anonymous: 0,
        }
    }

    fn verb(&mut self) {
        let kind = self.random.pick(&[A, B]);
        let name = self.random.pick(&["m", "n", "o"]);
        let due_ms = self.home.now_ms() + self.random.below(2_000);
        match self.random.below(4) {
            0 => {
                cancel(&self.home, &self.driver, kind, name);
                self.expected.remove(&(kind, name.to_owned()));
            }
            1 => {
                self.anonymous += 1;
                let reference = self.anonymous.to_string();
                anonymous(&self.home, &self.driver, reference.clone(), due_ms);
                self.expected.insert((A, reference), due_ms);
            }
            _ => {
                self.home.schedule(&self.driver, kind, name, due_ms);
                self.expected.insert((kind, name.to_owned()), due_ms);
            }
        }
    }

    fn transaction(&mut self) {
        let before = self.expected.clone();
        self.home.be_in_a_transaction(true);
        for _ in 0..=self.random.below(3) {
            self.verb();
        }
        self.home.be_in_a_transaction(false);
        if self.random.chance(60) {
            self.home.object.borrow_mut().take_back(0).unwrap();
            self.expected = before;
        } else {
            self.home.end_turn();
        }
    }

    fn next_alarm(&mut self) {
        let already = self.seen.len();
        next_alarm(&self.home, &self.driver);
        let now_ms = self.home.now_ms();
        for line in self.seen.all().drain(already..) {
            let (kind, reference) = line.split_once(' ').unwrap();
            let kind = TimerKind(kind.parse().unwrap());
            let due_ms = self.expected.remove(&(kind, reference.to_owned()));
            assert!(due_ms.is_some_and(|due_ms| due_ms <= now_ms), "{line}");
        }
    }
}

#[test]
fn whatever_an_application_takes_back_every_timer_that_is_left_fires() {
    for seed in 0..300 {
        let mut history = History::new(seed);
        for _ in 0..40 {
            match history.random.below(5) {
                0 => history.next_alarm(),
                1 | 2 => history.verb(),
                _ => history.transaction(),
            }
            history.home.restore(&history.driver);
        }
        for _ in 0..100 {
            history.next_alarm();
        }
        let left = &history.expected;
        assert!(left.is_empty(), "seed {seed} leaves {left:?}");
    }
}
