use bytes::Bytes;

use super::{Ticket, TicketId};
use crate::timers::TimerError;

/// Longest resource, actor or idempotency key, in bytes.
pub const TICKET_NAME_BYTES_MAX: usize = 256;
/// Longest external session, in bytes.
pub const TICKET_SESSION_BYTES_MAX: usize = 1_024;
/// Most bytes of data in a ticket (16 KiB).
pub const TICKET_DATA_BYTES_MAX: usize = 16 * 1_024;

/// What is to be held, by whom, for how long.
///
/// ```
/// use dueline::kinds::ticket_expiry::Hold;
///
/// let hold = Hold::new("seat-12A", 10 * 60_000)
///     .actor("alice")
///     .idempotency_key("request-77")
///     .resource_max(1)
///     .actor_max(4);
/// # let _ = hold;
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct Hold {
    pub(super) resource: Bytes,
    pub(super) ttl_ms: u64,
    pub(super) actor: Option<Bytes>,
    pub(super) key: Option<Bytes>,
    pub(super) session: Option<Bytes>,
    pub(super) data: Bytes,
    pub(super) resource_max: Option<u64>,
    pub(super) actor_max: Option<u64>,
}

impl Hold {
    /// A hold of one unit of a resource (1 to 256 bytes) for this many milliseconds, at least 1 and
    /// less than the longest that [`Tickets`](super::Tickets) allow.
    pub fn new(resource: impl Into<Bytes>, ttl_ms: u64) -> Self {
        Self {
            resource: resource.into(),
            ttl_ms,
            actor: None,
            key: None,
            session: None,
            data: Bytes::new(),
            resource_max: None,
            actor_max: None,
        }
    }

    /// Who holds it, 1 to 256 bytes: counted, and limited by [`actor_max`](Self::actor_max).
    pub fn actor(mut self, actor: impl Into<Bytes>) -> Self {
        self.actor = Some(actor.into());
        self
    }

    /// A key of the caller's, 1 to 256 bytes, under which the same request gets the same ticket for as
    /// long as that is open.
    pub fn idempotency_key(mut self, key: impl Into<Bytes>) -> Self {
        self.key = Some(key.into());
        self
    }

    /// An external session that is aborted if the ticket ends unused, 1 to 1,024 bytes. It is no part
    /// of what a second request under the key is compared with: such a request gets the ticket with the
    /// session that it has.
    pub fn session(mut self, session: impl Into<Bytes>) -> Self {
        self.session = Some(session.into());
        self
    }

    /// Bytes of the caller's that are kept with the ticket, at most 16 KiB.
    pub fn data(mut self, data: impl Into<Bytes>) -> Self {
        self.data = data.into();
        self
    }

    /// Refuses the hold if this many tickets of the resource are open; no limit by itself.
    pub fn resource_max(mut self, open_max: u64) -> Self {
        self.resource_max = Some(open_max);
        self
    }

    /// Refuses the hold if this many tickets of the actor are open; no limit by itself.
    pub fn actor_max(mut self, open_max: u64) -> Self {
        self.actor_max = Some(open_max);
        self
    }

    pub(super) fn validate(&self, ttl_max_ms: u64) -> Result<(), TimerError> {
        let within = |what: &str, bytes: Option<&Bytes>, least: usize, most: usize| match bytes {
            Some(bytes) if bytes.len() < least || bytes.len() > most => {
                Err(TimerError::invalid(format!(
                    "the {what} of a ticket has {least} to {most} bytes, this one has {}",
                    bytes.len()
                )))
            }
            _ => Ok(()),
        };
        within("resource", Some(&self.resource), 1, TICKET_NAME_BYTES_MAX)?;
        within("actor", self.actor.as_ref(), 1, TICKET_NAME_BYTES_MAX)?;
        within(
            "idempotency key",
            self.key.as_ref(),
            1,
            TICKET_NAME_BYTES_MAX,
        )?;
        within(
            "session",
            self.session.as_ref(),
            1,
            TICKET_SESSION_BYTES_MAX,
        )?;
        within("data", Some(&self.data), 0, TICKET_DATA_BYTES_MAX)?;
        validate_ttl(self.ttl_ms, ttl_max_ms)
    }

    /// Whether the ticket is what this request asks for. Limits and session may differ.
    pub(super) fn is_of(&self, ticket: &Ticket) -> bool {
        let record = ticket.record();
        self.resource == record.resource
            && self.actor == record.actor
            && self.ttl_ms == record.ttl_ms
            && self.data == record.data
    }
}

pub(super) fn validate_ttl(ttl_ms: u64, ttl_max_ms: u64) -> Result<(), TimerError> {
    if ttl_ms == 0 || ttl_ms >= ttl_max_ms {
        return Err(TimerError::invalid(format!(
            "a ticket is held for at least 1 ms and less than {ttl_max_ms} ms, not for {ttl_ms} ms"
        )));
    }
    Ok(())
}

/// What became of a request to open a ticket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Opened {
    /// A new ticket.
    New(Ticket),
    /// The ticket that the same request was given before, under the same idempotency key.
    Existing(Ticket),
    /// None, and why.
    Refused(Refusal),
}

impl Opened {
    /// The ticket, new or not.
    pub fn ticket(&self) -> Option<&Ticket> {
        match self {
            Self::New(ticket) | Self::Existing(ticket) => Some(ticket),
            Self::Refused(_) => None,
        }
    }
}

/// Why no ticket was opened. Nothing is written then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refusal {
    /// As many tickets of the resource are open as the request allows, or more.
    ResourceFull {
        /// How many are open.
        open: u64,
        /// How many the request allows.
        open_max: u64,
    },
    /// As many tickets of the actor are open as the request allows, or more.
    ActorFull {
        /// How many are open.
        open: u64,
        /// How many the request allows.
        open_max: u64,
    },
    /// The idempotency key belongs to the ticket of another request.
    KeyTaken {
        /// That ticket.
        id: TicketId,
    },
    /// The ticket of the idempotency key has expired or was cancelled, and waits for its timer to close
    /// it. The key is free then.
    KeyClosing {
        /// That ticket.
        id: TicketId,
    },
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::ResourceFull { open, open_max } => write!(
                f,
                "{open} tickets of the resource are open, and {open_max} are allowed"
            ),
            Self::ActorFull { open, open_max } => write!(
                f,
                "{open} tickets of the actor are open, and {open_max} are allowed"
            ),
            Self::KeyTaken { id } => write!(
                f,
                "the idempotency key belongs to ticket {id}, which was opened by another request"
            ),
            Self::KeyClosing { id } => write!(
                f,
                "ticket {id} of the idempotency key has expired and is about to be closed"
            ),
        }
    }
}
