use std::sync::Arc;

use dueline::BoxFuture;
use dueline::store::Batch;
use dueline::timers::{DetachedHandler, DueTimer, Fired, HandlerError, TimerCtx};

use super::{Door, Log};

/// Calls out: logs, and waits behind a door.
pub struct Caller {
    pub log: Arc<Log>,
    pub door: Door,
}

impl DetachedHandler for Caller {
    type Output = ();

    fn call<'a>(
        &'a self,
        ctx: &'a TimerCtx<'a>,
        _: &'a DueTimer,
    ) -> BoxFuture<'a, Result<(), HandlerError>> {
        Box::pin(async move {
            self.log.push(format!("call {}", ctx.partition()));
            self.door.pass().await;
            Ok(())
        })
    }

    fn settle<'a>(
        &'a self,
        _: &'a TimerCtx<'a>,
        _: &'a DueTimer,
        (): &'a (),
    ) -> BoxFuture<'a, Result<Fired, HandlerError>> {
        Box::pin(async { Ok(Fired::Done(Batch::new())) })
    }
}
