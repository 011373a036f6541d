use super::found::Found;
use super::outcome::outcome;
use super::rows::{Counted, Counter};
use super::tickets::read_counters;
use super::{End, Ticket, TicketId, Tickets};
use crate::kinds::observed::Observed;
use crate::kinds::outcome_delivery::OutboxBuilder;
use crate::kinds::planned::{Planned, until_committed};
use crate::mutants::{Mutant, planted};
use crate::store::{Batch, Partition, Precondition, StoreError};
use crate::timers::{TimerCtx, TimerError};

/// What became of a ticket that was to be changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Changed {
    /// It is done. The ticket as it is now, or as it was when it ended.
    Done(Ticket),
    /// No such ticket is open: it has ended, or never was.
    Gone,
    /// The time of the ticket is over, or it was cancelled; its timer is about to close it.
    Expired(Ticket),
}

impl Changed {
    /// Whether it is done.
    pub fn is_done(&self) -> bool {
        matches!(self, Self::Done(_))
    }

    /// What it is if the store's clock was found to be past the ticket's time.
    pub(super) fn too_late(self) -> Self {
        match self {
            Self::Done(ticket) => Self::Expired(ticket),
            other => other,
        }
    }
}

/// Requires that the ticket has not expired by the store's clock.
pub(super) fn in_time(ticket: &Ticket) -> Precondition {
    if planted(Mutant::TicketUsedLate) {
        return Precondition::NotAfter(u64::MAX);
    }
    Precondition::NotAfter(ticket.expires_at_ms().saturating_sub(1))
}

impl Tickets {
    /// Ends a ticket by using it: what was held is the holder's. Never after its time is over by the
    /// store's clock, so that a ticket is either consumed or expires.
    ///
    /// After an error of kind `Unknown` it may or may not have been consumed, and asking again cannot
    /// tell. Commit the use together with it: [`plan_consume`](Self::plan_consume).
    ///
    /// # Errors
    /// `Contended` if its counters were changed eight times meanwhile; `Deadline` if the hooks did not
    /// answer in time (30 s, see [`with_close_ms`](Self::with_close_ms)), and the ticket is as it was; what
    /// the store says, `Corrupt` if a row does not decode.
    pub async fn consume(
        &self,
        partition: &Partition,
        id: TicketId,
    ) -> Result<Changed, TimerError> {
        self.end(partition, id, End::Consumed).await
    }

    /// Plans the use of a ticket, to be committed with what it is used for. The batch has at most eight
    /// preconditions and eight writes beside those of the hooks; if the outcome is not `Done` it is empty.
    ///
    /// It holds until the ticket's time is over: applied later, the answer of the store is
    /// `DeadlinePassed`, which says that the ticket has expired.
    ///
    /// # Errors
    /// `Deadline` as [`consume`](Self::consume); what the store says, `Corrupt` if a row does not decode.
    pub async fn plan_consume(
        &self,
        partition: &Partition,
        id: TicketId,
    ) -> Result<Planned<Changed>, TimerError> {
        self.plan_end(partition, id, End::Consumed).await
    }

    /// Ends a ticket by giving it back: what was held is free at once. A session is the caller's to
    /// abort; [`cancel`](Self::cancel) leaves that to the ticket's timer.
    ///
    /// # Errors
    /// As [`consume`](Self::consume).
    pub async fn release(
        &self,
        partition: &Partition,
        id: TicketId,
    ) -> Result<Changed, TimerError> {
        self.end(partition, id, End::Released).await
    }

    /// Plans giving a ticket back; everything else as [`plan_consume`](Self::plan_consume).
    ///
    /// # Errors
    /// As [`plan_consume`](Self::plan_consume).
    pub async fn plan_release(
        &self,
        partition: &Partition,
        id: TicketId,
    ) -> Result<Planned<Changed>, TimerError> {
        self.plan_end(partition, id, End::Released).await
    }

    async fn end(
        &self,
        partition: &Partition,
        id: TicketId,
        end: End,
    ) -> Result<Changed, TimerError> {
        until_committed!(
            self.timers,
            partition,
            self.plan_end(partition, id, end),
            |changed: Changed| Ok(changed.too_late())
        )
    }

