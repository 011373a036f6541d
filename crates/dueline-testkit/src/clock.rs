use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use dueline::BoxFuture;
use dueline::runtime::{Clock, Sleep};

/// A wall clock and a monotonic clock that move only when told to, and the sleeps that go by them.
///
/// Clones share their time.
///
/// ```
/// use std::time::Duration;
/// use dueline::runtime::{Clock, Sleep};
/// use dueline_testkit::{ManualClock, block_on};
///
/// let clock = ManualClock::new(1_000);
/// let nap = clock.sleep(Duration::from_secs(2));
/// clock.jump_wall_ms(-500);
/// clock.advance(Duration::from_secs(2));
/// block_on(nap);
/// assert_eq!(clock.wall_ms(), 2_500);
/// assert_eq!(clock.monotonic(), Duration::from_secs(2));
/// ```
#[derive(Clone, Debug)]
pub struct ManualClock {
    time: Arc<Mutex<Time>>,
}

#[derive(Debug)]
struct Time {
    /// What the wall clock shows when the monotonic one shows zero.
    wall_start_ms: i64,
    monotonic: Duration,
    next_sleep: u64,
    sleeps: BTreeMap<(Duration, u64), Waker>,
}

impl Time {
    fn elapsed_ms(&self) -> i64 {
        i64::try_from(self.monotonic.as_millis()).unwrap_or(i64::MAX)
    }
}

impl ManualClock {
    /// A clock whose wall shows this many milliseconds since 1970; its monotonic half shows zero.
    pub fn new(wall_ms: i64) -> Self {
        let time = Time {
            wall_start_ms: wall_ms,
            monotonic: Duration::ZERO,
            next_sleep: 0,
            sleeps: BTreeMap::new(),
        };
        Self {
            time: Arc::new(Mutex::new(time)),
        }
    }

    /// Lets time pass: both clocks move, and sleeps that are over become ready.
    pub fn advance(&self, by: Duration) {
        let mut time = self.lock();
        time.monotonic = time.monotonic.saturating_add(by);
        let now = time.monotonic;
        let later = time.sleeps.split_off(&(now, u64::MAX));
        let over = std::mem::replace(&mut time.sleeps, later);
        drop(time);
        for waker in over.into_values() {
            waker.wake();
        }
    }

    /// Lets time pass in milliseconds.
    pub fn advance_ms(&self, by_ms: u64) {
        self.advance(Duration::from_millis(by_ms));
    }

    /// Steps the wall clock alone, as an operator or a time server does. No sleep ends.
    pub fn jump_wall_ms(&self, by_ms: i64) {
        let mut time = self.lock();
        time.wall_start_ms = time.wall_start_ms.saturating_add(by_ms);
    }

    /// Sets the wall clock alone. No sleep ends.
    pub fn set_wall_ms(&self, wall_ms: i64) {
        let mut time = self.lock();
        time.wall_start_ms = wall_ms.saturating_sub(time.elapsed_ms());
    }

    /// How many sleeps are waited for right now.
    pub fn sleepers(&self) -> usize {
        self.lock().sleeps.len()
    }

    /// How long until the first sleep that is waited for ends; `None` if none is.
    pub fn next_sleep_end(&self) -> Option<Duration> {
        let time = self.lock();
        let ((end, _), _) = time.sleeps.first_key_value()?;
        Some(end.saturating_sub(time.monotonic))
    }

    fn lock(&self) -> MutexGuard<'_, Time> {
        self.time.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Clock for ManualClock {
    fn wall_ms(&self) -> i64 {
        let time = self.lock();
        time.wall_start_ms.saturating_add(time.elapsed_ms())
    }

    fn monotonic(&self) -> Duration {
        self.lock().monotonic
    }
}

impl Sleep for ManualClock {
    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        let end = self.lock().monotonic.saturating_add(duration);
        self.sleep_until(end, self)
    }

    fn sleep_until(&self, until: Duration, _: &dyn Clock) -> BoxFuture<'static, ()> {
        let mut time = self.lock();
        let place = (until, time.next_sleep);
        time.next_sleep += 1;
        drop(time);
        Box::pin(ManualSleep {
            clock: self.clone(),
            place,
        })
    }
}

/// One sleep: its end and its number.
#[derive(Debug)]
struct ManualSleep {
    clock: ManualClock,
    place: (Duration, u64),
}

impl Future for ManualSleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let mut time = self.clock.lock();
        if time.monotonic >= self.place.0 {
            return Poll::Ready(());
        }
        time.sleeps.insert(self.place, cx.waker().clone());
        Poll::Pending
    }
}

impl Drop for ManualSleep {
    fn drop(&mut self) {
        // The waker is dropped outside the lock: it may own what sleeps on this clock too.
        let waker = self.clock.lock().sleeps.remove(&self.place);
        drop(waker);
    }
}
