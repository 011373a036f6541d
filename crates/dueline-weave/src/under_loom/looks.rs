//! The wake permit of the driver: a thread that commits and tells, a thread that looks and sleeps.

use dueline::timers::{KindSet, TimerKind};
use dueline_testkit::{ManualClock, test_runtime};

use super::driver::looks::Looks;
use super::driver::signal::Signal;
use super::explore;
use super::sync::{Arc, Mutex, PoisonError};
use super::thread;
use crate::model::Model;
use crate::planted;

const KIND: TimerKind = TimerKind(16);

pub(crate) const A_RAISED_SIGNAL_IS_SEEN: Model = Model {
    name: "a_raised_signal_is_seen",
    bugs: &["signal_notifies_before_it_raises"],
    explore: |effort| explore(4, effort, a_raised_signal_is_seen),
};

/// Two threads leave something and raise the signal; a third waits until it has both.
fn a_raised_signal_is_seen() {
    let (signal, left) = (Arc::new(Signal::default()), Arc::new(Mutex::new(0)));
    for _ in 0..2 {
        let (signal, left) = (Arc::clone(&signal), Arc::clone(&left));
        thread::spawn(move || {
            *left.lock().unwrap_or_else(PoisonError::into_inner) += 1;
            signal.raise();
        });
    }
    let mut found = 0;
    while found < 2 {
        signal.wait();
        found += std::mem::take(&mut *left.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

/// What a store would have: times of wakes.
#[derive(Clone, Default)]
struct Stored(Arc<Mutex<Vec<u64>>>);

impl Stored {
    fn commit(&self, at_ms: u64) {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(at_ms);
    }

    /// Takes what is due.
    fn take(&self, until_ms: u64) -> usize {
        let mut stored = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let before = stored.len();
        stored.retain(|at_ms| *at_ms > until_ms);
        before - stored.len()
    }
}

fn watched() -> Arc<Looks> {
    let looks = Arc::new(Looks::default());
    let runtime = test_runtime(&ManualClock::new(0));
    looks.watch([KindSet::from_iter([KIND])], &runtime);
    looks
}

fn commit_each(looks: &Arc<Looks>, stored: &Stored, times_ms: [u64; 2]) {
    for at_ms in times_ms {
        let (looks, stored) = (Arc::clone(looks), stored.clone());
        thread::spawn(move || {
            stored.commit(at_ms);
            looks.lower([(KIND, at_ms)].into_iter());
        });
    }
}

pub(crate) const NO_LOOK_IS_SLEPT_OVER: Model = Model {
    name: "no_look_is_slept_over",
    bugs: &[
        "sleep_is_published_after_the_looks_are_read",
        "only_the_first_look_wakes",
        "signal_notifies_before_it_raises",
    ],
    explore: |effort| explore(4, effort, no_look_is_slept_over),
};

/// The driver has a wake at 50. Two commits tell of 20 and 10: it must not sleep until 50 nor until
/// 20, and never wait for a signal that does not come.
fn no_look_is_slept_over() {
    let (looks, stored) = (watched(), Stored::default());
    looks.open(0);
    commit_each(&looks, &stored, [20, 10]);
    loop {
        looks.wake_up();
        if looks.take_due(0, 0) {
            assert_eq!(stored.take(0), 0);
        }
        let until_ms = looks.fall_asleep(50, [0].into_iter());
        if until_ms == 10 {
            break;
        }
        looks.signal().wait();
    }
    looks.wake_up();
    assert!(looks.take_due(0, 10));
    assert_eq!(stored.take(10), 1);
}

pub(crate) const A_COMMIT_BESIDE_A_READING_IS_FOUND: Model = Model {
    name: "a_commit_beside_a_reading_is_found",
    bugs: &[
        "window_is_read_before_it_is_opened",
        "close_forgets_what_was_noted",
        "sleep_is_published_after_the_looks_are_read",
    ],
    explore: |effort| explore(4, effort, a_commit_beside_a_reading_is_found),
};

/// The driver reads the store while two threads commit to it: what the reading does not see has been
/// noted.
fn a_commit_beside_a_reading_is_found() {
    const NOW_MS: u64 = 100;
    let (looks, stored) = (watched(), Stored::default());
    commit_each(&looks, &stored, [20, 10]);
    let mut found = 0;
    if planted::is("window_is_read_before_it_is_opened") {
        found += stored.take(NOW_MS);
        looks.open(0);
    } else {
        looks.open(0);
        found += stored.take(NOW_MS);
    }
    looks.close(0, u64::MAX);
    while found < 2 {
        looks.wake_up();
        if looks.take_due(0, NOW_MS) {
            found += stored.take(NOW_MS);
        }
        if looks.fall_asleep(u64::MAX, [0].into_iter()) > NOW_MS && found < 2 {
            looks.signal().wait();
        }
    }
}
