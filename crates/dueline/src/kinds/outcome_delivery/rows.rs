use bytes::{BufMut, Bytes, BytesMut};

use super::OUTCOME_DELIVERY;
use crate::kinds::row::{Row, Table};
use crate::rows::Malformed;
use crate::rows::codec::Reader;
use crate::store::Key;

/// Longest name of an outbox, in bytes.
pub const OUTBOX_NAME_BYTES_MAX: usize = 64;
/// Longest id of an outcome, in bytes.
pub const OUTCOME_ID_BYTES_MAX: usize = 128;
/// Longest body of an outcome, in bytes (256 KiB).
pub const OUTCOME_BODY_BYTES_MAX: usize = 256 * 1_024;

/// The state of an outbox: `62 00 08 73`, then its name.
pub(super) const STATE: Table = Table::new(OUTCOME_DELIVERY, b's');
/// An outcome that waits: `62 00 08 6f`, length and bytes of the outbox's name, sequence.
pub(super) const PENDING: Table = Table::new(OUTCOME_DELIVERY, b'o');

/// What has come about and is to be told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// What a receiver tells a second delivery of the same outcome by; at most 128 bytes.
    pub id: Bytes,
    /// The message, at most 256 KiB.
    pub body: Bytes,
}

/// The state of an outbox, `version:u8 owned:u8 last_sequence:u64 rows:u64 bytes:u64`. It stays once it
/// was made, so that a sequence is never given twice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct State {
    /// Whether there is a timer that will deliver what waits.
    pub(super) is_owned: bool,
    /// The last sequence that was given; 0 before the first.
    pub(super) last_sequence: u64,
    /// How many outcomes wait.
    pub(super) rows: u64,
    /// How many bytes of ids and bodies wait.
    pub(super) bytes: u64,
}

impl Row for State {
    const WHAT: &'static str = "the state of an outbox";

    fn encode_fields(&self, out: &mut BytesMut) {
        out.put_u8(u8::from(self.is_owned));
        out.put_u64(self.last_sequence);
        out.put_u64(self.rows);
        out.put_u64(self.bytes);
    }

    fn decode_fields(mut reader: Reader) -> Result<Self, Malformed> {
        let state = Self {
            is_owned: match reader.u8()? {
                0 => false,
                1 => true,
                _ => return Err(Malformed("unknown flags")),
            },
            last_sequence: reader.u64()?,
            rows: reader.u64()?,
            bytes: reader.u64()?,
        };
        reader.end()?;
        Ok(state)
    }
}

/// An outcome that waits, `version:u8 written_at_ms:u64 id_len:u16 id body`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pending {
    pub(super) written_at_ms: u64,
    pub(super) outcome: Outcome,
}

impl Pending {
    pub(super) fn key(name: &[u8], sequence: u64) -> Key {
        let len = u8::try_from(name.len()).unwrap_or(u8::MAX);
        PENDING.key(&[&[len], name, &sequence.to_be_bytes()])
    }

    /// What it counts for in the backlog.
    pub(super) fn backlog_bytes(outcome: &Outcome) -> u64 {
        (outcome.id.len() + outcome.body.len()) as u64
    }
}

impl Row for Pending {
    const WHAT: &'static str = "an outcome that waits";

    fn encode_fields(&self, out: &mut BytesMut) {
        out.put_u64(self.written_at_ms);
        out.put_u16(u16::try_from(self.outcome.id.len()).unwrap_or(u16::MAX));
        out.put_slice(&self.outcome.id);
        out.put_slice(&self.outcome.body);
    }

    fn decode_fields(mut reader: Reader) -> Result<Self, Malformed> {
        let written_at_ms = reader.u64()?;
        let id_len = usize::from(reader.u16()?);
        let id = reader.bytes(id_len)?;
        Ok(Self {
            written_at_ms,
            outcome: Outcome {
                id,
                body: reader.rest(),
            },
        })
    }
}
