//! Quotas that are charged on their coordinators alone.

use super::QUOTA_ROLLUP;
use super::coordinator::{plan_close, warn};
use super::job::Job;
use super::meter::QuotaNote;
use super::rows::Place;
use crate::future::BoxFuture;
use crate::kind::TimerKind;
use crate::kinds::owner::{drained, later, retry_for_ever};
use crate::kinds::row::Row;
use crate::store::{Batch, Precondition};
use crate::timers::{DueTimer, Fired, HandlerError, Registration, TimerCtx, TimerHandler};

/// The handler of [`QUOTA_ROLLUP`] for quotas whose every charge is made on the coordinator itself: it removes
/// the rows of a window that is over, in one commit, and calls nobody.
///
/// In the place of [`QuotaRollup`](super::QuotaRollup), where a partition is all there is. The timer of a shard
/// fails under it, and is tried again for ever: it waits for a version that rolls up.
#[derive(Clone, Copy, Debug, Default)]
pub struct OwnCharges;

impl OwnCharges {
    /// The kind and how it is run, for a registry: retried for ever.
    pub fn entry(self) -> (TimerKind, Registration) {
        let registration = Registration::inline(self);
        (QUOTA_ROLLUP, registration.retry(retry_for_ever()))
    }
}

impl TimerHandler for OwnCharges {
    fn fire<'a>(
        &'a self,
        ctx: &'a TimerCtx<'a>,
        timer: &'a DueTimer,
    ) -> BoxFuture<'a, Result<Fired, HandlerError>> {
        Box::pin(async move {
            let Some((place, job)) = named(ctx, timer)? else {
                return Ok(drained());
            };
            if job.coordinator != *ctx.partition() {
                return Err(HandlerError::new("this quota is rolled up elsewhere"));
            }
            let (fired, rows) = end_of_own(ctx, timer, &place).await?;
            if rows > 0 {
                let partition = ctx.partition();
                warn(&QuotaNote::Drained { partition, rows });
            }
            Ok(fired)
        })
    }
}

/// The window of a timer and what is to be done with it; `None` if it names no window.
pub(super) fn named(
    ctx: &TimerCtx<'_>,
    timer: &DueTimer,
) -> Result<Option<(Place, Job)>, HandlerError> {
    let Ok(place) = Place::of_reference(timer.reference()) else {
        tracing::warn!(
            partition = %ctx.partition(),
            reference = %timer.reference().escape_ascii(),
            "a timer of a quota names no window; it goes"
        );
        return Ok(None);
    };
    let undecodable = |error: crate::rows::Malformed| HandlerError::undecodable(error.0);
    let job = Job::decode(timer.payload()).map_err(undecodable)?;
    job.check(place.window).map_err(undecodable)?;
    Ok(Some((place, job)))
}

/// The end of what was charged on the coordinator itself, and how many rows were left behind there.
pub(super) async fn end_of_own(
    ctx: &TimerCtx<'_>,
    timer: &DueTimer,
    place: &Place,
) -> Result<(Fired, u64), HandlerError> {
    let now_ms = ctx.now_ms();
    let closes_at_ms = place.window.closes_at_ms();
    if now_ms < closes_at_ms {
        return Ok((later(timer, closes_at_ms, Batch::new()), 0));
    }
    let planned = plan_close(ctx.reads(), ctx.partition(), place, None).await?;
    let Some(planned) = planned else {
        return Ok((later(timer, now_ms, Batch::new()), 0));
    };
    let batch = after_close(place).append(planned.batch);
    let fired = if planned.has_more {
        later(timer, now_ms, batch)
    } else {
        Fired::Done(batch)
    };
    Ok((fired, planned.drained))
}

/// A batch that commits only when the window has closed by the clock of the store that holds its rows.
pub(super) fn after_close(place: &Place) -> Batch {
    Batch::new().require(Precondition::NotBefore(place.window.closes_at_ms()))
}
