use bytes::{BufMut, Bytes};

use super::codec::Reader;
use super::{Header, Malformed, class, class_end, class_start};
use crate::kind::TimerKind;
use crate::limits::{PAYLOAD_BYTES_MAX, REFERENCE_BYTES_MAX};
use crate::store::{Key, Value};

/// The key of a timer: `77 00 kind:u8 due_ms:u64 generation:u64 reference`.
///
/// Kind before due makes the timers of a kind a lane, in due order; generation before reference
/// keeps timers of one due in the order in which they were scheduled. A row never changes under its
/// key: a retry, a claim or a replacement is a delete and a put.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimerKey {
    /// The kind of the timer: the lane it lies in.
    pub kind: TimerKind,
    /// When it is due, in milliseconds since 1970.
    pub due_ms: u64,
    /// Which scheduling it is.
    pub generation: u64,
    /// The caller's identity of the timer, 0 to 512 bytes.
    pub reference: Bytes,
}

const FIXED_BYTES: usize = 2 + 1 + 8 + 8;

impl TimerKey {
    /// The bytes under which the row is stored, as `FORMAT.md` lays them out.
    pub fn encode(&self) -> Key {
        let mut key = Vec::with_capacity(FIXED_BYTES + self.reference.len());
        key.put_slice(&[class::TIMER, 0, self.kind.0]);
        key.put_u64(self.due_ms);
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
        reader.class(class::TIMER)?;
        let kind = TimerKind(reader.u8()?);
        let due_ms = reader.u64()?;
        let generation = reader.u64()?;
        let reference = reader.rest();
        if !kind.is_valid() {
            return Err(Malformed("timer of kind 0"));
        }
        if reference.len() > REFERENCE_BYTES_MAX {
            return Err(Malformed("reference over 512 bytes"));
        }
        Ok(Self {
            kind,
            due_ms,
            generation,
            reference,
        })
    }

    /// The first key of a lane. The lane of kind 0 begins with the class: a key too short to name
    /// its kind lies there.
    pub fn lane_start(kind: TimerKind) -> Key {
        if !kind.is_valid() {
            return class_start(class::TIMER);
        }
        Bytes::copy_from_slice(&[class::TIMER, 0, kind.0])
    }

    /// The first key behind a lane.
    pub fn lane_end(kind: TimerKind) -> Key {
        match kind.0.checked_add(1) {
            Some(next) => Self::lane_start(TimerKind(next)),
            None => class_end(class::TIMER),
        }
    }

    /// The first key of a lane that is not due at `now_ms`: the end of what is.
    pub fn lane_due_end(kind: TimerKind, now_ms: u64) -> Key {
        let Some(first_later_ms) = now_ms.checked_add(1) else {
            return Self::lane_end(kind);
        };
        let mut key = Vec::with_capacity(11);
        key.put_slice(&[class::TIMER, 0, kind.0]);
        key.put_u64(first_later_ms);
        Bytes::from(key)
    }
}

/// The value of a timer: its header and its payload.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TimerRow {
    /// Flags, attempts, the due as asked, the last failure.
    pub header: Header,
    /// The caller's bytes, at most 480 KiB; the engine never looks at them.
    pub payload: Bytes,
}

impl TimerRow {
    /// The bytes that are stored as the row's value, as `FORMAT.md` lays them out.
    pub fn encode(&self) -> Value {
        let error = self
            .header
            .failure
            .as_ref()
            .map_or(0, |failure| failure.error.len() + 10);
        let mut value = Vec::with_capacity(12 + error + self.payload.len());
        self.header.encode(&mut value);
        value.put_slice(&self.payload);
        Bytes::from(value)
    }

    /// Reads a value.
    ///
    /// # Errors
    /// [`Malformed`] for a header of an unknown version, a short one, or a payload over 480 KiB,
    /// which no move of the engine could carry.
    pub fn decode(value: &Value) -> Result<Self, Malformed> {
        let mut reader = Reader::new(value);
        let header = Header::decode(&mut reader)?;
        let payload = reader.rest();
        if payload.len() > PAYLOAD_BYTES_MAX {
            return Err(Malformed("payload over 480 KiB"));
        }
        Ok(Self { header, payload })
    }
}

/// Which lane a key of the timer class belongs to and when it wants to be looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaneHead {
    /// The lane; 0 for a key too short to name one.
    pub kind: TimerKind,
    /// The due in the key, short ones filled with zeros, in milliseconds since 1970.
    pub due_ms: u64,
}

/// Reads the lane and the due off any key of the timer class, malformed ones included; `None` for a
/// key of another class. For stores: this is what wakes are made of.
pub fn lane_head(key: &[u8]) -> Option<LaneHead> {
    let body = key.strip_prefix(&[class::TIMER, 0])?;
    let (kind, due) = match body.split_first() {
        Some((kind, due)) => (TimerKind(*kind), due),
        None => (TimerKind::INVALID, body),
    };
    let mut padded = [0; 8];
    for (to, from) in padded.iter_mut().zip(due) {
        *to = *from;
    }
    Some(LaneHead {
        kind,
        due_ms: u64::from_be_bytes(padded),
    })
}
