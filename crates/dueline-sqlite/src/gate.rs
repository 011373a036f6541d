use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};

use dueline::store::StoreError;

use crate::error::closed;

const OPEN: u8 = 0;
const HELD: u8 = 1;
const FAILED: u8 = 2;
const CLOSED: u8 = 3;

/// What new reads must pass.
///
/// *Held*: for a moment nobody may begin to read, because the outcome of a commit is in doubt or the
/// log is to be restarted; they wait. *Failed*: a doubt could not be settled; everything is
/// `Unavailable` until the file has been reopened. *Closed*: for good.
#[derive(Debug)]
pub(crate) struct Gate {
    state: AtomicU8,
    changing: Mutex<()>,
    changed: Condvar,
}

impl Gate {
    pub(crate) fn new() -> Self {
        Self {
            state: AtomicU8::new(OPEN),
            changing: Mutex::new(()),
            changed: Condvar::new(),
        }
    }

    /// Waits while the gate is held.
    pub(crate) fn pass(&self) -> Result<(), StoreError> {
        if self.state.load(Ordering::Acquire) == HELD {
            let mut changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
            while self.state.load(Ordering::Acquire) == HELD {
                changing = self
                    .changed
                    .wait(changing)
                    .unwrap_or_else(PoisonError::into_inner);
            }
        }
        self.check()
    }

    /// Never waits; for what is already inside.
    pub(crate) fn check(&self) -> Result<(), StoreError> {
        match self.state.load(Ordering::Acquire) {
            FAILED => Err(failed()),
            CLOSED => Err(closed()),
            _ => Ok(()),
        }
    }

    pub(crate) fn is_failed(&self) -> bool {
        self.state.load(Ordering::Acquire) == FAILED
    }

    /// Holds new readers back, if the gate is open.
    pub(crate) fn hold(&self) {
        self.change(OPEN, HELD);
    }

    /// Lets readers in again.
    pub(crate) fn release(&self) {
        self.change(HELD, OPEN);
    }

    pub(crate) fn fail(&self) {
        self.change(OPEN, FAILED);
        self.change(HELD, FAILED);
    }

    pub(crate) fn recover(&self) {
        self.change(FAILED, OPEN);
    }

    pub(crate) fn close(&self) {
        let _changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        self.state.store(CLOSED, Ordering::Release);
        self.changed.notify_all();
    }

    fn change(&self, from: u8, to: u8) {
        let _changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        if self.state.load(Ordering::Acquire) == from {
            self.state.store(to, Ordering::Release);
        }
        self.changed.notify_all();
    }
}

/// What calls end in while the store waits to be reopened.
pub(crate) fn failed() -> StoreError {
    StoreError::unavailable(
        "a commit failed and could not be settled; the store is closed until its file opens again",
    )
}
