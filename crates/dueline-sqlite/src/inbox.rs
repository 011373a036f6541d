//! A bounded queue between callers and the thread that serves them.
//!
//! A push is *eager* (the serving thread is woken at once) or *lazy*: the caller is a thread that
//! will serve the queue itself before it waits. A lazy push must not be stranded if the caller never
//! does, and must not wake the serving thread each time either; so while there are lazy pushes the
//! serving thread looks in every [`TICK`] and takes over what has stood at the front for a whole
//! tick. After some quiet ticks it goes back to sleeping without a time limit; the next lazy push
//! wakes it once, to watch again.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::Duration;

use crate::foreign::wake_all;

/// How often the serving thread looks for lazily pushed work that nobody took.
const TICK: Duration = Duration::from_millis(2);
/// After so many ticks without a lazy push it stops looking.
const QUIET_TICKS: u32 = 32;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Push {
    Eager,
    Lazy,
}

/// Why a push was refused; the item comes back.
pub(crate) enum Refused<T> {
    /// No room; the waker is called when there is.
    Full(T),
    /// The queue is closed.
    Closed(T),
}

/// Why the serving thread was woken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Woken {
    /// There may be work.
    Work,
    /// The time limit passed.
    Timeout,
    /// The queue is closed and empty.
    Closed,
}

#[derive(Debug)]
pub(crate) struct Inbox<T> {
    state: Mutex<State<T>>,
    pushed: Condvar,
    capacity: usize,
}

#[derive(Debug)]
struct State<T> {
    items: VecDeque<T>,
    /// How many items have been taken so far: the name of the item at the front.
    taken: u64,
    /// Wake the serving thread for what is queued.
    urgent: bool,
    /// Wake it to look at everything: whoever takes what is queued does not answer for that.
    nudged: bool,
    watching: bool,
    lazy_since_tick: bool,
    closed: bool,
    waiting_for_room: Vec<Waker>,
}

impl<T> State<T> {
    /// Whether the serving thread must not go on waiting.
    fn is_called(&self) -> bool {
        self.urgent || self.nudged
    }
}

impl<T> Inbox<T> {
    pub(crate) fn new(capacity: usize) -> Self {
        let state = State {
            items: VecDeque::new(),
            taken: 0,
            urgent: false,
            nudged: false,
            watching: false,
            lazy_since_tick: false,
            closed: false,
            waiting_for_room: Vec::new(),
        };
        Self {
            state: Mutex::new(state),
            pushed: Condvar::new(),
            capacity,
        }
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn push(&self, item: T, how: Push, waker: &Waker) -> Result<(), Refused<T>> {
        let mut state = self.lock();
        if state.closed {
            return Err(Refused::Closed(item));
        }
        if state.items.len() >= self.capacity {
            state.waiting_for_room.push(waker.clone());
            return Err(Refused::Full(item));
        }
        state.items.push_back(item);
        let wake = match how {
            Push::Eager => !std::mem::replace(&mut state.urgent, true),
            Push::Lazy => {
                state.lazy_since_tick = true;
                !std::mem::replace(&mut state.watching, true)
            }
        };
        drop(state);
        if wake {
            self.pushed.notify_one();
        }
        Ok(())
    }

    /// Takes from the front for as long as `wanted` agrees to the next item.
    pub(crate) fn take(&self, mut wanted: impl FnMut(&T) -> bool) -> Vec<T> {
        let mut taken = Vec::new();
        let mut state = self.lock();
        while let Some(item) = state.items.front() {
            if !wanted(item) {
                break;
            }
            state.taken += 1;
            taken.extend(state.items.pop_front());
        }
        // What is left has its own claim on the serving thread.
        state.urgent = !state.items.is_empty();
        let more = state.urgent;
        let room = std::mem::take(&mut state.waiting_for_room);
        drop(state);
        if more {
            self.pushed.notify_one();
        }
        wake_all(room);
        taken
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.lock().items.is_empty()
    }

    /// Wakes one serving thread, also if another thread takes what is queued meanwhile.
    pub(crate) fn nudge(&self) {
        self.lock().nudged = true;
        self.pushed.notify_one();
    }

    /// Refuses what comes from now on. What is queued is still served.
    pub(crate) fn close(&self) {
        let mut state = self.lock();
        state.closed = true;
        let room = std::mem::take(&mut state.waiting_for_room);
        drop(state);
        wake_all(room);
        self.pushed.notify_all();
    }

    /// Waits for work, for the end, or for the time limit. For serving threads.
    pub(crate) fn wait(&self, limit: Option<Duration>) -> Woken {
        let mut state = self.lock();
        let mut quiet_ticks = 0;
        loop {
            if state.is_called() {
                state.urgent = false;
                state.nudged = false;
                return Woken::Work;
            }
            if state.closed {
                return if state.items.is_empty() {
                    Woken::Closed
                } else {
                    Woken::Work
                };
            }
            if let Some(limit) = limit {
                let (after, timed_out) = self
                    .pushed
                    .wait_timeout(state, limit)
                    .unwrap_or_else(PoisonError::into_inner);
                state = after;
                if timed_out.timed_out() && !state.is_called() && !state.closed {
                    return Woken::Timeout;
                }
            } else if state.watching {
                let front = (!state.items.is_empty()).then_some(state.taken);
                let (after, timed_out) = self
                    .pushed
                    .wait_timeout(state, TICK)
                    .unwrap_or_else(PoisonError::into_inner);
                state = after;
                if !timed_out.timed_out() {
                    continue;
                }
                if front == Some(state.taken) && !state.items.is_empty() {
                    return Woken::Work;
                }
                quiet_ticks = if std::mem::take(&mut state.lazy_since_tick) {
                    0
                } else {
                    quiet_ticks + 1
                };
                state.watching = quiet_ticks < QUIET_TICKS || !state.items.is_empty();
            } else {
                state = self
                    .pushed
                    .wait(state)
                    .unwrap_or_else(PoisonError::into_inner);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A store failed under a thread that commits itself; the nudge told the writer thread to open the
    /// file again. The next thread took what was queued and the nudge with it, and the store stayed
    /// failed for as long as nobody pushed eagerly.
    #[test]
    fn a_nudge_is_not_taken_with_what_is_queued() {
        let inbox = Inbox::new(2);
        assert!(inbox.push("work", Push::Lazy, Waker::noop()).is_ok());
        inbox.nudge();
        assert_eq!(inbox.take(|_| true), ["work"]);
        assert_eq!(inbox.wait(Some(Duration::ZERO)), Woken::Work);
        assert_eq!(inbox.wait(Some(Duration::ZERO)), Woken::Timeout);
    }
}
