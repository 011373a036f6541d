//! How a thread waits for anything to happen.

use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

/// A flag that a thread waits for. Raised before the wait it is not lost; raised twice it counts
/// once.
#[derive(Debug, Default)]
pub(crate) struct Signal {
    raised: Mutex<bool>,
    changed: Condvar,
    /// Who waits for it as a task, where nothing runs on threads.
    #[cfg(feature = "simulation")]
    task: Mutex<Option<Waker>>,
}

impl Signal {
    pub(crate) fn raise(&self) {
        let mut raised = self.lock();
        if !*raised {
            *raised = true;
            drop(raised);
            self.changed.notify_one();
            #[cfg(feature = "simulation")]
            if let Some(task) = self.task().take() {
                task.wake();
            }
        }
    }

    /// Waits as a task until the flag is raised, and lowers it.
    #[cfg(feature = "simulation")]
    pub(crate) fn poll_wait(&self, context: &mut Context<'_>) -> Poll<()> {
        *self.task() = Some(context.waker().clone());
        if std::mem::take(&mut *self.lock()) {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    }

    #[cfg(feature = "simulation")]
    fn task(&self) -> MutexGuard<'_, Option<Waker>> {
        self.task.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until the flag is raised, and lowers it.
    pub(crate) fn wait(&self) {
        let mut raised = self
            .changed
            .wait_while(self.lock(), |raised| !*raised)
            .unwrap_or_else(PoisonError::into_inner);
        *raised = false;
    }

    /// Waits until the flag is raised or this much time has passed, and lowers it.
    pub(crate) fn wait_for(&self, time: Duration) {
        let (mut raised, _) = self
            .changed
            .wait_timeout_while(self.lock(), time, |raised| !*raised)
            .unwrap_or_else(PoisonError::into_inner);
        *raised = false;
    }

    #[cfg(test)]
    pub(crate) fn raised_for_test(&self) -> MutexGuard<'_, bool> {
        self.lock()
    }

    fn lock(&self) -> MutexGuard<'_, bool> {
        self.raised.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Wake for Signal {
    fn wake(self: Arc<Self>) {
        self.raise();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.raise();
    }
}

/// Runs a future on this thread.
pub(crate) fn block_on<F: Future>(future: F, signal: &Arc<Signal>) -> F::Output {
    let waker = Waker::from(Arc::clone(signal));
    let mut context = Context::from_waker(&waker);
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return output;
        }
        signal.wait();
    }
}
