//! The rows of tickets; `FORMAT.md` has them with golden bytes.

use bytes::{BufMut, Bytes};

use super::{TICKET_EXPIRY, TicketId};
use crate::kinds::fuzzing::Form;
use crate::kinds::row::{Row, Table};
use crate::rows::Malformed;
use crate::rows::codec::Reader;
use crate::store::Key;

/// An open ticket: `62 00 02 74`, its id.
pub(super) const TICKET: Table = Table::new(TICKET_EXPIRY, b't');
/// The ticket of an idempotency key: `62 00 02 69`, the key.
const INDEX: Table = Table::new(TICKET_EXPIRY, b'i');
/// How many tickets of a resource are open: `62 00 02 72`, the resource.
const RESOURCE: Table = Table::new(TICKET_EXPIRY, b'r');
/// How many tickets of an actor are open: `62 00 02 61`, the actor.
const ACTOR: Table = Table::new(TICKET_EXPIRY, b'a');
/// A ticket that could not be closed: `62 00 02 78`, its id.
pub(super) const SET_ASIDE: Table = Table::new(TICKET_EXPIRY, b'x');

/// What is stored, for the fuzz targets.
pub(in crate::kinds) const FORMS: &[Form] = &[
    Form::row::<Record>(TICKET),
    Form::row::<Index>(INDEX),
    Form::row::<Counter>(RESOURCE),
    Form::row::<Counter>(ACTOR),
    Form::row::<Aside>(SET_ASIDE),
];

const HAS_ACTOR: u8 = 1;
const HAS_KEY: u8 = 2;
const HAS_SESSION: u8 = 4;
const IS_CANCELLED: u8 = 8;

/// Longest reason that is kept with a ticket that is set aside, in bytes.
const REASON_BYTES_MAX: usize = 255;

pub(super) fn ticket_key(id: TicketId) -> Key {
    TICKET.key(&[id.as_bytes()])
}

pub(super) fn index_key(idempotency_key: &[u8]) -> Key {
    INDEX.key(&[idempotency_key])
}

pub(super) fn set_aside_key(id: TicketId) -> Key {
    SET_ASIDE.key(&[id.as_bytes()])
}

/// The id in a key of one of the tables that have nothing else in it.
pub(super) fn id_of(table: Table, key: &Key) -> Option<TicketId> {
    TicketId::read(&table.fields(key).ok()?.rest())
}

/// What is counted.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Counted {
    /// The open tickets of this resource.
    Resource(Bytes),
    /// The open tickets of this actor.
    Actor(Bytes),
}

impl Counted {
    pub(super) fn key(&self) -> Key {
        match self {
            Self::Resource(resource) => RESOURCE.key(&[resource]),
            Self::Actor(actor) => ACTOR.key(&[actor]),
        }
    }
}

impl std::fmt::Display for Counted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Resource(resource) => write!(f, "resource {}", resource.escape_ascii()),
            Self::Actor(actor) => write!(f, "actor {}", actor.escape_ascii()),
        }
    }
}

/// An open ticket, `version:u8 flags:u8 opened_at_ms:u64 expires_at_ms:u64 timer_due_ms:u64 ttl_ms:u64`,
/// then with a length of two bytes in front the resource, and the actor, the idempotency key and the
/// session if their flags are set; then the data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) opened_at_ms: u64,
    pub(super) expires_at_ms: u64,
    /// The due of the one timer that may close it.
    pub(super) timer_due_ms: u64,
    /// As it was asked for: a second request under the key is compared with it.
    pub(super) ttl_ms: u64,
    pub(super) is_cancelled: bool,
    pub(super) resource: Bytes,
    pub(super) actor: Option<Bytes>,
    pub(super) key: Option<Bytes>,
    pub(super) session: Option<Bytes>,
    pub(super) data: Bytes,
}

impl Record {
    fn flags(&self) -> u8 {
        let flag = |is_set: bool, flag: u8| if is_set { flag } else { 0 };
        flag(self.actor.is_some(), HAS_ACTOR)
            | flag(self.key.is_some(), HAS_KEY)
            | flag(self.session.is_some(), HAS_SESSION)
            | flag(self.is_cancelled, IS_CANCELLED)
    }
}

fn put_short(out: &mut Vec<u8>, bytes: &[u8]) {
    out.put_u16(u16::try_from(bytes.len()).unwrap_or(u16::MAX));
    out.put_slice(bytes);
}

fn short(reader: &mut Reader) -> Result<Bytes, Malformed> {
    let len = usize::from(reader.u16()?);
    reader.bytes(len)
}

fn optional(reader: &mut Reader, is_there: bool) -> Result<Option<Bytes>, Malformed> {
    is_there.then(|| short(reader)).transpose()
}

