use bytes::{BufMut, Bytes};

use super::codec::Reader;
use super::{Malformed, class};
use crate::kind::TimerKind;
use crate::store::{Key, Value};

/// The key of a paused kind: `70 00 kind:u8`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PauseKey {
    /// The kind of the timer: the lane it lies in.
    pub kind: TimerKind,
}

impl PauseKey {
    /// The bytes under which the row is stored, as `FORMAT.md` lays them out.
    pub fn encode(&self) -> Key {
        Bytes::copy_from_slice(&[class::PAUSE, 0, self.kind.0])
    }

    /// Reads a key.
    ///
    /// # Errors
    /// [`Malformed`] for another class, a wrong length or kind 0.
    pub fn decode(key: &Key) -> Result<Self, Malformed> {
        let mut reader = Reader::new(key);
        reader.class(class::PAUSE)?;
        let kind = TimerKind(reader.u8()?);
        reader.end()?;
        if !kind.is_valid() {
            return Err(Malformed("pause of kind 0"));
        }
        Ok(Self { kind })
    }
}

/// The value of a paused kind: `since_ms:u64`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PauseRow {
    /// When the kind was paused, in milliseconds since 1970.
    pub since_ms: u64,
}

impl PauseRow {
    /// The bytes that are stored as the row's value, as `FORMAT.md` lays them out.
    pub fn encode(&self) -> Value {
        let mut value = Vec::with_capacity(8);
        value.put_u64(self.since_ms);
        Bytes::from(value)
    }

    /// Reads a value.
    ///
    /// # Errors
    /// [`Malformed`] for a wrong length.
    pub fn decode(value: &Value) -> Result<Self, Malformed> {
        let mut reader = Reader::new(value);
        let row = Self {
            since_ms: reader.u64()?,
        };
        reader.end()?;
        Ok(row)
    }
}
