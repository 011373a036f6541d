use std::sync::Arc;

use bytes::Bytes;

use super::RESERVATION_RECONCILE;
use super::ending::{Ending, OnAbandon};
use super::handler::Reconcile;
use super::reservation::{End, Reservation, ReservationId, Terms, validate_detail, validate_end};
use super::rows::{ReservationRow, Stage, TimerPayload};
use crate::future::MaybeSendSync;
use crate::kinds::observed::Observed;
use crate::kinds::owner::retry_for_ever;
use crate::kinds::planned::{Planned, until_committed};
use crate::kinds::row::Row;
use crate::mutants::{Mutant, planted};
use crate::store::{
    Batch, BatchOutcome, NamespaceStore, Partition, Precondition, ReadStore, StoreError,
};
use crate::timers::{Registration, Timer, TimerError, TimerKind, Timers, Tries, validate_due};

/// What became of reserving.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reserved {
    /// It waits to be settled.
    Made(Reservation),
    /// There is one of that id, pending or ended. If it is the caller's, which its detail may say, an earlier
    /// try was committed.
    Exists(Reservation),
}

/// What became of changing or ending a reservation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Settlement {
    /// Done: how it stands now.
    Settled(Reservation),
    /// It had ended before, in this way: nothing was written.
    EndedBefore(Reservation),
    /// The time for a commit is over; it will be abandoned at its deadline unless it is aborted.
    TooLate(Reservation),
    /// There is no such reservation: it never was, was purged or forgotten, or another has its id now.
    Missing,
}

/// What became of forgetting a reservation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Forgotten {
    /// Its id is free.
    Done,
    /// It has not ended: nothing was written.
    StillPending(Reservation),
    /// There is no such reservation.
    Missing,
}

/// The verbs of reservations, over [`Timers`]. Cheap to clone.
///
/// Each verb has a planner, whose batch is appended to one of the caller's, and a short form that commits
/// it alone and starts over when a guard is lost, eight times at most. A planner reads through `reads`:
/// the store, or in a handler the reads of its context.
///
/// A batch may end one reservation of an outbox: two would tell it under one sequence, and are refused.
#[derive(Clone, Debug)]
pub struct Reservations {
    ending: Ending,
}

impl Reservations {
    /// The verbs over the store of these timers. The engine that runs
    /// [`registration`](Self::registration) has to have the same store and runtime.
    pub fn new(timers: Timers) -> Self {
        Self {
            ending: Ending {
                timers,
                message: Arc::new(Reservation::to_json),
                on_abandon: None,
            },
        }
    }

    /// Lets this write the messages to outboxes instead of [`Reservation::to_json`], at most 256 KiB each.
    /// It must give the same bytes whenever it is asked of one end.
    #[must_use]
    pub fn message(
        mut self,
        message: impl Fn(&Reservation) -> Bytes + MaybeSendSync + 'static,
    ) -> Self {
        self.ending.message = Arc::new(message);
        self
    }

    /// Lets this add what else is to be written when a reservation is abandoned.
    #[must_use]
    pub fn on_abandon(mut self, on_abandon: impl OnAbandon) -> Self {
        self.ending.on_abandon = Some(Arc::new(on_abandon));
        self
    }

    /// The handler: groups of up to 64 in one commit; failures are retried for ever, after 5 s at first
    /// and 60 s at most, so that no reservation is pending for ever because its timer died.
    pub fn registration(&self) -> Registration {
        Registration::inline(Reconcile {
            ending: self.ending.clone(),
        })
        .group_max(64)
        .retry(retry_for_ever())
    }

    /// The registration with its kind, as a registry takes it.
    pub fn entry(&self) -> (TimerKind, Registration) {
        (RESERVATION_RECONCILE, self.registration())
    }

    /// How a reservation stands. One read.
    ///
    /// # Errors
    /// `Corrupt` for a row that does not decode, and what the store says.
    pub async fn read(
        &self,
        partition: &Partition,
        id: &ReservationId,
    ) -> Result<Option<Reservation>, TimerError> {
        let observed = self.observe(&**self.store(), partition, id).await?;
        Ok(observed.row.map(|row| Reservation::of(id, &row)))
    }