impl Row for Record {
    const WHAT: &'static str = "a ticket";

    fn encode_fields(&self, out: &mut Vec<u8>) {
        out.put_u8(self.flags());
        out.put_u64(self.opened_at_ms);
        out.put_u64(self.expires_at_ms);
        out.put_u64(self.timer_due_ms);
        out.put_u64(self.ttl_ms);
        put_short(out, &self.resource);
        for field in [&self.actor, &self.key, &self.session]
            .into_iter()
            .flatten()
        {
            put_short(out, field);
        }
        out.put_slice(&self.data);
    }

    fn decode_fields(mut reader: Reader) -> Result<Self, Malformed> {
        let flags = reader.u8()?;
        if flags & !(HAS_ACTOR | HAS_KEY | HAS_SESSION | IS_CANCELLED) != 0 {
            return Err(Malformed("unknown flags"));
        }
        Ok(Self {
            opened_at_ms: reader.u64()?,
            expires_at_ms: reader.u64()?,
            timer_due_ms: reader.u64()?,
            ttl_ms: reader.u64()?,
            is_cancelled: flags & IS_CANCELLED != 0,
            resource: short(&mut reader)?,
            actor: optional(&mut reader, flags & HAS_ACTOR != 0)?,
            key: optional(&mut reader, flags & HAS_KEY != 0)?,
            session: optional(&mut reader, flags & HAS_SESSION != 0)?,
            data: reader.rest(),
        })
    }
}

/// The ticket of an idempotency key, `version:u8 id:16`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Index {
    pub(super) id: TicketId,
}

impl Row for Index {
    const WHAT: &'static str = "the idempotency key of a ticket";

    fn encode_fields(&self, out: &mut Vec<u8>) {
        out.put_slice(self.id.as_bytes());
    }

    fn decode_fields(reader: Reader) -> Result<Self, Malformed> {
        let id = TicketId::read(&reader.rest()).ok_or(Malformed("not the length of an id"))?;
        Ok(Self { id })
    }
}

/// How many tickets are open, `version:u8 open:u64 stamp:u64`. There is no row for none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Counter {
    pub(super) open: u64,
    /// Never the same for two states of the counter, also if it went in between.
    pub(super) stamp: u64,
}

impl Row for Counter {
    const WHAT: &'static str = "the counter of open tickets";

    fn encode_fields(&self, out: &mut Vec<u8>) {
        out.put_u64(self.open);
        out.put_u64(self.stamp);
    }

    fn decode_fields(mut reader: Reader) -> Result<Self, Malformed> {
        let counter = Self {
            open: reader.u64()?,
            stamp: reader.u64()?,
        };
        reader.end()?;
        Ok(counter)
    }
}

fn reason(reader: Reader) -> Result<String, Malformed> {
    let reason = reader.rest();
    if reason.len() > REASON_BYTES_MAX {
        return Err(Malformed("the reason is too long"));
    }
    String::from_utf8(reason.to_vec()).map_err(|_| Malformed("the reason is not UTF-8"))
}

/// A ticket that could not be closed,
/// `version:u8 since_ms:u64 timer_due_ms:u64 tries:u32 reason`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Aside {
    pub(super) since_ms: u64,
    /// The due of the one timer that may close it; while this row is there, that of the ticket does not
    /// count.
    pub(super) timer_due_ms: u64,
    pub(super) tries: u32,
    pub(super) reason: String,
}

impl Row for Aside {
    const WHAT: &'static str = "a ticket that is set aside";

    fn encode_fields(&self, out: &mut Vec<u8>) {
        out.put_u64(self.since_ms);
        out.put_u64(self.timer_due_ms);
        out.put_u32(self.tries);
        let mut end = self.reason.len().min(REASON_BYTES_MAX);
        while !self.reason.is_char_boundary(end) {
            end -= 1;
        }
        out.put_slice(self.reason.get(..end).unwrap_or_default().as_bytes());
    }

    fn decode_fields(mut reader: Reader) -> Result<Self, Malformed> {
        Ok(Self {
            since_ms: reader.u64()?,
            timer_due_ms: reader.u64()?,
            tries: u32::from(reader.u16()?) << 16 | u32::from(reader.u16()?),
            reason: reason(reader)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_read_up_to_the_length_that_is_written() {
        let of = |length| {
            let numbers = [&[1][..], &[0; 20]].concat();
            Bytes::from([numbers, vec![b'r'; length]].concat())
        };
        let longest = of(REASON_BYTES_MAX);
        assert_eq!(Aside::decode(&longest).unwrap().encode(), longest);
        assert!(Aside::decode(&of(REASON_BYTES_MAX + 1)).is_err());
    }
}