    async fn plan_end(
        &self,
        partition: &Partition,
        id: TicketId,
        end: End,
    ) -> Result<Planned<Changed>, TimerError> {
        let found = self.find_row(partition, id).await?;
        let Some(ticket) = found.ticket()? else {
            return Ok(Planned::nothing(Changed::Gone));
        };
        let now_ms = self.now_ms();
        if ticket.is_expired_at(now_ms) {
            return Ok(Planned::nothing(Changed::Expired(ticket)));
        }
        let ctx = TimerCtx::new(self.reads(), partition, now_ms);
        let closing = self.closing(&ctx, &found, &ticket, end);
        // In an object the host bounds what it asks of the application.
        #[cfg(not(target_arch = "wasm32"))]
        let closing = self.soon(closing);
        let batch = closing.await?;
        Ok(Planned {
            batch: batch.require(in_time(&ticket)),
            outcome: Changed::Done(ticket),
        })
    }

    /// A plan that asks the application, or `Deadline`: a hook that hangs must not hold the caller of a verb.
    #[cfg(not(target_arch = "wasm32"))]
    async fn soon(
        &self,
        plan: impl Future<Output = Result<Batch, StoreError>>,
    ) -> Result<Batch, TimerError> {
        use crate::future::or_deadline;

        let limit = std::time::Duration::from_millis(self.close_ms);
        let sleep = || self.timers.runtime().sleep(limit);
        let planned = or_deadline(async { Ok(plan.await) }, sleep, limit).await;
        let late = |_| TimerError::Deadline {
            limit_ms: self.close_ms,
        };
        Ok(planned.map_err(late)??)
    }

    /// The batch that ends a ticket: record, idempotency key, counters, outcome, and what the hooks add.
    pub(super) async fn closing(
        &self,
        ctx: &TimerCtx<'_>,
        found: &Found,
        ticket: &Ticket,
        end: End,
    ) -> Result<Batch, StoreError> {
        let (reads, partition) = (ctx.reads(), ctx.partition());
        let counted = ticket.counted();
        let key = ticket.idempotency_key();
        let (counters, index) = read_counters(reads, partition, &counted, key).await?;
        let mut batch = found.remove();
        for (counted, counter) in counted.iter().zip(&counters) {
            batch = counter.replace(batch, one_less(counted, counter)?.as_ref());
        }
        // A key that names another ticket, or none, is not this ticket's any more.
        if let Some(index) = index
            && index.row.as_ref().is_some_and(|row| row.id == ticket.id())
            && !planted(Mutant::TicketKeepsKey)
        {
            batch = index.replace(batch, None);
        }
        batch = batch.append(self.hooks.on_close(ctx, ticket, end).await?);
        Ok(batch.append(self.outcomes(ctx, ticket, end).await?))
    }

    /// The outcome of a ticket, if there is an outbox for it.
    pub(super) async fn outcomes(
        &self,
        ctx: &TimerCtx<'_>,
        ticket: &Ticket,
        end: End,
    ) -> Result<Batch, StoreError> {
        let Some(name) = &self.outbox else {
            return Ok(Batch::new());
        };
        let now_ms = ctx.now_ms();
        let mut outbox = OutboxBuilder::read(ctx.reads(), ctx.partition(), name).await?;
        outbox.append(outcome(ticket, end, now_ms)?, now_ms)?;
        outbox
            .finish(&self.timers, now_ms)
            .map_err(|error| match error {
                TimerError::Store(error) => error,
                error => StoreError::invalid(error.to_string()),
            })
    }
}

/// A counter with a ticket less; none left is no row.
fn one_less(counted: &Counted, counter: &Observed<Counter>) -> Result<Option<Counter>, StoreError> {
    let row = counter
        .row
        .filter(|row| row.open > 0)
        .ok_or_else(|| StoreError::corrupt(format!("{counted} has a ticket and no counter")))?;
    Ok((row.open > 1).then(|| Counter {
        open: row.open - 1,
        stamp: row.stamp.saturating_add(1),
    }))
}