    /// Plans a reservation without a read: two guards and two puts. If the first guard is lost there is
    /// one of that id: [`read`](Self::read) it.
    ///
    /// # Errors
    /// `Invalid` for a detail over 32 KiB or a deadline behind the latest due.
    pub fn plan_reserve(
        &self,
        id: &ReservationId,
        terms: &Terms,
    ) -> Result<Planned<Reservation>, TimerError> {
        validate_detail(&terms.detail)?;
        let runtime = self.ending.timers.runtime();
        let now_ms = runtime.now_ms();
        let commit_by_ms = now_ms.saturating_add(terms.commit_within_ms);
        let row = ReservationRow {
            stage: Stage::Pending,
            serial: runtime.draw_generation(),
            reserved_at_ms: now_ms,
            commit_by_ms,
            deadline_ms: commit_by_ms.saturating_add(terms.skew_ms),
            ended_at_ms: 0,
            keep_ms: terms.keep_ms,
            outbox: terms
                .outbox
                .as_ref()
                .map(|name| name.as_bytes().clone())
                .unwrap_or_default(),
            reason: Bytes::new(),
            detail: terms.detail.clone(),
        };
        let payload = TimerPayload { serial: row.serial };
        let timer = Timer::new(RESERVATION_RECONCILE, id.as_bytes().clone())
            .due_at(row.deadline_ms)
            .payload(payload.encode());
        let key = ReservationRow::key(id);
        let batch = Batch::new()
            .require_absent(key.clone())
            .put(key, row.encode())
            .append(self.ending.timers.plan_new(&timer)?.batch);
        Ok(Planned {
            batch,
            outcome: Reservation::of(id, &row),
        })
    }

    /// Reserves.
    ///
    /// # Errors
    /// As [`plan_reserve`](Self::plan_reserve), `Contended`, `Corrupt`, and what the store says.
    pub async fn reserve(
        &self,
        partition: &Partition,
        id: &ReservationId,
        terms: &Terms,
    ) -> Result<Reserved, TimerError> {
        let mut tries = Tries::default();
        loop {
            let planned = self.plan_reserve(id, terms)?;
            if let Some(made) = planned.apply(&**self.store(), partition).await? {
                return Ok(Reserved::Made(made));
            }
            if let Some(other) = self.read(partition, id).await? {
                return Ok(Reserved::Exists(other));
            }
            tries.changed()?;
        }
    }

    /// Plans a commit, which holds only up to the latest commit by the store's clock. One read; two guards
    /// and a put, and what telling an outbox takes.
    ///
    /// # Errors
    /// `Corrupt`, and what the store says.
    pub async fn plan_commit(
        &self,
        reads: &dyn ReadStore,
        partition: &Partition,
        id: &ReservationId,
        serial: u64,
    ) -> Result<Planned<Settlement>, TimerError> {
        let observed = self.observe(reads, partition, id).await?;
        let row = match of_serial(&observed, serial) {
            Some(row) if row.stage == Stage::Pending => row,
            other => return Ok(Planned::nothing(ended_before(id, other))),
        };
        let now_ms = self.ending.timers.runtime().now_ms();
        if now_ms > row.commit_by_ms {
            let late = Settlement::TooLate(Reservation::of(id, row));
            return Ok(Planned::nothing(late));
        }
        let of = (id, &observed, row);
        let ended = self
            .ending
            .end(reads, partition, of, End::Committed, now_ms);
        let ended = ended.await?;
        let batch = if planted(Mutant::ReservationCommitUnbounded) {
            ended.batch
        } else {
            ended
                .batch
                .require(Precondition::NotAfter(row.commit_by_ms))
        };
        Ok(Planned {
            batch,
            outcome: Settlement::Settled(ended.reservation),
        })
    }

