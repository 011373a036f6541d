//! Handlers that take their instance down.

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use dueline::BoxFuture;
use dueline::timers::{DetachedHandler, DueTimer, Fired, HandlerError, TimerCtx, TimerHandler};
use dueline_testkit::model::script::{OPS, Op};

/// Sprung by a handler that has taken its instance down.
#[derive(Clone, Debug, Default)]
pub(super) struct Trap(Arc<AtomicBool>);

impl Trap {
    /// Whether it was sprung since it was asked last.
    pub(super) fn take(&self) -> bool {
        self.0.swap(false, Ordering::Relaxed)
    }
}

/// A handler whose panics are traps, as where nothing unwinds.
#[derive(Clone, Debug)]
pub(super) struct Trapping<H> {
    pub(super) handler: H,
    /// None where panics unwind.
    pub(super) trap: Option<Trap>,
}

impl<H> Trapping<H> {
    fn traps(&self, timer: &DueTimer) -> bool {
        let (Some(trap), [op, times, ..]) = (&self.trap, timer.payload().as_ref()) else {
            return false;
        };
        let panics = OPS.get(usize::from(*op)) == Some(&Op::Panic);
        let goes_off = panics && timer.attempt() <= u16::from(*times);
        if goes_off {
            trap.0.store(true, Ordering::Relaxed);
        }
        goes_off
    }
}

impl<H: TimerHandler> TimerHandler for Trapping<H> {
    fn fire<'a>(
        &'a self,
        ctx: &'a TimerCtx<'a>,
        timer: &'a DueTimer,
    ) -> BoxFuture<'a, Result<Fired, HandlerError>> {
        Box::pin(async move {
            if self.traps(timer) {
                return pending().await;
            }
            self.handler.fire(ctx, timer).await
        })
    }
}

impl<H: DetachedHandler> DetachedHandler for Trapping<H> {
    type Output = H::Output;

    fn call<'a>(
        &'a self,
        ctx: &'a TimerCtx<'a>,
        timer: &'a DueTimer,
    ) -> BoxFuture<'a, Result<H::Output, HandlerError>> {
        Box::pin(async move {
            if self.traps(timer) {
                return pending().await;
            }
            self.handler.call(ctx, timer).await
        })
    }

    fn settle<'a>(
        &'a self,
        ctx: &'a TimerCtx<'a>,
        timer: &'a DueTimer,
        output: &'a H::Output,
    ) -> BoxFuture<'a, Result<Fired, HandlerError>> {
        self.handler.settle(ctx, timer, output)
    }
}
