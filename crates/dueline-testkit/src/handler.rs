use std::fmt;

use dueline::timers::{DueTimer, Fired, HandlerError, TimerCtx, TimerHandler};
use dueline::{BoxFuture, MaybeSendSync};

/// A handler made of a closure.
///
/// ```
/// use dueline::store::Batch;
/// use dueline::timers::Fired;
///
/// let handler = dueline_testkit::handler(|_ctx, _timer| {
///     Box::pin(async { Ok(Fired::Done(Batch::new().put("seen", "yes"))) })
/// });
/// ```
pub fn handler<F>(fire: F) -> FnHandler<F>
where
    F: for<'a> Fn(&'a TimerCtx<'a>, &'a DueTimer) -> BoxFuture<'a, Result<Fired, HandlerError>>
        + MaybeSendSync,
{
    FnHandler(fire)
}

/// A handler made of a closure by [`handler`].
#[derive(Clone, Copy)]
pub struct FnHandler<F>(F);

impl<F> TimerHandler for FnHandler<F>
where
    F: for<'a> Fn(&'a TimerCtx<'a>, &'a DueTimer) -> BoxFuture<'a, Result<Fired, HandlerError>>
        + MaybeSendSync,
{
    fn fire<'a>(
        &'a self,
        ctx: &'a TimerCtx<'a>,
        timer: &'a DueTimer,
    ) -> BoxFuture<'a, Result<Fired, HandlerError>> {
        (self.0)(ctx, timer)
    }
}

impl<F> fmt::Debug for FnHandler<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FnHandler")
    }
}
