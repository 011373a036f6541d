//! How far a delivery has come: the payload of an outbox's timer.

use bytes::BufMut;

use crate::kinds::row::Row;
use crate::rows::Malformed;
use crate::rows::codec::Reader;
use crate::store::Partition;

/// Most targets of a relay that one pass leaves out because they failed.
pub(super) const BLOCKED_MAX: usize = 32;

/// Where the next run goes on. A payload that does not decode counts as the beginning: nothing of it is
/// needed for the promises, it only saves work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Progress {
    /// Which timer of the outbox this is: see `State::stamp`.
    pub(super) stamp: u64,
    /// How many runs in a row ended in a failure without a delivery.
    pub(super) attempt: u16,
    /// The last sequence that this pass has looked at; 0 at the beginning.
    pub(super) cursor: u64,
    /// The last sequence that belongs to this pass; 0 if it has not begun. A relay's alone.
    pub(super) pass_end: u64,
    /// Whether this pass has delivered anything. A relay's alone.
    pub(super) has_delivered: bool,
    /// How many of the next runs make one call each: the last ones were cut. A sink's alone.
    pub(super) careful: u8,
    /// The first time at which one of those that this pass has left out may be tried again, in milliseconds
    /// since 1970; `u64::MAX` if it left none out. A sink's alone.
    pub(super) earliest_ms: u64,
    /// Targets that failed in this pass: what is behind their failure waits. A relay's alone.
    pub(super) blocked: Vec<Partition>,
}

impl Progress {
    pub(super) fn beginning(stamp: u64) -> Self {
        Self {
            stamp,
            attempt: 0,
            cursor: 0,
            pass_end: 0,
            has_delivered: false,
            careful: 0,
            earliest_ms: u64::MAX,
            blocked: Vec::new(),
        }
    }

    /// Whether a run can have written this: it looked at nothing behind the last sequence, and left out
    /// nothing that waits for longer than a retry may. Else it is damaged, though it decodes.
    pub(super) fn is_possible(&self, last_sequence: u64, latest_retry_ms: u64) -> bool {
        self.cursor.max(self.pass_end) <= last_sequence
            && (self.earliest_ms == u64::MAX || self.earliest_ms <= latest_retry_ms)
    }
}

impl Row for Progress {
    const WHAT: &'static str = "the progress of a delivery";

    fn encode_fields(&self, out: &mut Vec<u8>) {
        out.put_u64(self.stamp);
        out.put_u16(self.attempt);
        out.put_u64(self.cursor);
        out.put_u64(self.pass_end);
        out.put_u8(u8::from(self.has_delivered));
        out.put_u8(self.careful);
        out.put_u64(self.earliest_ms);
        for target in self.blocked.iter().take(BLOCKED_MAX) {
            out.put_u16(u16::try_from(target.as_bytes().len()).unwrap_or(0));
            out.put_slice(target.as_bytes());
        }
    }

    fn decode_fields(mut reader: Reader) -> Result<Self, Malformed> {
        let mut progress = Self {
            stamp: reader.u64()?,
            attempt: reader.u16()?,
            cursor: reader.u64()?,
            pass_end: reader.u64()?,
            has_delivered: match reader.u8()? {
                0 => false,
                1 => true,
                _ => return Err(Malformed("unknown flags")),
            },
            careful: reader.u8()?,
            earliest_ms: reader.u64()?,
            blocked: Vec::new(),
        };
        while !reader.is_empty() {
            let len = usize::from(reader.u16()?);
            let target = Partition::new(reader.bytes(len)?)
                .map_err(|_| Malformed("not the name of a partition"))?;
            progress.blocked.push(target);
        }
        if progress.blocked.len() > BLOCKED_MAX {
            return Err(Malformed("too many targets"));
        }
        Ok(progress)
    }
}
