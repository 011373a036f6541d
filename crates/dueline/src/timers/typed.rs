use std::fmt;

use serde::de::DeserializeOwned;

use super::{DueTimer, Fired, HandlerError, RetryPolicy, TimerCtx, TimerHandler};
use crate::future::{BoxFuture, MaybeSend, MaybeSendSync};

/// A handler whose payload is a JSON value of a type.
///
/// A payload that does not decode is nobody's failure: the timer is set aside in the dead class,
/// bytes unchanged, no attempt charged, and comes back when a handler with a higher
/// `CODEC_VERSION` is registered.
pub trait TypedHandler: MaybeSendSync {
    /// What the payload holds.
    type Payload: DeserializeOwned + MaybeSend;

    /// The version of the payload's form; raise it when you learn to read what you could not.
    const CODEC_VERSION: u16 = 1;

    /// Decides what becomes of a due timer.
    fn fire<'a>(
        &'a self,
        ctx: &'a TimerCtx<'a>,
        timer: &'a DueTimer,
        payload: Self::Payload,
    ) -> BoxFuture<'a, Result<Fired, HandlerError>>;

    /// The policy of this one timer, if it is not the kind's.
    fn retry_policy(&self, timer: &DueTimer) -> Option<RetryPolicy> {
        let _ = timer;
        None
    }
}

/// A [`TypedHandler`] as a [`TimerHandler`].
#[derive(Clone, Copy)]
pub struct Typed<H> {
    handler: H,
}

impl<H: TypedHandler> Typed<H> {
    /// Decodes in front of this handler.
    pub fn new(handler: H) -> Self {
        Self { handler }
    }
}

impl<H: TypedHandler> TimerHandler for Typed<H> {
    fn fire<'a>(
        &'a self,
        ctx: &'a TimerCtx<'a>,
        timer: &'a DueTimer,
    ) -> BoxFuture<'a, Result<Fired, HandlerError>> {
        match serde_json::from_slice(timer.payload()) {
            Ok(payload) => self.handler.fire(ctx, timer, payload),
            Err(error) => {
                let text = format!(
                    "the payload does not decode (codec version {}): {error}",
                    H::CODEC_VERSION
                );
                Box::pin(std::future::ready(Err(HandlerError::undecodable(text))))
            }
        }
    }

    fn retry_policy(&self, timer: &DueTimer) -> Option<RetryPolicy> {
        self.handler.retry_policy(timer)
    }
}

impl<H> fmt::Debug for Typed<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Typed")
            .field("handler", &std::any::type_name::<H>())
            .finish()
    }
}
