use bytes::Bytes;

use super::TicketId;
use super::rows::{Counted, Record};

/// A ticket that is open: a hold of one unit of a resource until it expires.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ticket {
    id: TicketId,
    record: Record,
}

impl Ticket {
    pub(super) fn new(id: TicketId, record: Record) -> Self {
        Self { id, record }
    }

    pub(super) fn record(&self) -> &Record {
        &self.record
    }

    /// What the ticket is known by.
    pub fn id(&self) -> TicketId {
        self.id
    }

    /// What is held.
    pub fn resource(&self) -> &Bytes {
        &self.record.resource
    }

    /// Who holds it, if the request said so.
    pub fn actor(&self) -> Option<&Bytes> {
        self.record.actor.as_ref()
    }

    /// The idempotency key it was opened under.
    pub fn idempotency_key(&self) -> Option<&Bytes> {
        self.record.key.as_ref()
    }

    /// The external session that goes with it.
    pub fn session(&self) -> Option<&Bytes> {
        self.record.session.as_ref()
    }

    /// The caller's bytes.
    pub fn data(&self) -> &Bytes {
        &self.record.data
    }

    /// When it was opened, in milliseconds since 1970.
    pub fn opened_at_ms(&self) -> u64 {
        self.record.opened_at_ms
    }

    /// From when on it can no longer be consumed, in milliseconds since 1970.
    pub fn expires_at_ms(&self) -> u64 {
        self.record.expires_at_ms
    }

    /// Whether it was cancelled and waits for its timer to close it.
    pub fn is_cancelled(&self) -> bool {
        self.record.is_cancelled
    }

    /// Whether its time is over at this time, or it was cancelled, and it waits for its timer to close it.
    pub fn is_expired_at(&self, now_ms: u64) -> bool {
        self.record.is_cancelled || now_ms >= self.record.expires_at_ms
    }

    /// The counters it is counted in.
    pub(super) fn counted(&self) -> Vec<Counted> {
        counted(&self.record.resource, self.record.actor.as_ref())
    }
}

pub(super) fn counted(resource: &Bytes, actor: Option<&Bytes>) -> Vec<Counted> {
    let mut counted = vec![Counted::Resource(resource.clone())];
    counted.extend(actor.cloned().map(Counted::Actor));
    counted
}
