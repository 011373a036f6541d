//! Tickets that could not be closed, and what may be done about them.

use bytes::Bytes;

use super::rows::{Aside, Counted, Counter, Index, Record, SET_ASIDE, TICKET, index_key};
use super::{End, TICKET_EXPIRY, Ticket, TicketId, Tickets};
use crate::kinds::observed::Observed;
use crate::kinds::planned::{Planned, Tried, until_committed};
use crate::kinds::row::Row;
use crate::store::{Batch, Partition, ScanRange, Value};
use crate::timers::{Timer, TimerCtx, TimerError, Tries};

/// Rows that a recount reads at a time.
const RECOUNT_PAGE: usize = 256;

/// A ticket that could not be closed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetAside {
    /// The ticket.
    pub id: TicketId,
    /// When it was set aside, in milliseconds since 1970.
    pub since_ms: u64,
    /// When it is tried again by itself, in milliseconds since 1970.
    pub next_try_ms: u64,
    /// How often it was tried.
    pub tries: u32,
    /// What does not decode.
    pub reason: String,
}

/// Tickets that are set aside, in the order of their ids.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SetAsidePage {
    /// The tickets of the page.
    pub tickets: Vec<SetAside>,
    /// Where to go on; `None` at the end.
    pub next: Option<TicketId>,
}

/// What a discarded ticket left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Discarded {
    /// The ticket, if it decoded.
    pub ticket: Option<Ticket>,
    /// Its row as it was found.
    pub row: Bytes,
}

impl Tickets {
    /// One page of the tickets that could not be closed, because a row of theirs, a counter, or the
    /// outbox does not decode; at most this many, 1 to 1,000.
    ///
    /// # Errors
    /// `Invalid` for a limit of 0; what the store says.
    pub async fn set_aside(
        &self,
        partition: &Partition,
        after: Option<TicketId>,
        limit: usize,
    ) -> Result<SetAsidePage, TimerError> {
        let (rows, next) = self.page(partition, SET_ASIDE, after, limit).await?;
        let tickets = rows.iter().map(|(id, value)| listed(*id, value)).collect();
        Ok(SetAsidePage { tickets, next })
    }

    /// Tries a ticket that is set aside again at once, in place of in up to a minute: for after a
    /// repair. Says whether there was such a ticket.
    ///
    /// # Errors
    /// `Contended` if it was changed eight times meanwhile; what the store says.
    pub async fn retry(&self, partition: &Partition, id: TicketId) -> Result<bool, TimerError> {
        until_committed!(self.timers, partition, self.plan_retry(partition, id))
    }

    /// Plans to try a ticket that is set aside again at once: two preconditions and two writes, none if
    /// there is no such ticket.
    ///
    /// # Errors
    /// What the store says.
    pub async fn plan_retry(
        &self,
        partition: &Partition,
        id: TicketId,
    ) -> Result<Planned<bool>, TimerError> {
        let found = self.find_row(partition, id).await?;
        if !found.is_set_aside() {
            return Ok(Planned::nothing(false));
        }
        let now_ms = self.now_ms();
        let timer = Timer::new(TICKET_EXPIRY, id.to_bytes()).due_at(now_ms);
        let timer = self.timers.plan_new(&timer)?;
        let earlier = found.aside();
        let aside = Aside {
            since_ms: earlier.as_ref().map_or(now_ms, |row| row.since_ms),
            timer_due_ms: now_ms,
            tries: earlier.as_ref().map_or(0, |row| row.tries),
            reason: earlier.map_or_else(String::new, |row| row.reason),
        };
        Ok(Planned {
            batch: found.set_aside(&aside).append(timer.batch),
            outcome: true,
        })
    }

    /// Gives up a ticket that is set aside: removes its row, and as far as they decode counts it out of
    /// its counters and frees its idempotency key; an outcome says [`End::Discarded`] if the ticket
    /// decodes and there is an outbox. A counter that it cannot be counted out of is to be
    /// [recounted](Self::recount). Hooks are not asked and no session is aborted. `None` if no such ticket
    /// is set aside.
    ///
    /// # Errors
    /// `Contended` if it was changed eight times meanwhile; what the store says.
    pub async fn discard(
        &self,
        partition: &Partition,
        id: TicketId,
    ) -> Result<Option<Discarded>, TimerError> {
        until_committed!(self.timers, partition, self.plan_discard(partition, id))
    }

