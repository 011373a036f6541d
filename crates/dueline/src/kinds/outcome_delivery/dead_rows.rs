//! Outcomes that were set aside.

use bytes::{BufMut, Bytes};

use super::OUTCOME_DELIVERY;
use super::rows::name_len;
use crate::kinds::row::{Row, Table};
use crate::limits::{ERROR_TEXT_BYTES_MAX, VALUE_BYTES_MAX};
use crate::rows::Malformed;
use crate::rows::codec::Reader;
use crate::store::{Key, Value};

/// An outcome that was set aside: `62 00 08 64`, length and bytes of the outbox's name, sequence.
pub(super) const DEAD: Table = Table::new(OUTCOME_DELIVERY, b'd');

/// Longest value of a waiting row that still fits into a dead one.
pub(super) const SET_ASIDE_BYTES_MAX: usize = VALUE_BYTES_MAX - 512;

/// Why an outcome was set aside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DeadOutcomeReason {
    /// Its deliveries failed as often as the policy allows.
    Exhausted,
    /// The sink refused it for good.
    Refused,
    /// Its row does not decode; the bytes are kept as they were.
    Undecodable,
    /// Somebody set it aside by hand.
    ByHand,
}

impl DeadOutcomeReason {
    fn number(self) -> u8 {
        match self {
            Self::Exhausted => 1,
            Self::Refused => 2,
            Self::Undecodable => 3,
            Self::ByHand => 4,
        }
    }

    fn of(number: u8) -> Result<Self, Malformed> {
        match number {
            1 => Ok(Self::Exhausted),
            2 => Ok(Self::Refused),
            3 => Ok(Self::Undecodable),
            4 => Ok(Self::ByHand),
            _ => Err(Malformed("unknown reason")),
        }
    }
}

/// A row that was set aside, with the value it had while it waited.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Dead {
    pub(super) dead_at_ms: u64,
    pub(super) attempt: u16,
    pub(super) reason: DeadOutcomeReason,
    /// At most 255 bytes.
    pub(super) error: String,
    /// The value of the row that waited, byte for byte.
    pub(super) value: Value,
}

impl Dead {
    pub(super) fn new(reason: DeadOutcomeReason, error: &str, value: Value, now_ms: u64) -> Self {
        Self {
            dead_at_ms: now_ms,
            attempt: 0,
            reason,
            error: cut(error).to_owned(),
            value,
        }
    }

    pub(super) fn after_attempts(mut self, attempt: u16) -> Self {
        self.attempt = attempt;
        self
    }

    pub(super) fn key(name: &[u8], sequence: u64) -> Key {
        DEAD.key(&[&[name_len(name)], name, &sequence.to_be_bytes()])
    }
}

/// The text without what is over the limit, cut at a character.
fn cut(text: &str) -> &str {
    let mut end = text.len().min(ERROR_TEXT_BYTES_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or_default()
}

impl Row for Dead {
    const WHAT: &'static str = "an outcome that was set aside";

    fn encode_fields(&self, out: &mut Vec<u8>) {
        out.put_u64(self.dead_at_ms);
        out.put_u16(self.attempt);
        out.put_u8(self.reason.number());
        out.put_u8(u8::try_from(self.error.len()).unwrap_or(0));
        out.put_slice(self.error.as_bytes());
        out.put_slice(&self.value);
    }

    fn decode_fields(mut reader: Reader) -> Result<Self, Malformed> {
        let dead_at_ms = reader.u64()?;
        let attempt = reader.u16()?;
        let reason = DeadOutcomeReason::of(reader.u8()?)?;
        let error_len = usize::from(reader.u8()?);
        let error: Bytes = reader.bytes(error_len)?;
        let error =
            String::from_utf8(error.to_vec()).map_err(|_| Malformed("text is not UTF-8"))?;
        Ok(Self {
            dead_at_ms,
            attempt,
            reason,
            error,
            value: reader.rest(),
        })
    }
}
