//! Tickets: holds on a resource that are used, given back, or expire.
//!
//! For whoever sells seats, reserves stock, hands out upload slots or limits what somebody may have
//! under way. A ticket holds one unit of a resource for one actor until its time is over. It ends exactly
//! once, in one batch: its record, its idempotency key, its counters, an outcome, and what the
//! application adds.
//!
//! ```text
//!            open                    consume, release
//!  (none) ----------> open ------------------------------------> ended, in one batch
//!                     | ^  \                                       ^
//!              extend +-+   \ time is over, or cancel              |
//!                            +--> expired -- its timer: abort of --+
//!                                    |  ^    the session, then the batch
//!                  a row that does   v  | every minute, or retry
//!                  not decode     set aside -- discard ----------> ended
//! ```
//!
//! * **Opening** ([`Tickets::open`]) is idempotent under a key of the caller's: the same request gets the
//!   same ticket for as long as it is open, another request under the key is refused. It counts the ticket
//!   for its resource and its actor and refuses what would go over a limit, with the figures.
//! * **Consuming** ([`Tickets::consume`]), releasing and extending work until the time of the ticket is
//!   over *by the store's clock*, which their batches guard; expiring begins there. So no ticket is
//!   consumed after its timer has begun to abort its session, unless the store's clock is set back.
//! * **Expiring** closes the ticket within the tick, many in one commit. With
//!   [`Tickets::with_sessions`] the timer is claimed first and goes out to abort the external session, best
//!   effort; what comes of that never keeps a ticket open.
//! * **Rows that do not decode** set a ticket aside: it is listed ([`Tickets::set_aside`]), costs one run
//!   a minute and keeps nobody else waiting. [`Tickets::recount`] mends a counter, [`Tickets::retry`] tries
//!   at once, [`Tickets::discard`] gives the ticket up.
//!
//! Timers are at least as late as their tick: the counters may hold a ticket whose time is over for that
//! long, and a key answers [`Refusal::KeyClosing`] meanwhile. A key is free again when its ticket has
//! ended.
//!
//! # Example
//!
//! ```
//! use std::sync::Arc;
//! use dueline::kinds::ticket_expiry::{Counted, Hold, Opened, Refusal, TICKET_EXPIRY, Tickets};
//! use dueline::memory::MemoryStore;
//! use dueline::store::Partition;
//! use dueline::timers::{Engine, Registry, TickBudget, Timers, run_due};
//! use dueline_testkit::{ManualClock, block_on, test_runtime};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let clock = ManualClock::new(1_000);
//! let runtime = test_runtime(&clock);
//! let store = Arc::new(MemoryStore::new(Arc::new(clock.clone())));
//! let tickets = Tickets::new(Timers::new(store.clone(), runtime.clone()));
//! let registry = Registry::new().with(TICKET_EXPIRY, tickets.registration())?;
//! let engine = Engine::new(store, runtime, registry);
//! let show = Partition::new("show-7")?;
//!
//! block_on(async {
//!     let hold = |actor: &'static str| Hold::new("seat-12A", 600_000).actor(actor).resource_max(1);
//!     let opened = tickets.open(&show, &hold("alice").idempotency_key("request-1")).await?;
//!     assert!(matches!(opened, Opened::New(_)));
//!     let refused = tickets.open(&show, &hold("bob")).await?;
//!     let full = Refusal::ResourceFull { open: 1, open_max: 1 };
//!     assert_eq!(refused, Opened::Refused(full));
//!
//!     clock.advance_ms(600_000);
//!     run_due(&engine, &show, TickBudget::default()).await;
//!     assert_eq!(tickets.open_count(&show, &Counted::Resource("seat-12A".into())).await?, 0);
//!     Ok(())
//! })
//! # }
//! ```

mod change;
mod close;
mod found;
mod handler;
mod hooks;
mod id;
mod open;
mod outcome;
mod repair;
mod request;
mod rows;
mod ticket;
mod tickets;

pub use close::Changed;
pub use handler::TICKET_SET_ASIDE_MS;
pub use hooks::{SessionAbort, TicketEvent, TicketHooks};
pub use id::TicketId;
pub use outcome::End;
pub use repair::{Discarded, SetAside, SetAsidePage};
pub use request::{
    Hold, Opened, Refusal, TICKET_DATA_BYTES_MAX, TICKET_NAME_BYTES_MAX, TICKET_SESSION_BYTES_MAX,
};
pub use rows::Counted;
pub(super) use rows::FORMS;
pub use ticket::Ticket;
pub use tickets::{
    TICKET_ABORT_MS, TICKET_CALLS_PER_TICK, TICKET_CLOSE_MS, TICKET_PAGE_MAX, TICKET_TTL_MAX_MS,
    TicketPage, Tickets,
};

use crate::kind::TimerKind;

/// The kind of the timers that close tickets.
pub const TICKET_EXPIRY: TimerKind = TimerKind(2);
