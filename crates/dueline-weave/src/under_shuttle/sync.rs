//! What takes the place of `std::sync` in the copies.
//!
//! A wait with a time limit ends as the model says: it never does before it is notified, or it ends at
//! any moment, by time or for no reason, as a wait may.

pub(crate) use shuttle::sync::atomic;
pub(crate) use shuttle::sync::{Arc, LockResult, PoisonError, TryLockError, TryLockResult, Weak};

use std::cell::Cell;
use std::ops::{Deref, DerefMut};
use std::time::Duration;

use shuttle::rand::Rng;

std::thread_local! {
    static TIME_PASSES: Cell<bool> = const { Cell::new(false) };
}

/// Decides what waits with a time limit do.
pub(crate) fn let_time_pass(passes: bool) {
    TIME_PASSES.set(passes);
}

/// The checker's mutex, whose guard knows it.
#[derive(Debug, Default)]
pub(crate) struct Mutex<T>(shuttle::sync::Mutex<T>);

#[derive(Debug)]
pub(crate) struct MutexGuard<'a, T> {
    mutex: &'a Mutex<T>,
    guard: shuttle::sync::MutexGuard<'a, T>,
}

impl<T> Mutex<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self(shuttle::sync::Mutex::new(value))
    }

    pub(crate) fn lock(&self) -> LockResult<MutexGuard<'_, T>> {
        self.guarded(self.0.lock())
    }

    pub(crate) fn try_lock(&self) -> TryLockResult<MutexGuard<'_, T>> {
        match self.0.try_lock() {
            Ok(guard) => Ok(MutexGuard { mutex: self, guard }),
            Err(TryLockError::WouldBlock) => Err(TryLockError::WouldBlock),
            Err(TryLockError::Poisoned(poisoned)) => {
                let guard = poisoned.into_inner();
                let guard = MutexGuard { mutex: self, guard };
                Err(TryLockError::Poisoned(PoisonError::new(guard)))
            }
        }
    }

    fn guarded<'a>(
        &'a self,
        locked: LockResult<shuttle::sync::MutexGuard<'a, T>>,
    ) -> LockResult<MutexGuard<'a, T>> {
        match locked {
            Ok(guard) => Ok(MutexGuard { mutex: self, guard }),
            Err(poisoned) => {
                let guard = poisoned.into_inner();
                Err(PoisonError::new(MutexGuard { mutex: self, guard }))
            }
        }
    }
}

impl<T> Deref for MutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.guard
    }
}

impl<T> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.guard
    }
}

#[derive(Debug, Default)]
pub(crate) struct Condvar(shuttle::sync::Condvar);

#[derive(Clone, Copy, Debug)]
pub(crate) struct WaitTimeoutResult(bool);

impl WaitTimeoutResult {
    pub(crate) fn timed_out(self) -> bool {
        self.0
    }
}

impl Condvar {
    pub(crate) const fn new() -> Self {
        Self(shuttle::sync::Condvar::new())
    }

    pub(crate) fn wait<'a, T>(&self, guard: MutexGuard<'a, T>) -> LockResult<MutexGuard<'a, T>> {
        let MutexGuard { mutex, guard } = guard;
        mutex.guarded(self.0.wait(guard))
    }

    pub(crate) fn wait_while<'a, T>(
        &self,
        mut guard: MutexGuard<'a, T>,
        mut waits: impl FnMut(&mut T) -> bool,
    ) -> LockResult<MutexGuard<'a, T>> {
        while waits(&mut guard) {
            guard = self.wait(guard)?;
        }
        Ok(guard)
    }

    pub(crate) fn wait_timeout<'a, T>(
        &self,
        guard: MutexGuard<'a, T>,
        _: Duration,
    ) -> LockResult<(MutexGuard<'a, T>, WaitTimeoutResult)> {
        let (locked, timed_out) = if TIME_PASSES.get() {
            let mutex = guard.mutex;
            drop(guard);
            super::thread::yield_now();
            (mutex.lock(), shuttle::rand::thread_rng().r#gen())
        } else {
            (self.wait(guard), false)
        };
        let timed_out = WaitTimeoutResult(timed_out);
        match locked {
            Ok(guard) => Ok((guard, timed_out)),
            Err(poisoned) => Err(PoisonError::new((poisoned.into_inner(), timed_out))),
        }
    }

    pub(crate) fn wait_timeout_while<'a, T>(
        &self,
        mut guard: MutexGuard<'a, T>,
        time: Duration,
        mut waits: impl FnMut(&mut T) -> bool,
    ) -> LockResult<(MutexGuard<'a, T>, WaitTimeoutResult)> {
        while waits(&mut guard) {
            let (again, timed_out) = self.wait_timeout(guard, time)?;
            guard = again;
            if timed_out.timed_out() {
                return Ok((guard, timed_out));
            }
        }
        Ok((guard, WaitTimeoutResult(false)))
    }

    pub(crate) fn notify_one(&self) {
        self.0.notify_one();
    }

    pub(crate) fn notify_all(&self) {
        self.0.notify_all();
    }
}
