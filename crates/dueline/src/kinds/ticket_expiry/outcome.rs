use std::fmt;

use bytes::Bytes;
use serde::ser::{Serialize, SerializeMap, Serializer};

use super::Ticket;
use crate::kinds::outcome_delivery::Outcome;
use crate::store::StoreError;
use crate::timers::hex;

/// How a ticket ended. A ticket ends once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum End {
    /// It was used in time.
    Consumed,
    /// It was given back in time by whoever held it.
    Released,
    /// It was cancelled, and closed by its timer.
    Cancelled,
    /// Its time was over, and its timer closed it.
    Expired,
    /// It was set aside, and given up by hand.
    Discarded,
}

impl End {
    /// The end in one word, as it stands in an outcome.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Consumed => "consumed",
            Self::Released => "released",
            Self::Cancelled => "cancelled",
            Self::Expired => "expired",
            Self::Discarded => "discarded",
        }
    }
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What an outcome tells, as a JSON object. A field whose bytes are no UTF-8 is told in hexadecimal, under
/// its name and `_hex`.
#[derive(serde::Serialize)]
struct Body<'a> {
    v: u8,
    ticket: String,
    end: &'static str,
    at_ms: u64,
    #[serde(flatten)]
    resource: Told<'a>,
    #[serde(flatten)]
    actor: Told<'a>,
    #[serde(flatten)]
    session: Told<'a>,
    #[serde(flatten)]
    data: Told<'a>,
}

/// A field of bytes; nothing if there are none.
struct Told<'a> {
    name: &'static str,
    name_hex: &'static str,
    bytes: Option<&'a Bytes>,
}

impl<'a> Told<'a> {
    fn new(name: &'static str, name_hex: &'static str, bytes: Option<&'a Bytes>) -> Self {
        Self {
            name,
            name_hex,
            bytes: bytes.filter(|bytes| !bytes.is_empty()),
        }
    }
}

impl Serialize for Told<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Some(bytes) = self.bytes else {
            return serializer.serialize_map(Some(0))?.end();
        };
        let mut map = serializer.serialize_map(Some(1))?;
        match std::str::from_utf8(bytes) {
            Ok(text) => map.serialize_entry(self.name, text)?,
            Err(_) => map.serialize_entry(self.name_hex, &Hex(bytes).to_string())?,
        }
        map.end()
    }
}

struct Hex<'a>(&'a [u8]);

impl fmt::Display for Hex<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        hex::write(f, self.0)
    }
}

/// The outcome of a ticket. A ticket ends once, so its id is the outcome's.
pub(super) fn outcome(ticket: &Ticket, end: End, now_ms: u64) -> Result<Outcome, StoreError> {
    let body = Body {
        v: 1,
        ticket: ticket.id().to_string(),
        end: end.as_str(),
        at_ms: now_ms,
        resource: Told::new("resource", "resource_hex", Some(ticket.resource())),
        actor: Told::new("actor", "actor_hex", ticket.actor()),
        session: Told::new("session", "session_hex", ticket.session()),
        data: Told::new("data", "data_hex", Some(ticket.data())),
    };
    let body = serde_json::to_vec(&body)
        .map_err(|_| StoreError::invalid("an outcome has no JSON form"))?;
    Ok(Outcome {
        id: ticket.id().to_string().into(),
        body: body.into(),
    })
}
