use bytes::{BufMut, Bytes};

use super::codec::Reader;
use super::{Header, Malformed, class, class_end};
use crate::kind::TimerKind;
use crate::limits::REFERENCE_BYTES_MAX;
use crate::store::{Key, Value};

/// The key of a dead timer: `64 00 kind:u8 dead_at_ms:u64 generation:u64 reference`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadKey {
    /// The lane it came from.
    pub kind: TimerKind,
    /// When it died, in milliseconds since 1970.
    pub dead_at_ms: u64,
    /// Which scheduling it was.
    pub generation: u64,
    /// The caller's identity of the timer.
    pub reference: Bytes,
}

impl DeadKey {
    /// The bytes under which the row is stored, as `FORMAT.md` lays them out.
    pub fn encode(&self) -> Key {
        let mut key = Vec::with_capacity(19 + self.reference.len());
        key.put_slice(&[class::DEAD, 0, self.kind.0]);
        key.put_u64(self.dead_at_ms);
        key.put_u64(self.generation);
        key.put_slice(&self.reference);
        Bytes::from(key)
    }

    /// Reads a key.
    ///
    /// # Errors
    /// [`Malformed`] for another class, a short key, kind 0 or a reference over 512 bytes.
    pub fn decode(key: &Key) -> Result<Self, Malformed> {
        let mut reader = Reader::new(key);
        reader.class(class::DEAD)?;
        let kind = TimerKind(reader.u8()?);
        let dead_at_ms = reader.u64()?;
        let generation = reader.u64()?;
        let reference = reader.rest();
        if !kind.is_valid() {
            return Err(Malformed("dead timer of kind 0"));
        }
        if reference.len() > REFERENCE_BYTES_MAX {
            return Err(Malformed("reference over 512 bytes"));
        }
        Ok(Self {
            kind,
            dead_at_ms,
            generation,
            reference,
        })
    }

    /// The first key of a kind's dead timers.
    pub fn lane_start(kind: TimerKind) -> Key {
        Bytes::copy_from_slice(&[class::DEAD, 0, kind.0])
    }

    /// The first key behind a kind's dead timers.
    pub fn lane_end(kind: TimerKind) -> Key {
        match kind.0.checked_add(1) {
            Some(next) => Self::lane_start(TimerKind(next)),
            None => class_end(class::DEAD),
        }
    }
}

/// Why a timer is dead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeadReason {
    /// All its attempts failed. Byte 1.
    Exhausted,
    /// The handler said so. Byte 2.
    Handler,
    /// Its payload did not decode. Byte 3.
    UndecodablePayload,
    /// Its header did not decode; the dead row's payload is the whole value as found. Byte 4.
    UndecodableHeader,
}

impl DeadReason {
    /// A word for people and machines: `exhausted`, `handler`, `undecodable`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Exhausted => "exhausted",
            Self::Handler => "handler",
            Self::UndecodablePayload | Self::UndecodableHeader => "undecodable",
        }
    }
}

/// The value of a dead timer: header, `reason:u8 codec_version:u16`, payload. The text of the reason
/// is the failure in the header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadRow {
    /// Flags, attempts, the due as asked, the last failure.
    pub header: Header,
    /// Why it is dead.
    pub reason: DeadReason,
    /// The version of the codec that could not decode it; 0 for another reason.
    pub codec_version: u16,
    /// The caller's bytes as they were when the timer died, at most 480 KiB; the whole value as found for
    /// [`DeadReason::UndecodableHeader`].
    pub payload: Bytes,
}

impl DeadRow {
    /// The bytes that are stored as the row's value, as `FORMAT.md` lays them out.
    pub fn encode(&self) -> Value {
        let mut value = Vec::with_capacity(300 + self.payload.len());
        self.header.encode(&mut value);
        value.put_u8(match self.reason {
            DeadReason::Exhausted => 1,
            DeadReason::Handler => 2,
            DeadReason::UndecodablePayload => 3,
            DeadReason::UndecodableHeader => 4,
        });
        value.put_u16(self.codec_version);
        value.put_slice(&self.payload);
        Bytes::from(value)
    }

    /// Reads a value.
    ///
    /// # Errors
    /// [`Malformed`] for an unknown header or reason, or a short value.
    pub fn decode(value: &Value) -> Result<Self, Malformed> {
        let mut reader = Reader::new(value);
        let header = Header::decode(&mut reader)?;
        let reason = match reader.u8()? {
            1 => DeadReason::Exhausted,
            2 => DeadReason::Handler,
            3 => DeadReason::UndecodablePayload,
            4 => DeadReason::UndecodableHeader,
            _ => return Err(Malformed("dead for an unknown reason")),
        };
        let codec_version = reader.u16()?;
        Ok(Self {
            header,
            reason,
            codec_version,
            payload: reader.rest(),
        })
    }
}
