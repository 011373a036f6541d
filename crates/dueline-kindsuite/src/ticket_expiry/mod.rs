//! Tickets: holds on a resource that end once.

mod costs;
mod ending;
mod expiry;
mod golden;
mod hooks;
pub mod model;
mod opening;
mod sessions;
mod set_aside;

pub use costs::*;
pub use ending::*;
pub use expiry::*;
pub use golden::*;
pub use hooks::*;
pub use opening::*;
pub use sessions::*;
pub use set_aside::*;

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use dueline::kinds::outcome_delivery::{OUTCOME_DELIVERY, OutboxName};
use dueline::kinds::ticket_expiry::{
    Counted, Hold, Opened, TICKET_EXPIRY, Ticket, TicketEvent, TicketHooks, Tickets,
};
use dueline::store::{Key, Partition};
use dueline::timers::{Engine, RunReport};
use dueline_testkit::block_on;

use crate::{Make, World};

pub(crate) const TTL_MS: u64 = 600_000;

/// A world with tickets and an engine that expires them.
pub(crate) struct Rig {
    pub(crate) world: World,
    pub(crate) tickets: Tickets,
    pub(crate) engine: Engine,
}

impl Rig {
    /// Tickets whose ends are told to an outbox.
    pub(crate) fn new(make: Make<'_>) -> Self {
        Self::with(make, |tickets| tickets)
    }

    pub(crate) fn with(make: Make<'_>, configure: impl FnOnce(Tickets) -> Tickets) -> Self {
        Self::over(World::new(make), configure)
    }

    pub(crate) fn over(world: World, configure: impl FnOnce(Tickets) -> Tickets) -> Self {
        let outbox = OutboxName::new("ends").unwrap();
        let tickets = configure(Tickets::new(world.timers.clone()).with_outbox(outbox));
        let engine = world.engine(TICKET_EXPIRY, tickets.registration());
        Self {
            world,
            tickets,
            engine,
        }
    }

    pub(crate) fn open(&self, hold: &Hold) -> Ticket {
        match block_on(self.tickets.open(&self.world.partition, hold)).unwrap() {
            Opened::New(ticket) => ticket,
            other => panic!("a new ticket was expected: {other:?}"),
        }
    }

    pub(crate) fn tick(&self) -> RunReport {
        self.world.tick(&self.engine)
    }

    pub(crate) fn count(&self, counted: &Counted) -> u64 {
        block_on(self.tickets.open_count(&self.world.partition, counted)).unwrap()
    }

    pub(crate) fn seat_count(&self) -> u64 {
        self.count(&Counted::Resource("seat".into()))
    }

    /// The ends that were told, in their order: id of the ticket and the word of its end.
    pub(crate) fn ends(&self) -> Vec<(String, String)> {
        let pending = self.kind_rows(OUTCOME_DELIVERY.0, b'o');
        pending.iter().map(|(_, row)| end_of(row)).collect()
    }

    /// The rows of one table of a built-in kind.
    pub(crate) fn kind_rows(&self, kind: u8, letter: u8) -> Vec<(Key, Bytes)> {
        let mut rows = self.world.kind_rows();
        rows.retain(|(key, _)| key[2] == kind && key[3] == letter);
        rows
    }

    /// How many rows tickets have in the partition, whatever they are.
    pub(crate) fn ticket_rows(&self) -> usize {
        let rows = self.world.kind_rows();
        rows.iter()
            .filter(|(key, _)| key[2] == TICKET_EXPIRY.0)
            .count()
    }

    /// The timers of tickets that wait.
    pub(crate) fn ticket_timers(&self) -> Vec<Key> {
        let mut keys = self.world.timer_keys();
        keys.retain(|key| key[2] == TICKET_EXPIRY.0);
        keys
    }

    /// Nothing is left of any ticket.
    #[track_caller]
    pub(crate) fn assert_clean(&self) {
        assert_eq!(self.ticket_rows(), 0, "rows are left");
        assert_eq!(self.ticket_timers(), Vec::<Key>::new());
    }

    /// Writes bytes into a row behind everybody's back.
    pub(crate) fn damage(&self, key: &Key, value: impl Into<Bytes>) {
        let batch = dueline::store::Batch::new().put(key.clone(), value.into());
        let done = block_on(self.world.store.inner().apply(&self.world.partition, batch));
        assert!(done.unwrap().is_committed());
    }
}

/// The message of a ticket in a row of the outbox, whatever that writes in front of it.
pub(crate) fn body_of(row: &[u8]) -> &str {
    let start = row.windows(5).position(|bytes| bytes == b"{\"v\":");
    std::str::from_utf8(&row[start.unwrap()..]).unwrap()
}

/// The id and the word of the end in a row of the outbox.
pub(crate) fn end_of(row: &[u8]) -> (String, String) {
    let body = body_of(row);
    let field = |name: &str| {
        let from = body.split_once(&format!("\"{name}\":\"")).unwrap().1;
        from.split_once('"').unwrap().0.to_owned()
    };
    (field("ticket"), field("end"))
}

/// A seat for an actor under a key: everything a ticket can have but a session.
pub(crate) fn seat() -> Hold {
    Hold::new("seat", TTL_MS)
        .actor("alice")
        .idempotency_key("request-1")
}

/// Hooks that write nothing and keep what they are told.
#[derive(Clone, Debug, Default)]
pub(crate) struct Told(pub(crate) Arc<Mutex<Vec<TicketEvent>>>);

impl TicketHooks for Told {
    fn on_event(&self, _: &Partition, event: &TicketEvent) {
        self.0.lock().unwrap().push(event.clone());
    }
}

impl Told {
    pub(crate) fn take(&self) -> Vec<TicketEvent> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }
}