    /// Commits.
    ///
    /// # Errors
    /// As [`plan_commit`](Self::plan_commit), and `Contended`.
    pub async fn commit(
        &self,
        partition: &Partition,
        id: &ReservationId,
        serial: u64,
    ) -> Result<Settlement, TimerError> {
        let reads = &**self.store();
        let mut tries = Tries::default();
        loop {
            let planned = self.plan_commit(reads, partition, id, serial).await?;
            if let Some(settled) = self.offer(partition, (id, serial), planned).await? {
                return Ok(settled);
            }
            tries.changed()?;
        }
    }

    /// Plans an abort, at any time while it is pending. One read; a guard and a put, and what telling an
    /// outbox takes.
    ///
    /// # Errors
    /// `Invalid` for a reason over 255 bytes, `Corrupt`, and what the store says.
    pub async fn plan_abort(
        &self,
        reads: &dyn ReadStore,
        partition: &Partition,
        id: &ReservationId,
        serial: u64,
        reason: impl Into<String>,
    ) -> Result<Planned<Settlement>, TimerError> {
        let end = End::Aborted(reason.into());
        validate_end(&end)?;
        let observed = self.observe(reads, partition, id).await?;
        let row = match of_serial(&observed, serial) {
            Some(row) if row.stage == Stage::Pending => row,
            other => return Ok(Planned::nothing(ended_before(id, other))),
        };
        let now_ms = self.ending.timers.runtime().now_ms();
        let of = (id, &observed, row);
        let ended = self.ending.end(reads, partition, of, end, now_ms).await?;
        Ok(Planned {
            batch: ended.batch,
            outcome: Settlement::Settled(ended.reservation),
        })
    }

    /// Aborts.
    ///
    /// # Errors
    /// As [`plan_abort`](Self::plan_abort), and `Contended`.
    pub async fn abort(
        &self,
        partition: &Partition,
        id: &ReservationId,
        serial: u64,
        reason: &str,
    ) -> Result<Settlement, TimerError> {
        let reads = &**self.store();
        until_committed!(
            self.ending.timers,
            partition,
            self.plan_abort(reads, partition, id, serial, reason)
        )
    }

    /// Plans that a pending reservation goes on: with this detail, to be committed within this many
    /// milliseconds from now, or by when it had to be before if that is later. For a middle state: a
    /// ticket was given out, a payment has begun. One read; two guards and a put. Its timer finds the new
    /// deadline by itself.
    ///
    /// # Errors
    /// `Invalid` for a detail over 32 KiB or a deadline behind the latest due, `Corrupt`, and what the
    /// store says.
    pub async fn plan_extend(
        &self,
        reads: &dyn ReadStore,
        partition: &Partition,
        id: &ReservationId,
        serial: u64,
        detail: Bytes,
        commit_within_ms: u64,
    ) -> Result<Planned<Settlement>, TimerError> {
        validate_detail(&detail)?;
        let observed = self.observe(reads, partition, id).await?;
        let row = match of_serial(&observed, serial) {
            Some(row) if row.stage == Stage::Pending => row,
            other => return Ok(Planned::nothing(ended_before(id, other))),
        };
        let now_ms = self.ending.timers.runtime().now_ms();
        if now_ms > row.commit_by_ms {
            let late = Settlement::TooLate(Reservation::of(id, row));
            return Ok(Planned::nothing(late));
        }
        let skew_ms = row.deadline_ms.saturating_sub(row.commit_by_ms);
        let commit_by_ms = now_ms
            .saturating_add(commit_within_ms)
            .max(row.commit_by_ms);
        validate_due(commit_by_ms.saturating_add(skew_ms))?;
        let extended = ReservationRow {
            commit_by_ms,
            deadline_ms: commit_by_ms.saturating_add(skew_ms),
            detail,
            ..row.clone()
        };
        let batch = observed.replace(Batch::new(), Some(&extended));
        Ok(Planned {
            batch: batch.require(Precondition::NotAfter(row.commit_by_ms)),
            outcome: Settlement::Settled(Reservation::of(id, &extended)),
        })
    }