    /// Plans to give up a ticket that is set aside, to be committed with what the application does about
    /// it: at most seven preconditions and eight writes; none if there is no such ticket.
    ///
    /// # Errors
    /// What the store says.
    pub async fn plan_discard(
        &self,
        partition: &Partition,
        id: TicketId,
    ) -> Result<Planned<Option<Discarded>>, TimerError> {
        let found = self.find_row(partition, id).await?;
        let Some(row) = found.bytes().filter(|_| found.is_set_aside()).cloned() else {
            return Ok(Planned::nothing(None));
        };
        let ticket = found.ticket().ok().flatten();
        let mut batch = found.remove();
        if let Some(ticket) = &ticket {
            batch = self.count_out(partition, ticket, batch).await?;
            let ctx = TimerCtx::new(self.reads(), partition, self.now_ms());
            batch = batch.append(self.outcomes(&ctx, ticket, End::Discarded).await?);
        }
        Ok(Planned {
            batch,
            outcome: Some(Discarded { ticket, row }),
        })
    }

    /// Counts a ticket out of the counters that decode, and frees its key.
    async fn count_out(
        &self,
        partition: &Partition,
        ticket: &Ticket,
        mut batch: Batch,
    ) -> Result<Batch, TimerError> {
        for counted in ticket.counted() {
            let key = counted.key();
            let bytes = self.reads().get(partition, &key).await?;
            let Ok(counter) = Observed::<Counter>::of(key, bytes) else {
                continue;
            };
            if let Some(row) = counter.row {
                let open = row.open.saturating_sub(1);
                let stamp = row.stamp.saturating_add(1);
                let left = Counter { open, stamp };
                batch = counter.replace(batch, Some(&left).filter(|_| open > 0));
            }
        }
        if let Some(key) = ticket.idempotency_key() {
            let key = index_key(key);
            if let Some(bytes) = self.reads().get(partition, &key).await?
                && Index::decode(&bytes).map_or(true, |row| row.id == ticket.id())
            {
                batch = batch.require_equals(key.clone(), bytes).delete(key);
            }
        }
        Ok(batch)
    }

    /// Counts the open tickets of a resource or an actor anew, and writes the counter, whatever it was:
    /// for a counter that does not decode, or after a ticket that does not was discarded. Reads every
    /// ticket of the partition; those that do not decode are not counted. Returns how many there are.
    ///
    /// # Errors
    /// `Contended` if tickets of it were opened or ended meanwhile, eight times; what the store says.
    pub async fn recount(
        &self,
        partition: &Partition,
        counted: &Counted,
    ) -> Result<u64, TimerError> {
        let mut tries = Tries::default();
        loop {
            let key = counted.key();
            let before = self.reads().get(partition, &key).await?;
            let open = self.count(partition, counted).await?;
            // Every ticket that is opened or ended changes the counter, and no two of its rows are the
            // same: the guard holds the whole walk together. Only its absence says nothing, so there
            // the walk is made once more over the row that is now there.
            let was_absent = before.is_none();
            if was_absent && open == 0 {
                return Ok(0);
            }
            let guarded = Batch::new().require_unchanged(key.clone(), before.clone());
            let batch = if open > 0 {
                let stamp = self.timers.runtime().draw_generation();
                guarded.put(key, Counter { open, stamp }.encode())
            } else {
                guarded.delete(key)
            };
            let planned = Planned {
                batch,
                outcome: open,
            };
            match self.try_apply(partition, planned).await? {
                Tried::Committed(open) if !was_absent => return Ok(open),
                Tried::Committed(_) | Tried::Lost | Tried::Late(_) => tries.changed()?,
            }
        }
    }

    async fn count(&self, partition: &Partition, counted: &Counted) -> Result<u64, TimerError> {
        let mut range = ScanRange::new(TICKET.key(&[]), TICKET.end(), RECOUNT_PAGE);
        let mut open = 0;
        loop {
            let page = self.reads().scan(partition, &range).await?;
            for (_, value) in &page.rows {
                let Ok(record) = Record::decode(value) else {
                    continue;
                };
                let is_counted = match counted {
                    Counted::Resource(resource) => record.resource == *resource,
                    Counted::Actor(actor) => record.actor.as_ref() == Some(actor),
                };
                open += u64::from(is_counted);
            }
            match page.next {
                Some(cursor) => range.after = Some(cursor),
                None => return Ok(open),
            }
        }
    }
}

fn listed(id: TicketId, value: &Value) -> SetAside {
    match Aside::decode(value) {
        Ok(row) => SetAside {
            id,
            since_ms: row.since_ms,
            next_try_ms: row.timer_due_ms,
            tries: row.tries,
            reason: row.reason,
        },
        Err(malformed) => SetAside {
            id,
            since_ms: 0,
            next_try_ms: 0,
            tries: 0,
            reason: format!("its own row does not decode: {}", malformed.0),
        },
    }
}
