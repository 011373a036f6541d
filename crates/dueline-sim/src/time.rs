//! True time, which only the simulator knows, and the clocks of nodes, which go by it badly.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use dueline::BoxFuture;
use dueline::runtime::{Clock, Sleep};

/// When every simulation begins, in milliseconds since 1970.
pub const START_MS: i64 = 1_800_000_000_000;

/// True time in microseconds since the beginning, and everything that waits for it.
#[derive(Clone, Debug, Default)]
pub struct TrueTime {
    inner: Arc<Mutex<Inner>>,
}

#[derive(Debug, Default)]
struct Inner {
    now_us: u64,
    next_id: u64,
    sleeps: BTreeMap<(u64, u64), Waker>,
}

impl TrueTime {
    /// The time since the beginning, in microseconds.
    pub fn now_us(&self) -> u64 {
        self.lock().now_us
    }

    /// The time in milliseconds since 1970.
    pub fn now_ms(&self) -> u64 {
        u64::try_from(START_MS).unwrap_or(0) + self.now_us() / 1_000
    }

    /// When the first sleep ends.
    pub fn next_end_us(&self) -> Option<u64> {
        self.lock()
            .sleeps
            .first_key_value()
            .map(|((end_us, _), _)| *end_us)
    }

    /// Goes on to this time and ends the sleeps that are over by then. Time never goes back.
    pub fn advance_to(&self, now_us: u64) {
        let mut inner = self.lock();
        inner.now_us = inner.now_us.max(now_us);
        let first_later = (inner.now_us + 1, 0);
        let later = inner.sleeps.split_off(&first_later);
        let over = std::mem::replace(&mut inner.sleeps, later);
        drop(inner);
        for waker in over.into_values() {
            waker.wake();
        }
    }

    /// Sleeps until this time.
    pub fn sleep_until_us(&self, end_us: u64) -> TrueSleep {
        let mut inner = self.lock();
        inner.next_id += 1;
        let place = (end_us, inner.next_id);
        drop(inner);
        TrueSleep {
            time: self.clone(),
            place,
        }
    }

    /// Sleeps for so many microseconds.
    pub fn sleep_us(&self, span_us: u64) -> TrueSleep {
        self.sleep_until_us(self.now_us().saturating_add(span_us))
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One sleep by true time.
#[derive(Debug)]
pub struct TrueSleep {
    time: TrueTime,
    place: (u64, u64),
}

impl Future for TrueSleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let mut inner = self.time.lock();
        if inner.now_us >= self.place.0 {
            return Poll::Ready(());
        }
        inner.sleeps.insert(self.place, context.waker().clone());
        Poll::Pending
    }
}

impl Drop for TrueSleep {
    fn drop(&mut self) {
        // The waker is dropped outside the lock: it may own what sleeps here too.
        let waker = self.time.lock().sleeps.remove(&self.place);
        drop(waker);
    }
}

/// The clocks of one machine. Its wall clock is off, drifts, jumps and may stand still; its monotonic
/// clock drifts with it and never goes back.
#[derive(Clone, Debug)]
pub struct NodeClock {
    time: TrueTime,
    drift_ppm: i64,
    wall: Arc<Mutex<Wall>>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Wall {
    offset_ms: i64,
    /// What it shows while it stands still.
    frozen_ms: Option<i64>,
}

impl NodeClock {
    /// Clocks that are off by so much and gain so many millionths.
    pub fn new(time: &TrueTime, offset_ms: i64, drift_ppm: i64) -> Self {
        Self {
            time: time.clone(),
            drift_ppm,
            wall: Arc::new(Mutex::new(Wall {
                offset_ms,
                frozen_ms: None,
            })),
        }
    }

    /// Steps the wall clock.
    pub fn jump_ms(&self, by_ms: i64) {
        let mut wall = self.wall();
        wall.offset_ms = wall.offset_ms.saturating_add(by_ms);
    }

    /// Stops the wall clock, or lets it go on from the true time and its offset.
    pub fn freeze(&self, frozen: bool) {
        let shown_ms = self.wall_ms();
        self.wall().frozen_ms = frozen.then_some(shown_ms);
    }

    fn gained_ms(&self) -> i64 {
        START_MS + i64::try_from(self.elapsed_us() / 1_000).unwrap_or(i64::MAX / 2)
    }

    fn elapsed_us(&self) -> u64 {
        let true_us = i128::from(self.time.now_us());
        let drifted = true_us + true_us * i128::from(self.drift_ppm) / 1_000_000;
        u64::try_from(drifted).unwrap_or(0)
    }

    /// The true time at which the monotonic clock shows at least this.
    fn true_end_us(&self, until_us: u64) -> u64 {
        let rate = 1_000_000 + i128::from(self.drift_ppm);
        // Rounded up: a sleep never ends early.
        let true_us = (i128::from(until_us) * 1_000_000 + rate - 1) / rate.max(1);
        u64::try_from(true_us).unwrap_or(u64::MAX).saturating_add(1)
    }

    fn wall(&self) -> MutexGuard<'_, Wall> {
        self.wall.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Clock for NodeClock {
    fn wall_ms(&self) -> i64 {
        let wall = *self.wall();
        wall.frozen_ms
            .unwrap_or_else(|| self.gained_ms().saturating_add(wall.offset_ms))
    }

    fn monotonic(&self) -> Duration {
        Duration::from_micros(self.elapsed_us())
    }
}

impl Sleep for NodeClock {
    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        self.sleep_until(self.monotonic().saturating_add(duration), self)
    }

    fn sleep_until(&self, until: Duration, _: &dyn Clock) -> BoxFuture<'static, ()> {
        let until_us = u64::try_from(until.as_nanos().div_ceil(1_000)).unwrap_or(u64::MAX);
        Box::pin(self.time.sleep_until_us(self.true_end_us(until_us)))
    }
}
