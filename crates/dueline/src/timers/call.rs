use std::any::Any;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::activity::Running;
use super::overlay::Overlay;
use super::registry::{Handler, Registration};
use super::run::CLAIM_SLACK_MS;
use super::slots::Slot;
use super::{DetachedHandler, DueTimer, Fired, HandlerError, RetryPolicy, TimerCtx, TimerKind};
use crate::future::{BoxFuture, MaybeSendSync, catch_panic, or_deadline};
use crate::mutants::{Mutant, planted};
use crate::runtime::Runtime;
use crate::store::{NamespaceStore, Partition};

#[cfg(not(target_arch = "wasm32"))]
pub(crate) type CallOutput = Box<dyn Any + Send + Sync>;
#[cfg(target_arch = "wasm32")]
pub(crate) type CallOutput = Box<dyn Any>;

/// A detached handler with the type of its output hidden.
pub(crate) trait ErasedDetached: MaybeSendSync {
    fn call<'a>(
        &'a self,
        ctx: &'a TimerCtx<'a>,
        timer: &'a DueTimer,
    ) -> BoxFuture<'a, Result<CallOutput, HandlerError>>;

    fn settle<'a>(
        &'a self,
        ctx: &'a TimerCtx<'a>,
        timer: &'a DueTimer,
        output: &'a CallOutput,
    ) -> BoxFuture<'a, Result<Fired, HandlerError>>;

    fn retry_policy(&self, timer: &DueTimer) -> Option<RetryPolicy>;

    fn deadline_ms(&self, timer: &DueTimer) -> Option<u64>;
}

pub(crate) fn erase(handler: impl DetachedHandler) -> Arc<dyn ErasedDetached> {
    Arc::new(Erased(handler))
}

struct Erased<H>(H);

impl<H: DetachedHandler> ErasedDetached for Erased<H> {
    fn call<'a>(
        &'a self,
        ctx: &'a TimerCtx<'a>,
        timer: &'a DueTimer,
    ) -> BoxFuture<'a, Result<CallOutput, HandlerError>> {
        Box::pin(async move {
            let output = self.0.call(ctx, timer).await?;
            let output: CallOutput = Box::new(output);
            Ok(output)
        })
    }

    fn settle<'a>(
        &'a self,
        ctx: &'a TimerCtx<'a>,
        timer: &'a DueTimer,
        output: &'a CallOutput,
    ) -> BoxFuture<'a, Result<Fired, HandlerError>> {
        match output.downcast_ref::<H::Output>() {
            Some(output) => self.0.settle(ctx, timer, output),
            None => Box::pin(std::future::ready(Err(HandlerError::new(
                "the output belongs to another handler",
            )))),
        }
    }

    fn retry_policy(&self, timer: &DueTimer) -> Option<RetryPolicy> {
        self.0.retry_policy(timer)
    }

    fn deadline_ms(&self, timer: &DueTimer) -> Option<u64> {
        self.0.deadline_ms(timer)
    }
}

/// The durable claim of a timer: what a clean stop gives back.
#[derive(Clone, Debug)]
pub struct Claim {
    pub(crate) partition: Partition,
    pub(crate) timer: DueTimer,
}

impl Claim {
    /// The partition of the claimed timer.
    pub fn partition(&self) -> &Partition {
        &self.partition
    }

    /// The claimed timer as it stands in its row.
    pub fn timer(&self) -> &DueTimer {
        &self.timer
    }

    /// When the claim ends and the timer comes back by itself, in milliseconds since 1970.
    pub fn ends_at_ms(&self) -> u64 {
        self.timer.key().due_ms
    }
}

/// How late a call may begin and still have its whole deadline: half of the time to settle.
const LATE_START_MAX: Duration = Duration::from_millis(CLAIM_SLACK_MS / 2);

/// A claimed timer whose call is to be run, outside the tick, by the driver.
///
/// It holds a slot of its kind until it is dropped or settled.
#[must_use = "a claimed call that is not run comes back only when its claim ends"]
pub struct ClaimedCall {
    pub(crate) claim: Claim,
    pub(crate) registration: Registration,
    pub(crate) store: Arc<dyn NamespaceStore>,
    pub(crate) runtime: Runtime,
    /// When the claim was planned, by the monotonic clock.
    pub(crate) since: Duration,
    /// Held until the call is settled.
    pub(crate) _slot: Slot,
    /// Held until the call is settled.
    pub(crate) _running: Running,
}

impl ClaimedCall {
    /// The claim, to be released if the call is dropped.
    pub fn claim(&self) -> &Claim {
        &self.claim
    }

    /// The kind of the timer, and so whose slot the call holds.
    pub fn kind(&self) -> TimerKind {
        self.claim.timer.kind()
    }

    /// How long the call may take, if it begins at once.
    pub fn deadline(&self) -> Duration {
        Duration::from_millis(self.registration.deadline_ms_of(&self.claim.timer))
    }

    /// What is left of the claim for the call: its deadline, or less if it begins late. A call must
    /// be over before its claim is, or the timer would run a second time beside it.
    fn time_left(&self) -> Duration {
        let waited = self.runtime.monotonic().saturating_sub(self.since);
        let deadline = self.deadline();
        if planted(Mutant::CallOutlivesClaim) {
            return deadline;
        }
        deadline
            .saturating_add(LATE_START_MAX)
            .saturating_sub(waited)
            .min(deadline)
    }

    /// Runs the call: to its end, its deadline or its panic, which all end in a [`FinishedCall`].
    ///
    /// One that begins so late (the tick that claimed it went on, the store was slow) that its claim
    /// would end first has less time; if none is left it does not begin, and its attempt is given
    /// back.
    pub async fn run(self) -> FinishedCall {
        let deadline = self.time_left();
        if deadline.is_zero() {
            return FinishedCall {
                call: self,
                result: Err(HandlerError::new(
                    "the call could not begin before its claim was about to end",
                )),
                is_excused: true,
            };
        }
        let overlay = Overlay::new(Arc::clone(&self.store), self.claim.partition.clone());
        let result = match &self.registration.handler {
            Handler::Detached(handler) => {
                let ctx = TimerCtx::new(&overlay, &self.claim.partition, self.runtime.now_ms());
                let call = catch_panic(|| handler.call(&ctx, &self.claim.timer));
                or_deadline(call, || self.runtime.sleep(deadline), deadline).await
            }
            Handler::Inline(_) => Err(HandlerError::new("an inline handler has no call")),
        };
        let is_excused = overlay.take_fault();
        FinishedCall {
            call: self,
            result,
            is_excused,
        }
    }
}

impl fmt::Debug for ClaimedCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClaimedCall")
            .field("claim", &self.claim)
            .finish_non_exhaustive()
    }
}

/// A call that has ended, to be settled by [`Engine::settle`](super::Engine::settle).
#[must_use = "a finished call that is not settled runs again when its claim ends"]
pub struct FinishedCall {
    pub(crate) call: ClaimedCall,
    pub(crate) result: Result<CallOutput, HandlerError>,
    /// Whether its failure is not the handler's: the store failed a read, or it could not begin.
    pub(crate) is_excused: bool,
}

impl FinishedCall {
    /// The claim under which the call ran, to be released if it is not settled.
    pub fn claim(&self) -> &Claim {
        &self.call.claim
    }

    /// The error of the call, if it failed, panicked or ran over its deadline.
    pub fn error(&self) -> Option<&HandlerError> {
        self.result.as_ref().err()
    }
}

impl fmt::Debug for FinishedCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FinishedCall")
            .field("claim", &self.call.claim)
            .field("error", &self.error())
            .finish_non_exhaustive()
    }
}
