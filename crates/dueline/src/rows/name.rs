use bytes::{BufMut, Bytes};

use super::codec::Reader;
use super::{DeadKey, Header, Malformed, TimerKey, class};
use crate::kind::TimerKind;
use crate::limits::REFERENCE_BYTES_MAX;
use crate::store::{Key, Value};

/// The key of a named timer's name: `6e 00 kind:u8 reference`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameKey {
    /// The kind of the timer: the lane it lies in.
    pub kind: TimerKind,
    /// The name, 0 to 512 bytes.
    pub reference: Bytes,
}

impl NameKey {
    /// The bytes under which the row is stored, as `FORMAT.md` lays them out.
    pub fn encode(&self) -> Key {
        let mut key = Vec::with_capacity(3 + self.reference.len());
        key.put_slice(&[class::NAME, 0, self.kind.0]);
        key.put_slice(&self.reference);
        Bytes::from(key)
    }

    /// Reads a key.
    ///
    /// # Errors
    /// [`Malformed`] for another class, a short key, kind 0 or a reference over 512 bytes.
    pub fn decode(key: &Key) -> Result<Self, Malformed> {
        let mut reader = Reader::new(key);
        reader.class(class::NAME)?;
        let kind = TimerKind(reader.u8()?);
        let reference = reader.rest();
        if !kind.is_valid() {
            return Err(Malformed("name of kind 0"));
        }
        if reference.len() > REFERENCE_BYTES_MAX {
            return Err(Malformed("reference over 512 bytes"));
        }
        Ok(Self { kind, reference })
    }
}

/// What a named timer is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameState {
    /// Waiting for its due. Byte 1.
    Pending,
    /// Failed and waiting for its next attempt. Byte 2.
    Retrying,
    /// Claimed: its call may be under way. Byte 3.
    Claimed,
    /// In the dead class. Byte 4.
    Dead,
}

impl NameState {
    /// What the header of a timer row says: claimed by its flag, retrying once it has an attempt
    /// behind it, else pending. A requeued timer starts at attempt 0, so it is pending although its
    /// last failure is still there to be read.
    pub fn of(header: &Header) -> Self {
        if header.flags.claimed {
            Self::Claimed
        } else if header.attempt > 0 {
            Self::Retrying
        } else {
            Self::Pending
        }
    }
}

/// The value of a name: `state:u8 due_ms:u64 generation:u64`, where the timer or dead row now lies.
///
/// Every move of a named timer rewrites this row in the same batch and guards the old one, so a
/// name and its timer never disagree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NameRow {
    /// What the timer is doing.
    pub state: NameState,
    /// The due in the timer's key, or the time of death in the dead row's, in milliseconds since 1970.
    pub due_ms: u64,
    /// The generation in that key.
    pub generation: u64,
}

impl NameRow {
    /// The name row that belongs to a timer row. Whoever moves a named timer guards and writes
    /// exactly this.
    pub fn of(key: &TimerKey, header: &Header) -> Self {
        Self {
            state: NameState::of(header),
            due_ms: key.due_ms,
            generation: key.generation,
        }
    }

    /// The name row that belongs to a dead row.
    pub fn of_dead(key: &DeadKey) -> Self {
        Self {
            state: NameState::Dead,
            due_ms: key.dead_at_ms,
            generation: key.generation,
        }
    }

    /// The bytes that are stored as the row's value, as `FORMAT.md` lays them out.
    pub fn encode(&self) -> Value {
        let mut value = Vec::with_capacity(17);
        value.put_u8(match self.state {
            NameState::Pending => 1,
            NameState::Retrying => 2,
            NameState::Claimed => 3,
            NameState::Dead => 4,
        });
        value.put_u64(self.due_ms);
        value.put_u64(self.generation);
        Bytes::from(value)
    }

    /// Reads a value.
    ///
    /// # Errors
    /// [`Malformed`] for an unknown state or a wrong length.
    pub fn decode(value: &Value) -> Result<Self, Malformed> {
        let mut reader = Reader::new(value);
        let state = match reader.u8()? {
            1 => NameState::Pending,
            2 => NameState::Retrying,
            3 => NameState::Claimed,
            4 => NameState::Dead,
            _ => return Err(Malformed("name in an unknown state")),
        };
        let row = Self {
            state,
            due_ms: reader.u64()?,
            generation: reader.u64()?,
        };
        reader.end()?;
        Ok(row)
    }

    /// The key of the row this name points at: a dead row's if it is dead, else a timer's.
    pub fn target(&self, name: &NameKey) -> Key {
        let (kind, reference) = (name.kind, name.reference.clone());
        if self.state == NameState::Dead {
            DeadKey {
                kind,
                dead_at_ms: self.due_ms,
                generation: self.generation,
                reference,
            }
            .encode()
        } else {
            TimerKey {
                kind,
                due_ms: self.due_ms,
                generation: self.generation,
                reference,
            }
            .encode()
        }
    }
}
