use bytes::{BufMut, Bytes};

use super::dead_rows::{DEAD, Dead};
use super::progress::Progress;
use super::{OUTCOME_DELIVERY, relay};
use crate::kinds::fuzzing::Form;
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

/// Where an outbox stands: `62 00 08 73`, then its name.
pub(super) const STATE: Table = Table::new(OUTCOME_DELIVERY, b's');
/// What has left an outbox: `62 00 08 67`, then its name.
pub(super) const GONE: Table = Table::new(OUTCOME_DELIVERY, b'g');
/// An outcome that waits: `62 00 08 6f`, length and bytes of the outbox's name, sequence.
pub(super) const PENDING: Table = Table::new(OUTCOME_DELIVERY, b'o');

/// What is stored, for the fuzz targets.
pub(in crate::kinds) const FORMS: &[Form] = &[
    Form::row::<State>(STATE),
    Form::row::<Gone>(GONE),
    Form::row::<Pending>(PENDING),
    Form::row::<Dead>(DEAD),
    Form::payload::<Progress>(OUTCOME_DELIVERY),
    relay::WATERMARK_FORM,
    relay::MESSAGE_FORM,
];

/// What has come about and is to be told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// What a receiver tells a second delivery of the same outcome by; at most 128 bytes.
    pub id: Bytes,
    /// The message, at most 256 KiB.
    pub body: Bytes,
}

/// What was put into an outbox and which timer empties it. Written by those who append, and by a delivery
/// that sleeps or is done. It stays once it was made, so that a sequence is never given twice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct State {
    /// Whether there is a timer that will deliver what waits.
    pub(super) is_owned: bool,
    /// Which timer that is: a timer with another stamp in its payload drains.
    pub(super) stamp: u64,
    /// Until when it sleeps, in milliseconds since 1970.
    pub(super) sleeps_until_ms: u64,
    /// When an outcome that is appended may wake it, in milliseconds since 1970: the sink may have asked
    /// not to be called before.
    pub(super) not_before_ms: u64,
    /// The last sequence that was given; 0 before the first.
    pub(super) last_sequence: u64,
    /// How many outcomes were put in, ever; those that were requeued count again.
    pub(super) rows_in: u64,
    /// How many bytes of ids and bodies were put in, ever.
    pub(super) bytes_in: u64,
}

impl Row for State {
    const WHAT: &'static str = "the state of an outbox";

    fn encode_fields(&self, out: &mut Vec<u8>) {
        out.put_u8(u8::from(self.is_owned));
        out.put_u64(self.stamp);
        out.put_u64(self.sleeps_until_ms);
        out.put_u64(self.not_before_ms);
        out.put_u64(self.last_sequence);
        out.put_u64(self.rows_in);
        out.put_u64(self.bytes_in);
    }

    fn decode_fields(mut reader: Reader) -> Result<Self, Malformed> {
        let state = Self {
            is_owned: match reader.u8()? {
                0 => false,
                1 => true,
                _ => return Err(Malformed("unknown flags")),
            },
            stamp: reader.u64()?,
            sleeps_until_ms: reader.u64()?,
            not_before_ms: reader.u64()?,
            last_sequence: reader.u64()?,
            rows_in: reader.u64()?,
            bytes_in: reader.u64()?,
        };
        reader.end()?;
        Ok(state)
    }
}

/// What has left an outbox, delivered or set aside. Apart from [`State`], so that a delivery and an append
/// do not lose to each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Gone {
    /// How many outcomes have left, ever.
    pub(super) rows: u64,
    /// How many bytes of ids and bodies have left, ever.
    pub(super) bytes: u64,
}

impl Row for Gone {
    const WHAT: &'static str = "what has left an outbox";

    fn encode_fields(&self, out: &mut Vec<u8>) {
        out.put_u64(self.rows);
        out.put_u64(self.bytes);
    }

    fn decode_fields(mut reader: Reader) -> Result<Self, Malformed> {
        let gone = Self {
            rows: reader.u64()?,
            bytes: reader.u64()?,
        };
        reader.end()?;
        Ok(gone)
    }
}

/// An outcome that waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pending {
    /// How often its delivery has failed.
    pub(super) attempt: u16,
    /// Before when it is not tried again, in milliseconds since 1970; 0 before the first failure.
    pub(super) retry_at_ms: u64,
    /// When it was appended, in milliseconds since 1970.
    pub(super) written_at_ms: u64,
    pub(super) outcome: Outcome,
}

impl Pending {
    pub(super) fn new(outcome: Outcome, written_at_ms: u64) -> Self {
        Self {
            attempt: 0,
            retry_at_ms: 0,
            written_at_ms,
            outcome,
        }
    }

    pub(super) fn key(name: &[u8], sequence: u64) -> Key {
        PENDING.key(&[&[name_len(name)], name, &sequence.to_be_bytes()])
    }

    /// The sequence of a key of this outbox's range.
    pub(super) fn sequence_of(key: &Key) -> Result<u64, Malformed> {
        sequence_of(PENDING, key)
    }

    /// What it counts for in the backlog. An outcome that does not decode counts whole.
    pub(super) fn backlog_bytes(value: &Bytes) -> u64 {
        let len = match Self::decode(value) {
            Ok(pending) => pending.outcome.bytes(),
            Err(_) => value.len(),
        };
        len as u64
    }
}

impl Outcome {
    pub(super) fn bytes(&self) -> usize {
        self.id.len() + self.body.len()
    }
}

impl Row for Pending {
    const WHAT: &'static str = "an outcome that waits";

    fn encode_fields(&self, out: &mut Vec<u8>) {
        out.put_u16(self.attempt);
        out.put_u64(self.retry_at_ms);
        out.put_u64(self.written_at_ms);
        out.put_u16(u16::try_from(self.outcome.id.len()).unwrap_or(u16::MAX));
        out.put_slice(&self.outcome.id);
        out.put_slice(&self.outcome.body);
    }

    fn decode_fields(mut reader: Reader) -> Result<Self, Malformed> {
        let attempt = reader.u16()?;
        let retry_at_ms = reader.u64()?;
        let written_at_ms = reader.u64()?;
        let id_len = usize::from(reader.u16()?);
        let id = reader.bytes(id_len)?;
        Ok(Self {
            attempt,
            retry_at_ms,
            written_at_ms,
            outcome: Outcome {
                id,
                body: reader.rest(),
            },
        })
    }
}

/// The length of an outbox's name, which [`OutboxName`](super::OutboxName) keeps at 64 at most.
pub(super) fn name_len(name: &[u8]) -> u8 {
    u8::try_from(name.len()).unwrap_or(u8::MAX)
}

/// The sequence at the end of a key of a table with one row for each sequence of an outbox.
pub(super) fn sequence_of(table: Table, key: &Key) -> Result<u64, Malformed> {
    let mut reader = table.fields(key)?;
    let len = usize::from(reader.u8()?);
    reader.bytes(len)?;
    let sequence = reader.u64()?;
    reader.end()?;
    Ok(sequence)
}
