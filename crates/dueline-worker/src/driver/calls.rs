//! Detached calls under way: polled beside whatever the alarm does.

use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::{Context, Poll};
use std::time::Duration;

use dueline::BoxFuture;
use dueline::timers::{ClaimedCall, Counts, Engine};

/// Calls, each of which settles itself. Their number is bounded by the engine's slots.
#[derive(Default)]
pub(crate) struct Calls {
    running: Vec<Running>,
    settled: Counts,
}

struct Running {
    /// When its deadline is by the monotonic clock; zero for a call that was begun beside others which the
    /// alarm waits for.
    until: Duration,
    call: BoxFuture<'static, Counts>,
}

impl Calls {
    pub(crate) fn begin(&mut self, engine: &Engine, call: ClaimedCall, is_beside: bool) {
        let engine = engine.clone();
        let until = if is_beside {
            Duration::ZERO
        } else {
            let now = engine.runtime().monotonic();
            now.saturating_add(call.deadline())
        };
        self.running.push(Running {
            until,
            call: Box::pin(async move { engine.settle(call.run().await).await }),
        });
    }

    /// When the last deadline of those calls is that were not begun beside others, by the monotonic clock.
    pub(crate) fn until(&self) -> Duration {
        let until = self.running.iter().map(|running| running.until);
        until.max().unwrap_or_default()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.running.is_empty()
    }

    /// What became of the timers whose calls have ended.
    pub(crate) fn settled(&self) -> Counts {
        self.settled
    }

    /// Lets every call go on. Whether one has been settled.
    pub(crate) fn poll(&mut self, context: &mut Context<'_>) -> bool {
        let before = self.running.len();
        let settled = &mut self.settled;
        self.running
            .retain_mut(|running| match running.call.as_mut().poll(context) {
                Poll::Ready(counts) => {
                    settled.add(&counts);
                    false
                }
                Poll::Pending => true,
            });
        self.running.len() < before
    }

    /// Runs something while the calls go on.
    pub(crate) async fn beside<T>(&mut self, work: impl Future<Output = T>) -> T {
        let mut work = pin!(work);
        poll_fn(|context| {
            let done = work.as_mut().poll(context);
            if done.is_pending() {
                self.poll(context);
            }
            done
        })
        .await
    }
}

impl fmt::Debug for Calls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Calls")
            .field("running", &self.running.len())
            .finish_non_exhaustive()
    }
}
