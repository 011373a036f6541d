use std::fmt;

use serde::de::DeserializeOwned;

use super::{DetachedHandler, DueTimer, Fired, HandlerError, RetryPolicy, TimerCtx, TimerHandler};
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

impl<H> fmt::Debug for Typed<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Typed")
            .field("handler", &std::any::type_name::<H>())
            .finish()
    }
}

impl<H: TypedHandler> TimerHandler for Typed<H> {
    fn fire<'a>(
        &'a self,
        ctx: &'a TimerCtx<'a>,
        timer: &'a DueTimer,
    ) -> BoxFuture<'a, Result<Fired, HandlerError>> {
        match decode(timer, H::CODEC_VERSION) {
            Ok(payload) => self.handler.fire(ctx, timer, payload),
            Err(error) => Box::pin(std::future::ready(Err(error))),
        }
    }

    fn retry_policy(&self, timer: &DueTimer) -> Option<RetryPolicy> {
        self.handler.retry_policy(timer)
    }
}

/// A [`DetachedHandler`] whose payload is a JSON value of a type; see [`TypedHandler`] for what
/// becomes of one that does not decode.
pub trait TypedDetachedHandler: MaybeSendSync + 'static {
    /// What the payload holds.
    type Payload: DeserializeOwned + MaybeSend;

    /// What the call brings back.
    type Output: MaybeSendSync + 'static;

    /// The version of the payload's form; raise it when you learn to read what you could not.
    const CODEC_VERSION: u16 = 1;

    /// Goes out. May run again for the same occurrence id.
    fn call<'a>(
        &'a self,
        ctx: &'a TimerCtx<'a>,
        timer: &'a DueTimer,
        payload: Self::Payload,
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

/// A [`TypedDetachedHandler`] as a [`DetachedHandler`].
pub(super) struct TypedDetached<H>(pub(super) H);

impl<H: TypedDetachedHandler> DetachedHandler for TypedDetached<H> {
    type Output = H::Output;

    fn call<'a>(
        &'a self,
        ctx: &'a TimerCtx<'a>,
        timer: &'a DueTimer,
    ) -> BoxFuture<'a, Result<Self::Output, HandlerError>> {
        match decode(timer, H::CODEC_VERSION) {
            Ok(payload) => self.0.call(ctx, timer, payload),
            Err(error) => Box::pin(std::future::ready(Err(error))),
        }
    }

    fn settle<'a>(
        &'a self,
        ctx: &'a TimerCtx<'a>,
        timer: &'a DueTimer,
        output: &'a Self::Output,
    ) -> BoxFuture<'a, Result<Fired, HandlerError>> {
        self.0.settle(ctx, timer, output)
    }

    fn retry_policy(&self, timer: &DueTimer) -> Option<RetryPolicy> {
        self.0.retry_policy(timer)
    }

    fn deadline_ms(&self, timer: &DueTimer) -> Option<u64> {
        self.0.deadline_ms(timer)
    }
}

fn decode<T: DeserializeOwned>(timer: &DueTimer, codec_version: u16) -> Result<T, HandlerError> {
    serde_json::from_slice(timer.payload()).map_err(|error| {
        HandlerError::undecodable(format!(
            "the payload does not decode (codec version {codec_version}): {error}"
        ))
    })
}
