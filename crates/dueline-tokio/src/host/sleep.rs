use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::Duration;

use dueline::BoxFuture;
use dueline::runtime::{Clock, Sleep};

use super::{SystemClock, wake_exactly};

/// Sleeps that end as exactly as the system wakes a thread; the timer of an async runtime counts
/// milliseconds.
///
/// One thread waits for the first sleep to end; it stops when the last clone is dropped.
#[derive(Clone)]
pub struct PreciseSleep {
    alarm: Arc<Alarm>,
}

/// Keeps the thread running; the thread itself holds only the bell.
struct Alarm {
    bell: Arc<Bell>,
    clock: Arc<SystemClock>,
}

#[derive(Default)]
struct Bell {
    table: Mutex<Table>,
    changed: Condvar,
}

#[derive(Default)]
struct Table {
    next_id: u64,
    sleeps: BTreeMap<(Duration, u64), Waker>,
    stopped: bool,
}

impl PreciseSleep {
    /// Starts the thread. Sleeps are measured by the monotonic half of this clock.
    ///
    /// # Errors
    /// If the system gives no thread.
    pub fn start(clock: Arc<SystemClock>) -> io::Result<Self> {
        let bell = Arc::new(Bell::default());
        let of_thread = (Arc::clone(&bell), Arc::clone(&clock));
        thread::Builder::new()
            .name("dueline-timer".to_owned())
            .spawn(move || of_thread.0.ring(&of_thread.1))?;
        Ok(Self {
            alarm: Arc::new(Alarm { bell, clock }),
        })
    }
}

impl Bell {
    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes sleeps that are over, until it is stopped.
    fn ring(&self, clock: &SystemClock) {
        wake_exactly();
        let mut table = self.lock();
        while !table.stopped {
            let now = clock.monotonic();
            let later = table.sleeps.split_off(&(now, u64::MAX));
            let over = std::mem::replace(&mut table.sleeps, later);
            if !over.is_empty() {
                drop(table);
                over.into_values().for_each(Waker::wake);
                table = self.lock();
                continue;
            }
            let first = table.sleeps.first_key_value().map(|(place, _)| place.0);
            table = match first {
                Some(end) => {
                    self.changed
                        .wait_timeout(table, end.saturating_sub(now))
                        .unwrap_or_else(PoisonError::into_inner)
                        .0
                }
                None => self
                    .changed
                    .wait(table)
                    .unwrap_or_else(PoisonError::into_inner),
            };
        }
    }
}

impl Drop for Alarm {
    fn drop(&mut self) {
        let left = {
            let mut table = self.bell.lock();
            table.stopped = true;
            std::mem::take(&mut table.sleeps)
        };
        self.bell.changed.notify_one();
        drop(left);
    }
}

impl Sleep for PreciseSleep {
    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        let end = self.alarm.clock.monotonic().saturating_add(duration);
        let mut table = self.alarm.bell.lock();
        let id = table.next_id;
        table.next_id = id.wrapping_add(1);
        drop(table);
        Box::pin(OneSleep {
            // The sleep keeps the thread running: it must end even if the runtime is dropped.
            alarm: Arc::clone(&self.alarm),
            place: (end, id),
        })
    }

    fn is_real_time(&self) -> bool {
        true
    }
}

struct OneSleep {
    alarm: Arc<Alarm>,
    place: (Duration, u64),
}

impl Future for OneSleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if self.alarm.clock.monotonic() >= self.place.0 {
            return Poll::Ready(());
        }
        let mut table = self.alarm.bell.lock();
        let earlier = table
            .sleeps
            .first_key_value()
            .is_none_or(|(first, _)| self.place < *first);
        let replaced = table.sleeps.insert(self.place, context.waker().clone());
        drop(table);
        drop(replaced);
        if earlier {
            self.alarm.bell.changed.notify_one();
        }
        Poll::Pending
    }
}

impl Drop for OneSleep {
    fn drop(&mut self) {
        // The waker is dropped outside the lock: it may own a sleep itself.
        let waker = self.alarm.bell.lock().sleeps.remove(&self.place);
        drop(waker);
    }
}

impl fmt::Debug for PreciseSleep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PreciseSleep")
            .field("sleeping", &self.alarm.bell.lock().sleeps.len())
            .finish()
    }
}
