//! A process of a history: its clock, its handle of the store, its tickets and its engine.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use dueline::BoxFuture;
use dueline::kinds::outcome_delivery::OutboxName;
use dueline::kinds::ticket_expiry::{
    End, SessionAbort, TICKET_EXPIRY, Ticket, TicketHooks, TicketId, Tickets,
};
use dueline::runtime::Runtime;
use dueline::store::{Batch, Key, NamespaceStore, Partition, StoreError};
use dueline::timers::{Engine, HandlerError, Registry, TimerCtx, Timers};
use dueline_testkit::model::{Arena, Source};
use dueline_testkit::{ManualClock, SequenceEntropy};

pub(super) const RESOURCE_MAX: u64 = 3;
pub(super) const ACTOR_MAX: u64 = 4;
/// What the hooks count.
pub(super) const HOOK_TOTAL: Key = Bytes::from_static(b"ends");

/// Sessions that were aborted.
pub(super) type Aborted = Arc<Mutex<BTreeSet<TicketId>>>;

/// Counts the ends in a row of the application, as hooks that read and guard do.
struct CountsEnds;

impl TicketHooks for CountsEnds {
    fn on_close<'a>(
        &'a self,
        ctx: &'a TimerCtx<'a>,
        _: &'a Ticket,
        _: End,
    ) -> BoxFuture<'a, Result<Batch, StoreError>> {
        Box::pin(async move {
            let before = ctx.get(&HOOK_TOTAL).await?;
            let total = before.as_ref().map_or(0, |row| {
                u64::from_be_bytes(row.as_ref().try_into().unwrap())
            });
            let after = Bytes::copy_from_slice(&(total + 1).to_be_bytes());
            Ok(Batch::new()
                .require_unchanged(HOOK_TOTAL, before)
                .put(HOOK_TOTAL, after))
        })
    }
}

/// Aborts sessions; every third try fails.
struct Aborts(Aborted, Mutex<u64>);

impl SessionAbort for Aborts {
    fn abort<'a>(
        &'a self,
        _: &'a Partition,
        ticket: &'a Ticket,
    ) -> BoxFuture<'a, Result<(), HandlerError>> {
        Box::pin(async move {
            self.0.lock().unwrap().insert(ticket.id());
            let mut tries = self.1.lock().unwrap();
            *tries += 1;
            if tries.is_multiple_of(3) {
                return Err(HandlerError::new("no answer"));
            }
            Ok(())
        })
    }
}

/// One process.
pub(super) struct Process {
    pub(super) clock: ManualClock,
    pub(super) tickets: Tickets,
    pub(super) engine: Engine,
}

impl Process {
    pub(super) fn new(
        arena: &Arc<Arena>,
        (source, seed): (Source, u64),
        clock: ManualClock,
        group_max: u16,
        aborted: Option<&Aborted>,
    ) -> Self {
        let runtime = Runtime::new(
            Arc::new(clock.clone()),
            Arc::new(clock.clone()),
            Arc::new(SequenceEntropy::new(seed)),
        );
        let store = arena.actor(source) as Arc<dyn NamespaceStore>;
        let tickets = tickets_over(Timers::new(Arc::clone(&store), runtime.clone()), aborted);
        let registration = tickets.registration().group_max(group_max);
        let registry = Registry::new().with(TICKET_EXPIRY, registration).unwrap();
        Self {
            clock,
            engine: Engine::new(store, runtime, registry),
            tickets,
        }
    }
}

/// Tickets as all processes have them; who runs their timers aborts sessions.
pub(super) fn tickets_over(timers: Timers, aborted: Option<&Aborted>) -> Tickets {
    let tickets = Tickets::new(timers)
        .with_outbox(OutboxName::new("ends").unwrap())
        .with_hooks(CountsEnds);
    match aborted {
        Some(aborted) => tickets.with_sessions(Aborts(Arc::clone(aborted), Mutex::new(0))),
        None => tickets,
    }
}
