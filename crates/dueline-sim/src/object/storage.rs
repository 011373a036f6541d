//! The platform's storage, with every commit and every tick taken down.

use std::fmt;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use dueline::BoxFuture;
use dueline::runtime::Clock;
use dueline::store::{Batch, Partition, StoreError};
use dueline::timers::{RunReport, TickBudget};
use dueline_history::{Tick, What};
use dueline_worker::simulated::SimulatedStorage;
use dueline_worker::{AlarmWrite, ObjectStorage, SqlTask};

use crate::disk::{commit_of, octets};
use crate::recorder::{Actor, Recorder};
use crate::tag::Tag;
use crate::time::NodeClock;

/// Ticks of one alarm have numbers of their own: that of the alarm and their place in it.
pub(super) const TICKS_PER_ALARM: u64 = 1_000;

/// Those who wait for durability, woken at each sync.
#[derive(Clone, Debug, Default)]
pub(super) struct Waiting(Arc<Mutex<Vec<Waker>>>);

impl Waiting {
    pub(super) fn wake(&self) {
        let waiting = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        for waker in waiting {
            waker.wake();
        }
    }
}

/// The storage of one instance.
pub(super) struct WatchedStorage {
    pub(super) inner: SimulatedStorage,
    pub(super) stage: Recorder,
    pub(super) engine: Actor,
    pub(super) clients: Actor,
    pub(super) epoch: u64,
    pub(super) clock: NodeClock,
    pub(super) budget: TickBudget,
    pub(super) waiting: Waiting,
}

impl ObjectStorage for WatchedStorage {
    fn read(&self, task: &mut SqlTask<'_>) -> Result<(), StoreError> {
        self.inner.read(task)
    }

    fn transaction(&self, task: &mut SqlTask<'_>) -> Result<(), StoreError> {
        self.inner.transaction(task)
    }

    fn get_alarm(&self) -> BoxFuture<'static, Result<Option<u64>, StoreError>> {
        self.inner.get_alarm()
    }

    fn set_alarm(&self, at_ms: u64) -> Result<AlarmWrite, StoreError> {
        let set = self.inner.set_alarm(at_ms);
        if set.is_err() {
            self.stage.mark("an alarm is refused");
        }
        set
    }

    fn delete_alarm(&self) -> Result<AlarmWrite, StoreError> {
        self.inner.delete_alarm()
    }

    fn sync(&self) -> BoxFuture<'static, Result<(), StoreError>> {
        let (waiting, stage) = (self.waiting.clone(), self.stage.clone());
        let mut synced = self.inner.sync();
        Box::pin(poll_fn(move |context| {
            // The simulated storage asks to be polled at once, however far off its sync is.
            let polled = synced
                .as_mut()
                .poll(&mut Context::from_waker(Waker::noop()));
            if polled.is_pending() {
                let mut waiting = waiting.0.lock().unwrap_or_else(PoisonError::into_inner);
                waiting.push(context.waker().clone());
            } else if matches!(polled, Poll::Ready(Err(_))) {
                stage.mark("it is not told whether a turn is durable");
            }
            polled
        }))
    }

    fn committed(&self, partition: &Partition, batches: &[Batch]) {
        let tag = Tag::current();
        let (actor, epoch) = match tag {
            Tag::Request(_) => (&self.clients, 0),
            Tag::Engine | Tag::Turn(_) => (&self.engine, self.epoch),
        };
        let none = [Batch::new()];
        // The engine may have settled wakes alone.
        let settles = batches.is_empty() && !matches!(tag, Tag::Request(_));
        let batches = if settles { &none } else { batches };
        for batch in batches {
            let commit = commit_of(tag, (0, epoch), partition, batch);
            self.stage.event(actor, What::Commit(commit));
        }
    }

    fn ticked(&self, tick: u32, partition: &Partition, began: Duration, report: &RunReport) {
        let Tag::Turn(alarm) = Tag::current() else {
            return;
        };
        let took = self.clock.monotonic().saturating_sub(began);
        let took_ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        let now_ms = u64::try_from(self.clock.wall_ms()).unwrap_or(0);
        let turn = alarm * TICKS_PER_ALARM + u64::from(tick);
        let tick = Tick::of(
            (0, turn),
            octets(partition.as_bytes()),
            (now_ms.saturating_sub(took_ms), took_ms),
            &self.budget,
            report,
        );
        if report.stopped_on_budget {
            self.stage.mark("a tick stops on its budget");
        }
        if report.held_back {
            self.stage.mark("a tick is refused by the store");
        }
        self.stage.event(&self.engine, What::Tick(tick));
    }
}

impl fmt::Debug for WatchedStorage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WatchedStorage").finish_non_exhaustive()
    }
}

/// Polls a future that waits for nothing but its turn.
pub(super) fn poll_idle<T>(future: &mut BoxFuture<'_, T>) -> Poll<T> {
    future
        .as_mut()
        .poll(&mut Context::from_waker(Waker::noop()))
}
