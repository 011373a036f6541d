use dueline::BoxFuture;
use dueline::store::{Batch, ScanRange};
use dueline::timers::{DueTimer, Fired, HandlerError, TimerCtx, TimerHandler, TimerKind};

use super::record::Record;
use super::rows::{item_end, item_start, record_key};

/// The kind of a timer that takes the record of an idempotency key away.
pub(crate) const IDEMPOTENCY_EXPIRY: TimerKind = TimerKind(17);

/// Most expiries that commit together.
pub(crate) const EXPIRY_GROUP_MAX: u16 = 256;

/// Rows that one run takes away; a batch of the engine has room for 92.
const ROWS_MAX: usize = 80;

/// Takes records away whose day is over. The reference is the idempotency key.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IdempotencyExpiry;

impl IdempotencyExpiry {
    async fn expire(ctx: &TimerCtx<'_>, timer: &DueTimer) -> Result<Fired, HandlerError> {
        let key = std::str::from_utf8(timer.reference())?;
        let expires_at_ms = timer.due_at_ms();
        let (start, end) = (item_start(key, expires_at_ms), item_end(key, expires_at_ms));
        let items = ScanRange::new(start, end, ROWS_MAX);
        let page = ctx.scan(&items).await?;
        let mut batch = Batch::new();
        for (item, _) in page.rows {
            batch = batch.delete(item);
        }
        if page.next.is_some() {
            return Ok(Fired::Reschedule {
                due_at_ms: expires_at_ms,
                payload: timer.payload().clone(),
                batch,
            });
        }
        let record_key = record_key(key);
        if let Some(value) = ctx.get(&record_key).await?
            && Record::decode(&value)?.expires_at_ms <= expires_at_ms
        {
            batch = batch
                .require_equals(record_key.clone(), value)
                .delete(record_key);
        }
        // A record that ends later is another use of the key, with a timer of its own.
        Ok(Fired::Done(batch))
    }
}

impl TimerHandler for IdempotencyExpiry {
    fn fire<'a>(
        &'a self,
        ctx: &'a TimerCtx<'a>,
        timer: &'a DueTimer,
    ) -> BoxFuture<'a, Result<Fired, HandlerError>> {
        Box::pin(Self::expire(ctx, timer))
    }
}
