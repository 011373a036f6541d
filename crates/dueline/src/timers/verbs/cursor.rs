use std::fmt;
use std::hash::Hasher;
use std::str::FromStr;

use bytes::{Buf, Bytes};

use super::{ListQuery, hex};
use crate::limits::KEY_BYTES_MAX;
use crate::store::Key;
use crate::timers::TimerError;

/// Where a page of a list ended. Opaque, good for the same query alone (its limit may change); its
/// text is URL-safe and reads back to the same place.
#[derive(Clone, PartialEq, Eq)]
pub struct ListCursor {
    query: u64,
    position: Key,
}

impl ListCursor {
    pub(super) fn behind(query: &ListQuery, position: Key) -> Self {
        Self {
            query: fingerprint(query),
            position,
        }
    }

    /// The place, if the cursor came from this query.
    pub(super) fn position(&self, query: &ListQuery) -> Result<&Key, TimerError> {
        if self.query == fingerprint(query) {
            Ok(&self.position)
        } else {
            Err(TimerError::invalid("the cursor belongs to another query"))
        }
    }
}

/// Everything of the query that decides what its pages hold.
fn fingerprint(query: &ListQuery) -> u64 {
    let mut hasher = siphasher::sip::SipHasher13::new_with_keys(0x6c69_7374, 1);
    hasher.write(&[query.kind.0, query.states.bits()]);
    match query.due_before_ms {
        Some(due_before_ms) => {
            hasher.write(&[1]);
            hasher.write(&due_before_ms.to_be_bytes());
        }
        None => hasher.write(&[0]),
    }
    match &query.prefix {
        Some(prefix) => {
            hasher.write(&[1]);
            hasher.write(prefix);
        }
        None => hasher.write(&[0]),
    }
    hasher.finish()
}

fn not_a_cursor() -> TimerError {
    TimerError::invalid("this is not the cursor of a list")
}

impl FromStr for ListCursor {
    type Err = TimerError;

    fn from_str(text: &str) -> Result<Self, TimerError> {
        if text.len() > 2 * (8 + KEY_BYTES_MAX) {
            return Err(not_a_cursor());
        }
        let mut bytes = Bytes::from(hex::read(text).ok_or_else(not_a_cursor)?);
        let query = bytes.try_get_u64().map_err(|_| not_a_cursor())?;
        Ok(Self {
            query,
            position: bytes,
        })
    }
}

impl fmt::Display for ListCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        hex::write(f, &self.query.to_be_bytes())?;
        hex::write(f, &self.position)
    }
}

impl fmt::Debug for ListCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ListCursor({self})")
    }
}
