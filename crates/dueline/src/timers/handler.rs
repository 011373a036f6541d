use std::fmt;

use bytes::Bytes;

use super::{DueTimer, RetryPolicy, TimerCtx};
use crate::future::{BoxFuture, MaybeSendSync};
use crate::store::Batch;

/// What becomes of a timer whose handler ran. The batch commits together with it, or neither does.
///
/// A batch may hold 92 preconditions and writes, and must not touch the firing timer's own row or
/// name: what becomes of the timer is said here alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fired {
    /// The timer is done and goes.
    Done(Batch),
    /// The timer is scheduled again under a new generation, its attempts back at 0.
    Reschedule {
        /// The new due, in milliseconds since 1970; one in the past runs in the next tick.
        due_at_ms: u64,
        /// The new payload.
        payload: Bytes,
        /// The effects.
        batch: Batch,
    },
    /// The run failed; the timer is tried again later, payload and due kept byte for byte.
    Retry {
        /// When, from now, in milliseconds; `None` leaves it to the kind's [`RetryPolicy`].
        after_ms: Option<u64>,
        /// Why, kept with the timer (255 bytes of it).
        reason: String,
    },
    /// The timer goes to the dead class, to be looked at, requeued or purged.
    Dead {
        /// Why, kept with the timer (255 bytes of it).
        reason: String,
        /// The effects.
        batch: Batch,
    },
}

/// Handles timers by reading and writing their own partition.
///
/// A handler plans: it reads through [`TimerCtx`], returns a [`Fired`] with the batch of its
/// effects, and the engine commits batch and timer together. It may run several times for one timer;
/// what it returns takes effect once. Guard what you read (`Batch::require_unchanged`); the engine
/// guards the timer and the time.
///
/// **Read through the context, not through a store handle of your own.** Timers of one kind may fire as
/// a group whose effects commit together. The context shows those of the timers before this one; a
/// handle of your own does not, and neither does [`Timers::plan`](super::Timers::plan), which reads
/// through its own. Where they touched what was read, a guard is lost and the timer is planned again,
/// which costs a round of reading and committing; the fourth such loss is a failed attempt. What has no
/// guard overwrites them.
///
/// **Do not hold the handle of the driver that runs the handler.** The driver owns its handlers: its
/// last handle would never be dropped, and it would never stop by itself.
///
/// ```
/// use dueline::BoxFuture;
/// use dueline::store::Batch;
/// use dueline::timers::{DueTimer, Fired, HandlerError, TimerCtx, TimerHandler};
///
/// struct ExpireHold;
///
/// impl TimerHandler for ExpireHold {
///     fn fire<'a>(
///         &'a self,
///         ctx: &'a TimerCtx<'a>,
///         timer: &'a DueTimer,
///     ) -> BoxFuture<'a, Result<Fired, HandlerError>> {
///         Box::pin(async move {
///             let hold = timer.reference().clone();
///             let Some(state) = ctx.get(&hold).await? else {
///                 return Ok(Fired::Done(Batch::new()));
///             };
///             Ok(Fired::Done(Batch::new().require_equals(hold.clone(), state).delete(hold)))
///         })
///     }
/// }
/// ```
pub trait TimerHandler: MaybeSendSync {
    /// Decides what becomes of a due timer.
    fn fire<'a>(
        &'a self,
        ctx: &'a TimerCtx<'a>,
        timer: &'a DueTimer,
    ) -> BoxFuture<'a, Result<Fired, HandlerError>>;

    /// The policy of this one timer, if it is not the kind's.
    fn retry_policy(&self, timer: &DueTimer) -> Option<RetryPolicy> {
        let _ = timer;
        None
    }
}

/// Handles timers by calling out, in two parts: the call, outside any tick, and the settling, which
/// only reads and plans.
///
/// The timer is claimed durably before the call. A crash brings it back when the claim ends; a call
/// over its deadline is dropped and counts as a failure. So the call happens at least once, and what
/// `settle` returns takes effect once.
pub trait DetachedHandler: MaybeSendSync + 'static {
    /// What the call brings back.
    type Output: MaybeSendSync + 'static;

    /// Goes out. May run again for the same occurrence id.
    fn call<'a>(
        &'a self,
        ctx: &'a TimerCtx<'a>,
        timer: &'a DueTimer,
    ) -> BoxFuture<'a, Result<Self::Output, HandlerError>>;

    /// Decides what becomes of the timer after the call. May run several times for one call.
    fn settle<'a>(
        &'a self,
        ctx: &'a TimerCtx<'a>,
        timer: &'a DueTimer,
        output: &'a Self::Output,
    ) -> BoxFuture<'a, Result<Fired, HandlerError>>;

    /// The policy of this one timer, if it is not the kind's.
    fn retry_policy(&self, timer: &DueTimer) -> Option<RetryPolicy> {
        let _ = timer;
        None
    }

    /// The deadline of this one timer's call in milliseconds, if it is not the kind's.
    fn deadline_ms(&self, timer: &DueTimer) -> Option<u64> {
        let _ = timer;
        None
    }
}

/// A handler's failure: a text that is kept with the timer. Any error converts into it by `?`.
///
/// It is no `std::error::Error` itself, so that the conversion can be open to all of them.
pub struct HandlerError(Box<Failed>);

/// In a box, as the answers that could be one are moved far more often than one comes about.
struct Failed {
    text: String,
    fault: Fault,
}

/// Whose fault a failure is, and so what it costs the timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    Charged,
    Uncharged,
    Undecodable,
}

impl HandlerError {
    /// A failure: counts an attempt, and the timer is tried again after its back-off.
    pub fn new(text: impl Into<String>) -> Self {
        Self::of(Fault::Charged, text.into())
    }

    /// A failure that has nothing to do with the timer: this process lacked something of its own, a
    /// file handle or a port. The timer is tried again after its back-off, and no attempt is
    /// counted, so no timer dies of it.
    pub fn uncharged(text: impl Into<String>) -> Self {
        Self::of(Fault::Uncharged, text.into())
    }

    /// The payload does not decode: the timer goes to the dead class at once, its bytes unchanged
    /// and no attempt charged, until a handler with a higher codec version is registered.
    pub fn undecodable(text: impl Into<String>) -> Self {
        Self::of(Fault::Undecodable, text.into())
    }

    fn of(fault: Fault, text: String) -> Self {
        Self(Box::new(Failed { text, fault }))
    }

    /// The text that is kept with the timer, cut to 255 bytes there.
    pub fn text(&self) -> &str {
        &self.0.text
    }

    /// Whether the payload does not decode.
    pub fn is_undecodable(&self) -> bool {
        self.0.fault == Fault::Undecodable
    }

    /// Whether the failure counts no attempt although the timer is tried again.
    pub fn is_uncharged(&self) -> bool {
        self.0.fault == Fault::Uncharged
    }
}

impl<E: std::error::Error> From<E> for HandlerError {
    fn from(error: E) -> Self {
        let mut text = error.to_string();
        let mut cause = error.source();
        while let Some(inner) = cause {
            text.push_str(": ");
            text.push_str(&inner.to_string());
            cause = inner.source();
        }
        Self::new(text)
    }
}

impl fmt::Debug for HandlerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HandlerError")
            .field("text", &self.0.text)
            .field("fault", &self.0.fault)
            .finish()
    }
}

impl fmt::Display for HandlerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.text)
    }
}
