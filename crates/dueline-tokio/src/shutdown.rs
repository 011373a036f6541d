//! Ending the driver: finish, then cut and give back, then end the threads.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;
use std::time::Duration;

use dueline::BoxFuture;
use tokio::sync::Notify;

use crate::shared::Shared;
use crate::status::ShutdownReport;
use crate::work::{Stage, release};

/// How long the claims of cut calls may take to be given back, beyond the grace period.
const RELEASE: Duration = Duration::from_secs(5);
/// How long the threads may take to end when nothing is left for them.
const JOIN: Duration = Duration::from_secs(1);

#[derive(Debug, Default)]
pub(crate) struct Stop {
    begun: AtomicBool,
    aborted: AtomicBool,
    /// Everything that ran has finished within the grace period.
    finished: AtomicBool,
    abort: Notify,
}

/// How a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waited {
    Idle,
    TimeOver,
    Aborted,
}

impl Stop {
    pub(crate) fn has_begun(&self) -> bool {
        self.begun.load(Ordering::Acquire)
    }

    /// Stops everything at once.
    pub(crate) fn abort(&self, shared: &Shared) {
        self.begun.store(true, Ordering::Release);
        self.aborted.store(true, Ordering::Release);
        self.abort.notify_waiters();
        shared.pool.enter(Stage::Stopped);
        shared.calls.close();
        drop(shared.calls.cut());
        shared.inbox.nudge();
    }

    pub(crate) async fn run(&self, shared: &Arc<Shared>, grace: Duration) -> ShutdownReport {
        if self.begun.swap(true, Ordering::AcqRel) {
            if shared.pool.stage() < Stage::Stopped {
                self.abort(shared);
            }
            return self.end_threads(shared).await;
        }
        // Ticks first: one that began behind the end of calls would claim a call, give it back, and find
        // it due again.
        shared.pool.enter(Stage::Finishing);
        shared.calls.close();
        shared.inbox.nudge();
        let waited = self.wait(shared, shared.busy.idle(), grace).await;
        if waited == Waited::TimeOver {
            shared.pool.enter(Stage::Releasing);
            let claims = shared.calls.cut();
            tracing::info!(
                calls = claims.len(),
                "the grace period is over: calls are cut and given back"
            );
            for claim in claims {
                shared.pool.push_urgent(release(Arc::clone(shared), claim));
            }
            self.wait(shared, shared.busy.idle(), RELEASE).await;
        }
        self.finished
            .store(waited == Waited::Idle, Ordering::Release);
        self.end_threads(shared).await
    }

    async fn end_threads(&self, shared: &Arc<Shared>) -> ShutdownReport {
        shared.pool.enter(Stage::Stopped);
        shared.inbox.nudge();
        let alive = shared.pool.alive();
        let threads_stuck = match or_sleep(alive.idle(), shared.engine.runtime().sleep(JOIN)).await
        {
            Some(()) => 0,
            None => alive.running(),
        };
        ShutdownReport {
            finished: self.finished.load(Ordering::Acquire),
            released: shared.released.load(Ordering::Relaxed),
            unreleased: shared.unreleased.load(Ordering::Relaxed),
            threads_stuck,
            aborted: self.aborted.load(Ordering::Acquire),
        }
    }

    async fn wait(
        &self,
        shared: &Shared,
        idle: impl Future<Output = ()>,
        time: Duration,
    ) -> Waited {
        let mut aborted = pin!(self.abort.notified());
        aborted.as_mut().enable();
        if self.aborted.load(Ordering::Acquire) {
            return Waited::Aborted;
        }
        let idle_or_over = or_sleep(idle, shared.engine.runtime().sleep(time));
        let mut idle_or_over = pin!(idle_or_over);
        poll_fn(|context| {
            if aborted.as_mut().poll(context).is_ready() {
                return Poll::Ready(Waited::Aborted);
            }
            idle_or_over
                .as_mut()
                .poll(context)
                .map(|idle| idle.map_or(Waited::TimeOver, |()| Waited::Idle))
        })
        .await
    }
}

/// The future, or `None` if the sleep ends first.
async fn or_sleep(
    future: impl Future<Output = ()>,
    mut sleep: BoxFuture<'static, ()>,
) -> Option<()> {
    let mut future = pin!(future);
    poll_fn(|context| {
        if future.as_mut().poll(context).is_ready() {
            return Poll::Ready(Some(()));
        }
        sleep.as_mut().poll(context).map(|()| None)
    })
    .await
}
