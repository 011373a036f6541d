//! Ends as batches, for callers and for the timer alike.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;

use super::reservation::{End, Reservation, ReservationId};
use super::rows::{ReservationRow, Stage};
use crate::future::{BoxFuture, MaybeSendSync};
use crate::kinds::observed::Observed;
use crate::kinds::outcome_delivery::{OutboxBuilder, OutboxName, Outcome};
use crate::mutants::{Mutant, planted};
use crate::store::{Batch, Partition, ReadStore, StoreError};
use crate::timers::{HandlerError, TimerCtx, TimerError, Timers};

#[cfg(not(target_arch = "wasm32"))]
type MakeMessage = dyn Fn(&Reservation) -> Bytes + Send + Sync;
#[cfg(target_arch = "wasm32")]
type MakeMessage = dyn Fn(&Reservation) -> Bytes;

/// What the ends of reservations need: timers of the outbox, and who writes the messages.
#[derive(Clone)]
pub(super) struct Ending {
    pub(super) timers: Timers,
    pub(super) message: Arc<MakeMessage>,
    pub(super) on_abandon: Option<Arc<dyn OnAbandon>>,
}

/// What else is written, in the same batch, when a reservation is abandoned: the caller is not there to
/// append it.
pub trait OnAbandon: MaybeSendSync + 'static {
    /// Guards and writes of the partition, 80 at most, planned from the reads of `ctx`; what is read is to
    /// be guarded. May be asked several times, and takes effect once. An `Err` leaves the reservation
    /// pending; it is tried again after a back-off.
    fn effects<'a>(
        &'a self,
        ctx: &'a TimerCtx<'a>,
        reservation: &'a Reservation,
    ) -> BoxFuture<'a, Result<Batch, HandlerError>>;
}

/// A reservation that was read and the end that it is to have.
pub(super) struct Ended {
    /// Guards the row as it was read; ends it, and tells the outbox.
    pub(super) batch: Batch,
    pub(super) reservation: Reservation,
    /// When the row is to be removed; `None` if it is gone already or stays.
    pub(super) purge_at_ms: Option<u64>,
}

impl Ending {
    /// Ends a pending reservation. One read if it has an outbox.
    pub(super) async fn end(
        &self,
        reads: &dyn ReadStore,
        partition: &Partition,
        (id, observed, row): (&ReservationId, &Observed<ReservationRow>, &ReservationRow),
        end: End,
        now_ms: u64,
    ) -> Result<Ended, TimerError> {
        let next = end.stage();
        if !row.stage.may_become(next) {
            return Err(StoreError::invalid("a reservation ends once").into());
        }
        let row = ReservationRow {
            stage: next,
            ended_at_ms: now_ms,
            reason: match end {
                End::Aborted(reason) => Bytes::from(reason),
                End::Committed | End::Abandoned => Bytes::new(),
            },
            ..row.clone()
        };
        let reservation = Reservation::of(id, &row);
        let keeps = row.keep_ms != Some(0);
        let mut batch = observed.replace(Batch::new(), Some(&row).filter(|_| keeps));
        if planted(Mutant::ReservationEndUnguarded) {
            batch.preconditions.clear();
        }
        let told = self.tell(reads, partition, &row, &reservation, now_ms);
        Ok(Ended {
            batch: batch.append(told.await?),
            reservation,
            purge_at_ms: row.kept_until_ms().filter(|_| keeps),
        })
    }

    async fn tell(
        &self,
        reads: &dyn ReadStore,
        partition: &Partition,
        row: &ReservationRow,
        reservation: &Reservation,
        now_ms: u64,
    ) -> Result<Batch, TimerError> {
        let is_silent =
            planted(Mutant::ReservationAbandonedSilently) && row.stage == Stage::Abandoned;
        if row.outbox.is_empty() || is_silent {
            return Ok(Batch::new());
        }
        let name = OutboxName::new(row.outbox.clone())?;
        let mut outbox = OutboxBuilder::read(reads, partition, &name).await?;
        let outcome = Outcome {
            id: reservation.outcome_id(),
            body: (self.message)(reservation),
        };
        outbox.append(outcome, now_ms)?;
        outbox.finish(&self.timers, now_ms)
    }
}

impl fmt::Debug for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ending")
            .field("timers", &self.timers)
            .finish_non_exhaustive()
    }
}
