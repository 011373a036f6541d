use std::fmt;
use std::sync::Arc;

use bytes::Bytes;

use super::found::Found;
use super::hooks::NoHooks;
use super::rows::{Counted, Counter, Index, TICKET, id_of, index_key, ticket_key};
use super::{SessionAbort, Ticket, TicketEvent, TicketHooks, TicketId};
use crate::kinds::observed::Observed;
use crate::kinds::outcome_delivery::OutboxName;
use crate::kinds::planned::{Planned, Tried};
use crate::kinds::row::{Row, Table};
use crate::store::{Cursor, Partition, ReadStore, ScanRange, StoreError, Value};
use crate::timers::{TimerError, Timers};

/// How long a ticket is held at most, by default: less than seven days, in milliseconds.
pub const TICKET_TTL_MAX_MS: u64 = 7 * 24 * 60 * 60 * 1_000;
/// How many tickets a tick expires at most, by default, if sessions are to be aborted.
pub const TICKET_CALLS_PER_TICK: u32 = 8;
/// How long the abort of a session may take, by default, in milliseconds.
pub const TICKET_ABORT_MS: u64 = 5_000;
/// How long the hook of a ticket's end may take in a verb, by default, in milliseconds.
pub const TICKET_CLOSE_MS: u64 = 30_000;
/// Most tickets of one page; a larger limit counts as this.
pub const TICKET_PAGE_MAX: usize = 1_000;

/// Tickets in every partition of a store: opening and ending them, and the handler that closes those
/// whose time is over.
///
/// Whoever opens or ends tickets and whoever registers the handler must use the same outbox, hooks and
/// sessions: make one, and clone it.
#[derive(Clone)]
pub struct Tickets {
    pub(super) timers: Timers,
    pub(super) outbox: Option<OutboxName>,
    pub(super) hooks: Arc<dyn TicketHooks>,
    pub(super) sessions: Option<Arc<dyn SessionAbort>>,
    pub(super) ttl_max_ms: u64,
    pub(super) calls_per_tick: u32,
    pub(super) abort_ms: u64,
    pub(super) close_ms: u64,
}

impl Tickets {
    /// Tickets without outcomes, hooks and external sessions.
    pub fn new(timers: Timers) -> Self {
        Self {
            timers,
            outbox: None,
            hooks: Arc::new(NoHooks),
            sessions: None,
            ttl_max_ms: TICKET_TTL_MAX_MS,
            calls_per_tick: TICKET_CALLS_PER_TICK,
            abort_ms: TICKET_ABORT_MS,
            close_ms: TICKET_CLOSE_MS,
        }
    }

    /// Appends an outcome to this outbox, in the ticket's partition and in the batch that closes it, for
    /// each ticket that ends.
    #[must_use]
    pub fn with_outbox(mut self, name: OutboxName) -> Self {
        self.outbox = Some(name);
        self
    }

    /// Commits the application's own writes with the end of each ticket, and tells it what it may count.
    #[must_use]
    pub fn with_hooks(mut self, hooks: impl TicketHooks) -> Self {
        self.hooks = Arc::new(hooks);
        self
    }

    /// Aborts the external sessions of tickets that expire or are cancelled. Timers then leave the tick
    /// to do so: see [`registration`](Self::registration).
    #[must_use]
    pub fn with_sessions(mut self, sessions: impl SessionAbort) -> Self {
        self.sessions = Some(Arc::new(sessions));
        self
    }

    /// Refuses tickets that would be held for this many milliseconds or longer.
    #[must_use]
    pub fn with_ttl_max_ms(mut self, ttl_max_ms: u64) -> Self {
        self.ttl_max_ms = ttl_max_ms;
        self
    }

    /// Expires at most this many tickets in a tick if sessions are to be aborted, at least 1.
    #[must_use]
    pub fn with_calls_per_tick(mut self, calls_per_tick: u32) -> Self {
        self.calls_per_tick = calls_per_tick.max(1);
        self
    }

    /// Gives the abort of one session this many milliseconds, at least 1.
    #[must_use]
    pub fn with_abort_ms(mut self, abort_ms: u64) -> Self {
        self.abort_ms = abort_ms.max(1);
        self
    }

    /// Gives a verb that ends a ticket this many milliseconds, at least 1, to be planned with what
    /// [`TicketHooks::on_close`] adds; behind it the verb is [`TimerError::Deadline`]. Each time that the end
    /// is planned again has as long. A tick has its own deadline, 5 s.
    ///
    /// On `wasm32` the host bounds what it asks of the application, and this is not looked at.
    #[must_use]
    pub fn with_close_ms(mut self, close_ms: u64) -> Self {
        self.close_ms = close_ms.max(1);
        self
    }

    /// The ticket of this id, if it is open.
    ///
    /// # Errors
    /// What the store says; `Corrupt` if the ticket does not decode.
    pub async fn read(
        &self,
        partition: &Partition,
        id: TicketId,
    ) -> Result<Option<Ticket>, TimerError> {
        let bytes = self.reads().get(partition, &ticket_key(id)).await?;
        let record = bytes.as_ref().map(Row::read).transpose()?;
        Ok(record.map(|record| Ticket::new(id, record)))
    }

    /// The open ticket of this idempotency key.
    ///
    /// # Errors
    /// What the store says; `Corrupt` if a row does not decode.
    pub async fn find(
        &self,
        partition: &Partition,
        idempotency_key: impl Into<Bytes>,
    ) -> Result<Option<Ticket>, TimerError> {
        let key = index_key(&idempotency_key.into());
        match self.reads().get(partition, &key).await? {
            Some(bytes) => self.read(partition, Index::read(&bytes)?.id).await,
            None => Ok(None),
        }
    }

