use super::ending::{Ended, Ending};
use super::reservation::{End, ReservationId};
use super::rows::{ReservationRow, Stage, TimerPayload};
use crate::future::BoxFuture;
use crate::kinds::observed::Observed;
use crate::kinds::owner::{drained, later};
use crate::kinds::row::Row;
use crate::mutants::{Mutant, planted};
use crate::store::{Batch, Precondition};
use crate::timers::{DueTimer, Fired, HandlerError, TimerCtx, TimerHandler};

/// Abandons what nobody has settled by its deadline, and removes what was kept long enough.
pub(super) struct Reconcile {
    pub(super) ending: Ending,
}

impl TimerHandler for Reconcile {
    fn fire<'a>(
        &'a self,
        ctx: &'a TimerCtx<'a>,
        timer: &'a DueTimer,
    ) -> BoxFuture<'a, Result<Fired, HandlerError>> {
        Box::pin(async move {
            let id = ReservationId::new(timer.reference().clone());
            let Ok(id) = id else {
                tracing::warn!(
                    partition = %ctx.partition(),
                    reference = %timer.reference().escape_ascii(),
                    "a timer of no reservation drains"
                );
                return Ok(drained());
            };
            let payload = TimerPayload::decode(timer.payload());
            let payload = payload.map_err(|error| HandlerError::undecodable(error.to_string()))?;
            let key = ReservationRow::key(&id);
            let observed = Observed::<ReservationRow>::read(ctx.reads(), ctx.partition(), key);
            let observed = observed.await?;
            let of_timer = observed.row.as_ref();
            match of_timer.filter(|row| row.serial == payload.serial) {
                None => Ok(drained()),
                Some(row) if row.stage == Stage::Pending => {
                    self.arbitrate(ctx, timer, (&id, &observed, row)).await
                }
                Some(row) => Ok(purge(ctx, timer, &observed, row)),
            }
        })
    }
}

impl Reconcile {
    /// The deadline of a pending reservation is the arbiter: behind it, it is abandoned.
    async fn arbitrate(
        &self,
        ctx: &TimerCtx<'_>,
        timer: &DueTimer,
        (id, observed, row): (&ReservationId, &Observed<ReservationRow>, &ReservationRow),
    ) -> Result<Fired, HandlerError> {
        let mut deadline_ms = row.deadline_ms;
        if planted(Mutant::ReservationAbandonedEarly) {
            deadline_ms = row.commit_by_ms;
        }
        if time_ms(ctx, timer) < deadline_ms {
            let unchanged = observed.guard(Batch::new());
            return Ok(later(timer, deadline_ms, unchanged));
        }
        let of = (id, observed, row);
        let ended = self.ending.end(
            ctx.reads(),
            ctx.partition(),
            of,
            End::Abandoned,
            ctx.now_ms(),
        );
        let Ended {
            mut batch,
            reservation,
            purge_at_ms,
        } = ended.await?;
        if let Some(on_abandon) = &self.ending.on_abandon {
            batch = batch.append(on_abandon.effects(ctx, &reservation).await?);
        }
        // The handler's clock may be ahead of the store's, by which commits are in time.
        let batch = batch.require(Precondition::NotBefore(deadline_ms));
        Ok(match purge_at_ms {
            Some(purge_at_ms) => later(timer, purge_at_ms, batch),
            None => Fired::Done(batch),
        })
    }
}

/// What a timer may take for the time: its own due, which the store's clock has reached, while the clock of
/// this process may be ahead of that. If this one is behind, its own time.
fn time_ms(ctx: &TimerCtx<'_>, timer: &DueTimer) -> u64 {
    if planted(Mutant::ReservationHurriedByClock) {
        return ctx.now_ms();
    }
    ctx.now_ms().min(timer.due_at_ms())
}

/// What has ended goes when it was kept long enough. One that stays until it is forgotten needs no timer.
fn purge(
    ctx: &TimerCtx<'_>,
    timer: &DueTimer,
    observed: &Observed<ReservationRow>,
    row: &ReservationRow,
) -> Fired {
    let unchanged = observed.guard(Batch::new());
    match row.kept_until_ms() {
        None => Fired::Done(unchanged),
        Some(kept_until_ms) if time_ms(ctx, timer) < kept_until_ms => {
            later(timer, kept_until_ms, unchanged)
        }
        Some(kept_until_ms) => {
            let over = Precondition::NotBefore(kept_until_ms);
            Fired::Done(observed.replace(Batch::new(), None).require(over))
        }
    }
}
