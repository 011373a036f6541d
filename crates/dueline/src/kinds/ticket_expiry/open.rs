use super::request::{Hold, Opened, Refusal};
use super::rows::{Counted, Counter, Index, Record, ticket_key};
use super::ticket::counted;
use super::tickets::read_counters;
use super::{TICKET_EXPIRY, Ticket, TicketId, Tickets};
use crate::kinds::observed::Observed;
use crate::kinds::planned::{Planned, Tried};
use crate::kinds::row::Row;
use crate::store::{Batch, Partition};
use crate::timers::{Timer, TimerError, Tries};

impl Tickets {
    /// Opens a ticket.
    ///
    /// After an error of kind `Unknown` ask again under the same idempotency key: it answers with the
    /// ticket if there is one.
    ///
    /// # Errors
    /// `Invalid` for a field over its limit, or a time that is too long; `Contended` if the counters were
    /// changed eight times meanwhile; what the store says, `Corrupt` if a row does not decode.
    pub async fn open(&self, partition: &Partition, hold: &Hold) -> Result<Opened, TimerError> {
        let mut tries = Tries::default();
        loop {
            let planned = self.plan_open(partition, hold).await?;
            match self.try_apply(partition, planned).await? {
                Tried::Committed(opened) => return Ok(opened),
                Tried::Lost | Tried::Late(_) => tries.changed()?,
            }
        }
    }

    /// Plans the opening of a ticket: at most five preconditions and five writes, the ticket's timer
    /// among them. Look at the outcome before committing: if it is refused the batch is empty.
    ///
    /// A batch may hold plans of several tickets only if no two count for the same resource or actor or
    /// have one outbox: the store refuses others as `Invalid`.
    ///
    /// # Errors
    /// As [`open`](Self::open), but never `Contended`.
    pub async fn plan_open(
        &self,
        partition: &Partition,
        hold: &Hold,
    ) -> Result<Planned<Opened>, TimerError> {
        hold.validate(self.ttl_max_ms)?;
        let counted = counted(&hold.resource, hold.actor.as_ref());
        let (counters, index) =
            read_counters(self.reads(), partition, &counted, hold.key.as_ref()).await?;
        if let Some(index) = &index
            && let Some(planned) = self.under_key(partition, hold, index).await?
        {
            return Ok(planned);
        }
        for (counted, counter) in counted.iter().zip(&counters) {
            if let Some(refusal) = refusal(hold, counted, counter.row) {
                return Ok(Planned::nothing(Opened::Refused(refusal)));
            }
        }
        self.place(hold, &counters, index.as_ref())
    }

    /// What a ticket that is open under the key has to say.
    async fn under_key(
        &self,
        partition: &Partition,
        hold: &Hold,
        index: &Observed<Index>,
    ) -> Result<Option<Planned<Opened>>, TimerError> {
        let Some(Index { id }) = index.row else {
            return Ok(None);
        };
        let found: Observed<Record> =
            Observed::read(self.reads(), partition, ticket_key(id)).await?;
        let Some(record) = found.row.clone() else {
            // What the key names is gone: it is free.
            return Ok(None);
        };
        let ticket = Ticket::new(id, record);
        if !hold.is_of(&ticket) {
            let refusal = Refusal::KeyTaken { id };
            return Ok(Some(Planned::nothing(Opened::Refused(refusal))));
        }
        if ticket.is_expired_at(self.now_ms()) {
            let refusal = Refusal::KeyClosing { id };
            return Ok(Some(Planned::nothing(Opened::Refused(refusal))));
        }
        Ok(Some(Planned {
            batch: found.guard(index.guard(Batch::new())),
            outcome: Opened::Existing(ticket),
        }))
    }

    fn place(
        &self,
        hold: &Hold,
        counters: &[Observed<Counter>],
        index: Option<&Observed<Index>>,
    ) -> Result<Planned<Opened>, TimerError> {
        let id = TicketId::draw(self.timers.runtime());
        let now_ms = self.now_ms();
        let expires_at_ms = now_ms.saturating_add(hold.ttl_ms);
        let timer = Timer::new(TICKET_EXPIRY, id.to_bytes()).due_at(expires_at_ms);
        let timer = self.timers.plan_new(&timer)?;
        let record = Record {
            opened_at_ms: now_ms,
            expires_at_ms,
            timer_due_ms: expires_at_ms,
            ttl_ms: hold.ttl_ms,
            is_cancelled: false,
            resource: hold.resource.clone(),
            actor: hold.actor.clone(),
            key: hold.key.clone(),
            session: hold.session.clone(),
            data: hold.data.clone(),
        };
        let key = ticket_key(id);
        let mut batch = Batch::new()
            .require_absent(key.clone())
            .put(key, record.encode());
        for counter in counters {
            let (open, stamp) = counter.row.map_or((0, 0), |row| (row.open, row.stamp));
            let counter_row = Counter {
                open: open.saturating_add(1),
                stamp: timer.scheduled.generation.max(stamp.saturating_add(1)),
            };
            batch = counter.replace(batch, Some(&counter_row));
        }
        if let Some(index) = index {
            batch = index.replace(batch, Some(&Index { id }));
        }
        Ok(Planned {
            batch: batch.append(timer.batch),
            outcome: Opened::New(Ticket::new(id, record)),
        })
    }
}

/// Which limit the hold would go over.
fn refusal(hold: &Hold, counted: &Counted, counter: Option<Counter>) -> Option<Refusal> {
    let open = counter.map_or(0, |counter| counter.open);
    match counted {
        Counted::Resource(_) => hold
            .resource_max
            .filter(|open_max| open >= *open_max)
            .map(|open_max| Refusal::ResourceFull { open, open_max }),
        Counted::Actor(_) => hold
            .actor_max
            .filter(|open_max| open >= *open_max)
            .map(|open_max| Refusal::ActorFull { open, open_max }),
    }
}