    /// How many tickets of a resource or an actor are open. Those whose time is over count until their
    /// timer has closed them.
    ///
    /// # Errors
    /// What the store says; `Corrupt` if the counter does not decode.
    pub async fn open_count(
        &self,
        partition: &Partition,
        counted: &Counted,
    ) -> Result<u64, TimerError> {
        let bytes = self.reads().get(partition, &counted.key()).await?;
        let counter = bytes.as_ref().map(Counter::read).transpose()?;
        Ok(counter.map_or(0, |counter| counter.open))
    }

    /// One page of the open tickets of a partition in the order of their ids, behind this one; at most
    /// this many, 1 to 1,000.
    ///
    /// # Errors
    /// `Invalid` for a limit of 0; what the store says.
    pub async fn list(
        &self,
        partition: &Partition,
        after: Option<TicketId>,
        limit: usize,
    ) -> Result<TicketPage, TimerError> {
        let (rows, next) = self.page(partition, TICKET, after, limit).await?;
        let mut page = TicketPage {
            next,
            ..TicketPage::default()
        };
        for (id, value) in rows {
            match Row::decode(&value) {
                Ok(record) => page.tickets.push(Ticket::new(id, record)),
                Err(_) => page.unreadable.push(id),
            }
        }
        Ok(page)
    }

    /// One page of a table of ids, and where the next begins. Keys that hold no id are passed over, and end
    /// no page.
    pub(super) async fn page(
        &self,
        partition: &Partition,
        table: Table,
        after: Option<TicketId>,
        limit: usize,
    ) -> Result<(Vec<(TicketId, Value)>, Option<TicketId>), TimerError> {
        let after = after.map(|id| Cursor::behind(table.key(&[id.as_bytes()])));
        let mut range =
            ScanRange::new(table.key(&[]), table.end(), page_limit(limit)?).after(after);
        loop {
            let page = self.reads().scan(partition, &range).await?;
            let rows: Vec<(TicketId, Value)> = page
                .rows
                .into_iter()
                .filter_map(|(key, value)| Some((id_of(table, &key)?, value)))
                .collect();
            match (page.next, rows.last()) {
                (None, _) => return Ok((rows, None)),
                (Some(_), Some((last, _))) => {
                    let last = *last;
                    return Ok((rows, Some(last)));
                }
                (Some(cursor), None) => range.after = Some(cursor),
            }
        }
    }

    /// The verbs and the store that these tickets go through.
    pub fn timers(&self) -> &Timers {
        &self.timers
    }

    pub(super) fn reads(&self) -> &dyn ReadStore {
        self.timers.store().as_ref()
    }

    pub(super) fn now_ms(&self) -> u64 {
        self.timers.runtime().now_ms()
    }

    /// The ticket as the verbs need it, with what guards it.
    pub(super) async fn find_row(
        &self,
        partition: &Partition,
        id: TicketId,
    ) -> Result<Found, StoreError> {
        Found::read(self.reads(), partition, id).await
    }

    pub(super) fn tell(&self, partition: &Partition, event: &TicketEvent) {
        match event {
            TicketEvent::AbortFailed { id, error } => {
                tracing::warn!(%partition, ticket = %id, error, "a session could not be aborted");
            }
            TicketEvent::SetAside { id, reason, tries } => {
                tracing::warn!(%partition, ticket = %id, reason, tries, "a ticket is set aside");
            }
        }
        self.hooks.on_event(partition, event);
    }

    /// Commits a plan by itself.
    pub(super) async fn try_apply<T>(
        &self,
        partition: &Partition,
        planned: Planned<T>,
    ) -> Result<Tried<T>, TimerError> {
        planned
            .commit(self.timers.store().as_ref(), partition)
            .await
    }
}

/// Tickets in the order of their ids.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TicketPage {
    /// Those whose rows decode.
    pub tickets: Vec<Ticket>,
    /// Those whose rows do not.
    pub unreadable: Vec<TicketId>,
    /// Where to go on; `None` at the end.
    pub next: Option<TicketId>,
}

pub(super) fn page_limit(limit: usize) -> Result<usize, TimerError> {
    if limit == 0 {
        return Err(TimerError::invalid("a page needs a limit of at least 1"));
    }
    Ok(limit.min(TICKET_PAGE_MAX))
}

/// Reads the counters in one call, in their order.
pub(super) async fn read_counters(
    reads: &dyn ReadStore,
    partition: &Partition,
    counted: &[Counted],
    index_key: Option<&Bytes>,
) -> Result<(Vec<Observed<Counter>>, Option<Observed<Index>>), StoreError> {
    let mut keys: Vec<_> = counted.iter().map(Counted::key).collect();
    keys.extend(index_key.map(|key| super::rows::index_key(key)));
    let mut values = reads.get_many(partition, &keys).await?.into_iter();
    let mut keys = keys.into_iter();
    let mut counters = Vec::with_capacity(counted.len());
    for (_, key) in counted.iter().zip(keys.by_ref()) {
        counters.push(Observed::of(key, values.next().flatten())?);
    }
    let index = keys
        .next()
        .map(|key| Observed::of(key, values.next().flatten()))
        .transpose()?;
    Ok((counters, index))
}

impl fmt::Debug for Tickets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tickets")
            .field("outbox", &self.outbox)
            .field("has_sessions", &self.sessions.is_some())
            .field("ttl_max_ms", &self.ttl_max_ms)
            .field("calls_per_tick", &self.calls_per_tick)
            .field("abort_ms", &self.abort_ms)
            .field("close_ms", &self.close_ms)
            .finish_non_exhaustive()
    }
}
