use super::close::{Changed, in_time};
use super::request::validate_ttl;
use super::rows::Record;
use super::{TICKET_EXPIRY, Ticket, TicketId, Tickets};
use crate::kinds::planned::{Planned, until_committed};
use crate::store::{Batch, Partition};
use crate::timers::{Timer, TimerError, validate_due};

impl Tickets {
    /// Holds a ticket for at least this many milliseconds from now; never shortens it.
    ///
    /// # Errors
    /// `Invalid` for a time that is too long; `Contended` if the ticket was changed eight times meanwhile;
    /// what the store says, `Corrupt` if it does not decode.
    pub async fn extend(
        &self,
        partition: &Partition,
        id: TicketId,
        ttl_ms: u64,
    ) -> Result<Changed, TimerError> {
        until_committed!(
            self.timers,
            partition,
            self.plan_extend(partition, id, ttl_ms),
            |changed: Changed| Ok(changed.too_late())
        )
    }

    /// Plans an extension: three preconditions and a write. The ticket keeps its timer, which finds the
    /// later time when it fires. As [`plan_consume`](Self::plan_consume) it holds until the ticket's time
    /// is over.
    ///
    /// # Errors
    /// As [`extend`](Self::extend), but never `Contended`.
    pub async fn plan_extend(
        &self,
        partition: &Partition,
        id: TicketId,
        ttl_ms: u64,
    ) -> Result<Planned<Changed>, TimerError> {
        validate_ttl(ttl_ms, self.ttl_max_ms)?;
        let found = self.find_row(partition, id).await?;
        let Some(ticket) = found.ticket()? else {
            return Ok(Planned::nothing(Changed::Gone));
        };
        let now_ms = self.now_ms();
        if ticket.is_expired_at(now_ms) {
            return Ok(Planned::nothing(Changed::Expired(ticket)));
        }
        let until_ms = now_ms.saturating_add(ttl_ms);
        validate_due(until_ms)?;
        if until_ms <= ticket.expires_at_ms() {
            return Ok(Planned {
                batch: found.guard(Batch::new()),
                outcome: Changed::Done(ticket),
            });
        }
        let record = Record {
            expires_at_ms: until_ms,
            ..ticket.record().clone()
        };
        Ok(Planned {
            batch: found.put(&record).require(in_time(&ticket)),
            outcome: Changed::Done(Ticket::new(id, record)),
        })
    }

    /// Ends a ticket as if its time were over: it can no longer be consumed, and a timer that is due at
    /// once aborts its session and closes it.
    ///
    /// # Errors
    /// As [`consume`](Self::consume).
    pub async fn cancel(&self, partition: &Partition, id: TicketId) -> Result<Changed, TimerError> {
        until_committed!(
            self.timers,
            partition,
            self.plan_cancel(partition, id),
            |changed: Changed| Ok(changed.too_late())
        )
    }

    /// Plans a cancellation: four preconditions and at most three writes. As
    /// [`plan_consume`](Self::plan_consume) it holds until the ticket's time is over.
    ///
    /// # Errors
    /// As [`plan_consume`](Self::plan_consume).
    pub async fn plan_cancel(
        &self,
        partition: &Partition,
        id: TicketId,
    ) -> Result<Planned<Changed>, TimerError> {
        let found = self.find_row(partition, id).await?;
        let Some(ticket) = found.ticket()? else {
            return Ok(Planned::nothing(Changed::Gone));
        };
        let now_ms = self.now_ms();
        if ticket.is_expired_at(now_ms) {
            return Ok(Planned::nothing(Changed::Expired(ticket)));
        }
        let timer = Timer::new(TICKET_EXPIRY, id.to_bytes()).due_at(now_ms);
        let timer = self.timers.plan_new(&timer)?;
        let record = Record {
            expires_at_ms: now_ms,
            timer_due_ms: now_ms,
            is_cancelled: true,
            ..ticket.record().clone()
        };
        Ok(Planned {
            batch: found
                .put_back(&record)
                .require(in_time(&ticket))
                .append(timer.batch),
            outcome: Changed::Done(Ticket::new(id, record)),
        })
    }
}