    /// Lets a pending reservation go on.
    ///
    /// # Errors
    /// As [`plan_extend`](Self::plan_extend), and `Contended`.
    pub async fn extend(
        &self,
        partition: &Partition,
        id: &ReservationId,
        serial: u64,
        detail: Bytes,
        commit_within_ms: u64,
    ) -> Result<Settlement, TimerError> {
        let reads = &**self.store();
        let mut tries = Tries::default();
        loop {
            let detail = detail.clone();
            let planned = self.plan_extend(reads, partition, id, serial, detail, commit_within_ms);
            let planned = planned.await?;
            if let Some(settled) = self.offer(partition, (id, serial), planned).await? {
                return Ok(settled);
            }
            tries.changed()?;
        }
    }

    /// Plans that a reservation that has ended is forgotten before its time: its id is free again. One
    /// read; a guard and a delete.
    ///
    /// # Errors
    /// `Corrupt`, and what the store says.
    pub async fn plan_forget(
        &self,
        reads: &dyn ReadStore,
        partition: &Partition,
        id: &ReservationId,
        serial: u64,
    ) -> Result<Planned<Forgotten>, TimerError> {
        let observed = self.observe(reads, partition, id).await?;
        Ok(match of_serial(&observed, serial) {
            None => Planned::nothing(Forgotten::Missing),
            Some(row) if row.stage == Stage::Pending => {
                Planned::nothing(Forgotten::StillPending(Reservation::of(id, row)))
            }
            Some(_) => Planned {
                batch: observed.replace(Batch::new(), None),
                outcome: Forgotten::Done,
            },
        })
    }

    /// Forgets a reservation that has ended.
    ///
    /// # Errors
    /// As [`plan_forget`](Self::plan_forget), and `Contended`.
    pub async fn forget(
        &self,
        partition: &Partition,
        id: &ReservationId,
        serial: u64,
    ) -> Result<Forgotten, TimerError> {
        let reads = &**self.store();
        until_committed!(
            self.ending.timers,
            partition,
            self.plan_forget(reads, partition, id, serial)
        )
    }

    /// Commits what holds only up to the latest commit: `None` if a guard was lost. If the store's clock
    /// says that it is too late, how it stands is read once more.
    async fn offer(
        &self,
        partition: &Partition,
        (id, serial): (&ReservationId, u64),
        planned: Planned<Settlement>,
    ) -> Result<Option<Settlement>, TimerError> {
        if planned.batch.is_empty() {
            return Ok(Some(planned.outcome));
        }
        match self.store().apply(partition, planned.batch).await? {
            BatchOutcome::Committed => Ok(Some(planned.outcome)),
            BatchOutcome::PreconditionFailed { .. } | BatchOutcome::TooEarly { .. } => Ok(None),
            BatchOutcome::DeadlinePassed { .. } => {
                let observed = self.observe(&**self.store(), partition, id).await?;
                Ok(Some(match of_serial(&observed, serial) {
                    Some(row) if row.stage == Stage::Pending => {
                        Settlement::TooLate(Reservation::of(id, row))
                    }
                    other => ended_before(id, other),
                }))
            }
        }
    }

    fn store(&self) -> &Arc<dyn NamespaceStore> {
        self.ending.timers.store()
    }

    async fn observe(
        &self,
        reads: &dyn ReadStore,
        partition: &Partition,
        id: &ReservationId,
    ) -> Result<Observed<ReservationRow>, StoreError> {
        Observed::read(reads, partition, ReservationRow::key(id)).await
    }
}

/// The row, if it is that of this reservation.
fn of_serial(observed: &Observed<ReservationRow>, serial: u64) -> Option<&ReservationRow> {
    observed.row.as_ref().filter(|row| row.serial == serial)
}

/// What to say of one that is not pending.
fn ended_before(id: &ReservationId, row: Option<&ReservationRow>) -> Settlement {
    match row {
        Some(row) => Settlement::EndedBefore(Reservation::of(id, row)),
        None => Settlement::Missing,
    }
}
