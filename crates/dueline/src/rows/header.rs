use bytes::{BufMut, Bytes};

use super::Malformed;
use super::codec::Reader;
use crate::limits::ERROR_TEXT_BYTES_MAX;

/// The version that this binary writes.
pub const HEADER_VERSION: u8 = 1;

/// What a header says beside its numbers, one bit each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags {
    /// The timer has a name row. Bit 0.
    pub named: bool,
    /// A run of it was claimed; while the due of the row lies ahead, the run may be under way. Bit 1.
    pub claimed: bool,
    /// An occurrence of a recurring timer. Bit 3.
    pub recurring: bool,
}

impl Flags {
    const NAMED: u8 = 1;
    const CLAIMED: u8 = 1 << 1;
    const FAILED: u8 = 1 << 2;
    const RECURRING: u8 = 1 << 3;
}

/// The last failure of a timer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// When, in milliseconds since 1970.
    pub at_ms: u64,
    /// The error's text, at most 255 bytes.
    pub error: String,
}

impl Failure {
    /// A failure with its text cut to 255 bytes at a character.
    pub fn new(at_ms: u64, error: &str) -> Self {
        let mut end = error.len().min(ERROR_TEXT_BYTES_MAX);
        while !error.is_char_boundary(end) {
            end = end.saturating_sub(1);
        }
        Self {
            at_ms,
            error: error.get(..end).unwrap_or_default().to_owned(),
        }
    }
}

/// The front of a timer's or dead timer's value:
/// `version:u8 flags:u8 attempt:u16 original_due_ms:u64`, and on a row that has failed
/// `failed_at_ms:u64 error_len:u16 error`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// What the timer is beside its numbers: named, claimed, recurring.
    pub flags: Flags,
    /// Failed or claimed runs so far.
    pub attempt: u16,
    /// The due as it was asked for, in milliseconds since 1970; the key may hold a later one.
    pub original_due_ms: u64,
    /// The last failure, if any.
    pub failure: Option<Failure>,
}

impl Header {
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        let mut flags = 0;
        for (set, bit) in [
            (self.flags.named, Flags::NAMED),
            (self.flags.claimed, Flags::CLAIMED),
            (self.failure.is_some(), Flags::FAILED),
            (self.flags.recurring, Flags::RECURRING),
        ] {
            if set {
                flags |= bit;
            }
        }
        out.put_u8(HEADER_VERSION);
        out.put_u8(flags);
        out.put_u16(self.attempt);
        out.put_u64(self.original_due_ms);
        if let Some(failure) = &self.failure {
            let text = failure.error.as_bytes();
            out.put_u64(failure.at_ms);
            out.put_u16(u16::try_from(text.len()).unwrap_or(0));
            out.put_slice(text);
        }
    }

    pub(super) fn decode(reader: &mut Reader) -> Result<Self, Malformed> {
        if reader.u8()? != HEADER_VERSION {
            return Err(Malformed("header of an unknown version"));
        }
        let bits = reader.u8()?;
        if bits & !(Flags::NAMED | Flags::CLAIMED | Flags::FAILED | Flags::RECURRING) != 0 {
            return Err(Malformed("header with unknown flags"));
        }
        let attempt = reader.u16()?;
        let original_due_ms = reader.u64()?;
        let failure = if bits & Flags::FAILED == 0 {
            None
        } else {
            let at_ms = reader.u64()?;
            let len = usize::from(reader.u16()?);
            if len > ERROR_TEXT_BYTES_MAX {
                return Err(Malformed("error text over 255 bytes"));
            }
            let text: Bytes = reader.bytes(len)?;
            let error = String::from_utf8(text.to_vec())
                .map_err(|_| Malformed("error text is not UTF-8"))?;
            Some(Failure { at_ms, error })
        };
        Ok(Self {
            flags: Flags {
                named: bits & Flags::NAMED != 0,
                claimed: bits & Flags::CLAIMED != 0,
                recurring: bits & Flags::RECURRING != 0,
            },
            attempt,
            original_due_ms,
            failure,
        })
    }
}
