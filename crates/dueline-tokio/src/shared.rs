//! What the driver's threads and its handle share.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use dueline::store::WakeStore;
use dueline::timers::{Engine, TickBudget};
use tokio::sync::oneshot;

use crate::busy::Busy;
use crate::looks::Looks;
use crate::signal::Signal;
use crate::status::Status;
use crate::task_host::TaskHost;
use crate::work::{Calls, Event, Pool};

/// How the driver was built.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) tick_threads: usize,
    pub(crate) ticks_max: usize,
    pub(crate) window_max: usize,
    pub(crate) budget: TickBudget,
    pub(crate) audit: Option<AuditPace>,
}

/// How fast the audit walks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AuditPace {
    pub(crate) partitions_per_second: usize,
    pub(crate) pause: Duration,
}

#[derive(Debug)]
pub(crate) struct Shared {
    /// The engine over the store of the threads.
    pub(crate) engine: Engine,
    /// The store of the threads.
    pub(crate) store: Arc<dyn WakeStore>,
    pub(crate) looks: Arc<Looks>,
    pub(crate) pool: Arc<Pool>,
    pub(crate) calls: Arc<Calls>,
    pub(crate) host: Arc<dyn TaskHost>,
    /// Jobs and calls.
    pub(crate) busy: Busy,
    pub(crate) inbox: Inbox,
    pub(crate) budget: TickBudget,
    pub(crate) cautious_until_ms: Option<u64>,
    pub(crate) paused: AtomicBool,
    pub(crate) status: Mutex<Status>,
    /// Claims given back by a clean stop, and those that could not be.
    pub(crate) released: AtomicU64,
    pub(crate) unreleased: AtomicU64,
}

impl Shared {
    pub(crate) fn is_paused(&self) -> bool {
        self.paused.load(Ordering::Acquire)
    }

    pub(crate) fn status(&self) -> MutexGuard<'_, Status> {
        self.status.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What the scheduler is told; every message wakes it.
#[derive(Debug)]
pub(crate) struct Inbox {
    messages: Mutex<Messages>,
    signal: Arc<Signal>,
}

#[derive(Debug, Default)]
pub(crate) struct Messages {
    pub(crate) events: Vec<Event>,
    /// Who waits for the driver to have nothing left to do.
    pub(crate) drains: Vec<oneshot::Sender<usize>>,
}

impl Inbox {
    pub(crate) fn new(signal: Arc<Signal>) -> Self {
        Self {
            messages: Mutex::default(),
            signal,
        }
    }

    pub(crate) fn push(&self, event: Event) {
        self.lock().events.push(event);
        self.signal.raise();
    }

    pub(crate) fn push_drain(&self, waiting: oneshot::Sender<usize>) {
        self.lock().drains.push(waiting);
        self.signal.raise();
    }

    /// Makes the scheduler look at everything again.
    pub(crate) fn nudge(&self) {
        self.signal.raise();
    }

    /// Whether something was said that the scheduler has not taken note of.
    pub(crate) fn has_events(&self) -> bool {
        !self.lock().events.is_empty()
    }

    pub(crate) fn take(&self) -> Messages {
        std::mem::take(&mut *self.lock())
    }

    fn lock(&self) -> MutexGuard<'_, Messages> {
        self.messages.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
