//! Goal: an application that gives up a transaction of its own takes back what was committed in it, and nothing
//! else: whatever the instance remembers of it, every timer that is left fires, once. Method: one object, verbs
//! in transactions that are kept or taken back, first case by case and then at random against a list.
#![cfg(test)]

mod home;

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;

use dueline::store::{Batch, NamespaceStore, ReadStore, StoreErrorKind};
use dueline::timers::{
    Fired, KindSet, Policy, Registration, Timer, TimerError, TimerHandler, TimerKind,
};
use dueline_testkit::handler;
use dueline_testkit::model::Random;
use dueline_worker::ObjectDriver;
use dueline_worker::simulated::{AlarmEnd, Delivery, StorageCall};
use home::handlers::{Seen, notes, reference_of};
use home::{A, B, Home, START_MS};

fn driver(home: &Home, seen: &Seen) -> ObjectDriver {
    home.driver([
        (A, Registration::inline(notes(seen))),
        (B, Registration::inline(notes(seen))),
    ])
}

/// What is done here is taken back, and the object goes on.
fn lost(home: &Home, inside: impl FnOnce()) {
    home.be_in_a_transaction(true);
    inside();
    home.be_in_a_transaction(false);
    home.object.borrow_mut().take_back(0).unwrap();
}

/// As [`lost`], and as a request does it, the object looks at the alarm then.
fn taken_back(home: &Home, driver: &ObjectDriver, inside: impl FnOnce()) {
    lost(home, inside);
    home.restore(driver);
}

/// The stored alarm comes for what is stored, without a look of a later request.
fn assert_sound(home: &Home, of: &str) {
    let storage = home.storage();
    let first_ms = storage.first_wake_ms(&KindSet::all()).unwrap();
    let alarm_ms = storage.alarm_ms();
    let is_early = first_ms.is_none_or(|first_ms| {
        let first_ms = first_ms.max(home.now_ms() + 1);
        alarm_ms.is_some_and(|alarm_ms| alarm_ms <= first_ms)
    });
    assert!(
        is_early,
        "{of}: {first_ms:?} is first, the alarm is at {alarm_ms:?}"
    );
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

#[test]
fn a_verb_has_its_alarm_though_what_is_remembered_of_it_was_taken_back() {
    for kind in [A, B] {
        let (home, seen) = (Home::new(), Seen::default());
        let driver = driver(&home, &seen);
        lost(&home, || {
            home.schedule(&driver, A, "declined", START_MS + 400);
        });
        home.schedule(&driver, kind, "ordered", START_MS + 600);
        assert_sound(&home, "behind the verb");
        assert_eq!(home.storage().alarm_ms(), Some(START_MS + 600));
        fire_all(&home, &driver);
        assert_eq!(seen.all(), ["ordered"]);
    }
}

#[test]
fn an_alarm_that_cannot_be_looked_at_behind_a_verb_is_the_verbs_doubt() {
    let (home, seen) = (Home::new(), Seen::default());
    let driver = driver(&home, &seen);
    home.schedule(&driver, A, "first", START_MS + 400);
    home.fail(StorageCall::GetAlarm);
    let timer = Timer::new(B, "second").due_at(START_MS + 600).named();
    let timers = driver.timers();
    let done = home.run(timers.schedule(&home.partition, timer, Policy::Replace));
    assert_matches_unknown(done.unwrap_err());
    home.heal();
    fire_all(&home, &driver);
    assert_eq!(seen.all(), ["first", "second"]);
}

fn assert_matches_unknown(error: TimerError) {
    let TimerError::Store(error) = error else {
        panic!("{error}");
    };
    assert_eq!(error.kind(), StoreErrorKind::Unknown);
}

/// Waits until it is let go.
fn waits(gate: &Arc<AtomicBool>) -> impl TimerHandler + 'static + use<> {
    let gate = Arc::clone(gate);
    handler(move |_, _| {
        let gate = Arc::clone(&gate);
        Box::pin(async move {
            poll_fn(|_| match gate.load(Ordering::Relaxed) {
                true => Poll::Ready(()),
                false => Poll::Pending,
            })
            .await;
            Ok(Fired::Done(Batch::new()))
        })
    })
}

#[test]
fn an_alarm_that_was_taken_back_while_another_was_served_is_set_again() {
    let (home, seen) = (Home::new(), Seen::default());
    let gate = Arc::new(AtomicBool::new(false));
    let driver = home.driver([
        (A, Registration::inline(waits(&gate))),
        (B, Registration::inline(notes(&seen))),
    ]);
    home.schedule(&driver, A, "waits", START_MS + 100);
    home.schedule(&driver, B, "next", START_MS + 101);
    let info = home.begin_alarm();
    let mut serving = pin!(driver.on_alarm(info));
    assert!(home.turn(serving.as_mut()).is_pending());
    // Its alarm is set at the earliest time there is, which is when the other timer is due.
    lost(&home, || {
        home.schedule(&driver, B, "declined", START_MS + 5_000);
    });
    gate.store(true, Ordering::Relaxed);
    home.run(serving).unwrap();
    home.end_alarm(AlarmEnd::Well);
    assert_sound(&home, "behind the alarm");
    assert_eq!(home.storage().alarm_ms(), Some(START_MS + 101));
    fire_all(&home, &driver);
    assert_eq!(seen.all(), ["next"]);
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
            assert_sound(&history.home, &format!("seed {seed}"));
            if history.random.chance(50) {
                history.home.restore(&history.driver);
            }
        }
        for _ in 0..100 {
            history.next_alarm();
        }
        let left = &history.expected;
        assert!(left.is_empty(), "seed {seed} leaves {left:?}");
    }
}
