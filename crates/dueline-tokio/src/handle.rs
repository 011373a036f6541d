use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Poll;
use std::time::Duration;

use dueline::store::{NamespaceStore, Partition, WakeStore};
use dueline::timers::{Engine, TimerError, TimerKind, Timers};
use tokio::sync::oneshot;

use crate::shared::Shared;
use crate::shutdown::Stop;
use crate::status::{DrainReport, ShutdownReport, Status};
use crate::store::DriverStore;

/// A running driver. Cheap to clone; when the last clone is dropped the driver stops at once, as
/// after a crash: nothing is lost, and cut runs come back.
#[derive(Clone)]
pub struct Handle {
    inner: Arc<Inner>,
}

struct Inner {
    shared: Arc<Shared>,
    store: DriverStore,
    timers: Timers,
    engine: Engine,
    stop: Stop,
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.stop.abort(&self.shared);
    }
}

impl Handle {
    pub(crate) fn new(
        shared: Arc<Shared>,
        store: DriverStore,
        timers: Timers,
        engine: Engine,
    ) -> Self {
        Self {
            inner: Arc::new(Inner {
                shared,
                store,
                timers,
                engine,
                stop: Stop::default(),
            }),
        }
    }

    /// The verbs of scheduling, over the store that wakes this driver.
    pub fn timers(&self) -> &Timers {
        &self.inner.timers
    }

    /// The store that wakes this driver: for everybody who puts timers into it.
    pub fn store(&self) -> Arc<dyn WakeStore> {
        self.inner.store.to_wake_store()
    }

    /// The same as a [`NamespaceStore`], for handlers.
    pub fn namespace_store(&self) -> Arc<dyn NamespaceStore> {
        self.inner.store.to_store()
    }

    /// What the driver is doing and has done.
    pub fn status(&self) -> Status {
        let mut status = *self.inner.shared.status();
        status.paused = self.inner.shared.is_paused();
        status.stopping = self.inner.stop.has_begun();
        status
    }

    /// Starts no further tick until [`resume`](Self::resume). What runs goes on; timers stay due.
    pub fn pause(&self) {
        self.inner.shared.paused.store(true, Ordering::Release);
        self.inner.shared.inbox.nudge();
    }

    /// Ends a [`pause`](Self::pause): what has come due meanwhile runs at once.
    pub fn resume(&self) {
        self.inner.shared.paused.store(false, Ordering::Release);
        self.inner.shared.inbox.nudge();
    }

    /// Pauses one kind of one partition, durably, and waits until no run of it that began before is
    /// under way in this process. Returns whether it was not paused before. Ended by
    /// [`Timers::resume`].
    ///
    /// # Errors
    /// What the store says.
    pub async fn pause_kind(
        &self,
        partition: &Partition,
        kind: TimerKind,
    ) -> Result<bool, TimerError> {
        self.inner.engine.pause_and_drain(partition, kind).await
    }

    /// Waits until everything that is due has run, calls included, or this much time has passed. The
    /// driver goes on as before; a timer that becomes due meanwhile is waited for too.
    ///
    /// A paused driver runs nothing, so its drain ends by the deadline, unless it is resumed.
    pub async fn drain(&self, deadline: Duration) -> DrainReport {
        let shared = &self.inner.shared;
        let (answer, answered) = oneshot::channel();
        if !self.inner.stop.has_begun() {
            shared.inbox.push_drain(answer);
        }
        let mut answered = pin!(answered);
        let mut deadline = shared.engine.runtime().sleep(deadline);
        let held = poll_fn(|context| {
            if let Poll::Ready(held) = answered.as_mut().poll(context) {
                return Poll::Ready(held.ok());
            }
            deadline.as_mut().poll(context).map(|()| None)
        })
        .await;
        DrainReport {
            idle: held.is_some(),
            partitions_held_back: held.unwrap_or_else(|| self.status().partitions_held_back),
        }
    }

    /// Stops the driver: no tick and no call begins from now on, and what runs has this long to
    /// finish. Then ticks are dropped where they stand and calls are cut and given back, so that
    /// their timers are due at once with no attempt charged.
    ///
    /// A second call while the first waits stops everything at once: nothing is lost, but the timers
    /// of cut calls come back only when their claims end.
    pub async fn shutdown(&self, grace: Duration) -> ShutdownReport {
        self.inner.stop.run(&self.inner.shared, grace).await
    }
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handle")
            .field("status", &self.status())
            .finish_non_exhaustive()
    }
}
