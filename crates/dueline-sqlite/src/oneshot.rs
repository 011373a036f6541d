//! One answer from one thread to one future.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

enum State<T> {
    Waiting(Option<Waker>),
    Answered(T),
    /// The answer was taken, or will never come.
    Over,
}

struct Slot<T>(Mutex<State<T>>);

impl<T> Slot<T> {
    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn replace(&self, state: State<T>) {
        let before = std::mem::replace(&mut *self.lock(), state);
        // Outside of the lock: a waker may run or drop anything.
        if let State::Waiting(Some(waker)) = before {
            waker.wake();
        }
    }
}

/// Where the answer is sent. Dropped without one, the future learns that none will come.
pub(crate) struct Answer<T>(Option<Arc<Slot<T>>>);

impl<T> Answer<T> {
    pub(crate) fn send(mut self, value: T) {
        if let Some(slot) = self.0.take() {
            slot.replace(State::Answered(value));
        }
    }
}

impl<T> Drop for Answer<T> {
    fn drop(&mut self) {
        if let Some(slot) = self.0.take() {
            slot.replace(State::Over);
        }
    }
}

/// The future of an answer: `None` if it will never come.
pub(crate) struct Awaited<T>(Arc<Slot<T>>);

impl<T> Future for Awaited<T> {
    type Output = Option<T>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<T>> {
        let mut state = self.0.lock();
        if let State::Waiting(waker) = &mut *state {
            match waker {
                Some(known) => known.clone_from(context.waker()),
                None => *waker = Some(context.waker().clone()),
            }
            return Poll::Pending;
        }
        match std::mem::replace(&mut *state, State::Over) {
            State::Answered(value) => Poll::Ready(Some(value)),
            State::Waiting(_) | State::Over => Poll::Ready(None),
        }
    }
}

pub(crate) fn oneshot<T>() -> (Answer<T>, Awaited<T>) {
    let slot = Arc::new(Slot(Mutex::new(State::Waiting(None))));
    (Answer(Some(Arc::clone(&slot))), Awaited(slot))
}
