//! A handler whose runs are taken down, however they end.

use dueline::BoxFuture;
use dueline::timers::{DetachedHandler, DueTimer, Fired, HandlerError, TimerCtx, TimerHandler};

use crate::{Ended, Octets, Run, What};

/// Takes runs down as they end.
pub trait RunLog: Send + Sync + 'static {
    /// The number of the process whose runs these are.
    fn node(&self) -> u16;

    /// The turn under way, as in [`Tick`](crate::Tick); 0 outside of one.
    fn turn(&self) -> u64;

    /// How a run ended that was dropped: by its deadline, or with its process.
    fn dropped(&self, _run: &Run) -> Ended {
        Ended::Cut
    }

    /// Takes down a [`What::Fire`] or a [`What::Called`].
    fn log(&self, what: What);
}

/// Runs a handler and takes down how each run of it ends: a fire or a settle as [`What::Fire`], a
/// call that went out as [`What::Called`].
#[derive(Clone, Debug)]
pub struct Recorded<H, L> {
    handler: H,
    log: L,
}

impl<H, L: RunLog> Recorded<H, L> {
    /// This handler, recorded there.
    pub fn new(handler: H, log: L) -> Self {
        Self { handler, log }
    }

    fn running(&self, ctx: &TimerCtx<'_>, timer: &DueTimer, is_call: bool) -> Running<'_, L> {
        Running {
            log: &self.log,
            is_call,
            run: Run {
                node: self.log.node(),
                turn: if is_call { 0 } else { self.log.turn() },
                partition: ctx.partition().into(),
                kind: timer.kind().0,
                reference: Octets(timer.reference().clone()),
                generation: timer.generation(),
                attempt: timer.attempt(),
                due_ms: timer.due_at_ms(),
                now_ms: ctx.now_ms(),
                ended: Ended::Cut,
            },
        }
    }
}

/// A run under way: taken down when it is dropped.
struct Running<'a, L: RunLog> {
    log: &'a L,
    run: Run,
    is_call: bool,
}

impl<L: RunLog> Running<'_, L> {
    fn end(mut self, result: Result<Ended, &HandlerError>) {
        self.run.ended = match result {
            Ok(ended) => ended,
            Err(error) if error.is_undecodable() => Ended::Undecodable,
            Err(error) if error.is_uncharged() => Ended::Uncharged,
            Err(_) => Ended::Error,
        };
    }
}

impl<L: RunLog> Drop for Running<'_, L> {
    fn drop(&mut self) {
        let mut run = self.run.clone();
        if run.ended == Ended::Cut {
            run.ended = if std::thread::panicking() {
                Ended::Panic
            } else {
                self.log.dropped(&run)
            };
        }
        self.log.log(if self.is_call {
            What::Called(run)
        } else {
            What::Fire(run)
        });
    }
}

fn ended(fired: &Fired) -> Ended {
    match fired {
        Fired::Done(_) => Ended::Done,
        Fired::Reschedule { .. } => Ended::Reschedule,
        Fired::Retry { after_ms, .. } => Ended::Retry {
            after_ms: *after_ms,
        },
        Fired::Dead { .. } => Ended::Dead,
    }
}

impl<H: TimerHandler, L: RunLog> TimerHandler for Recorded<H, L> {
    fn fire<'a>(
        &'a self,
        ctx: &'a TimerCtx<'a>,
        timer: &'a DueTimer,
    ) -> BoxFuture<'a, Result<Fired, HandlerError>> {
        Box::pin(async move {
            let running = self.running(ctx, timer, false);
            let result = self.handler.fire(ctx, timer).await;
            running.end(result.as_ref().map(ended));
            result
        })
    }
}

impl<H: DetachedHandler, L: RunLog> DetachedHandler for Recorded<H, L> {
    type Output = H::Output;

    fn call<'a>(
        &'a self,
        ctx: &'a TimerCtx<'a>,
        timer: &'a DueTimer,
    ) -> BoxFuture<'a, Result<H::Output, HandlerError>> {
        Box::pin(async move {
            let running = self.running(ctx, timer, true);
            let result = self.handler.call(ctx, timer).await;
            running.end(result.as_ref().map(|_| Ended::Done));
            result
        })
    }

    fn settle<'a>(
        &'a self,
        ctx: &'a TimerCtx<'a>,
        timer: &'a DueTimer,
        output: &'a H::Output,
    ) -> BoxFuture<'a, Result<Fired, HandlerError>> {
        Box::pin(async move {
            let running = self.running(ctx, timer, false);
            let result = self.handler.settle(ctx, timer, output).await;
            running.end(result.as_ref().map(ended));
            result
        })
    }
}
