use bytes::{BufMut, Bytes};

use super::codec::Reader;
use super::{Malformed, class};
use crate::kind::TimerKind;
use crate::limits::KIND_NAME_BYTES_MAX;
use crate::store::{Key, Value};

/// The key of the row that holds the next kind to be allotted, guarded by every allotment: the
/// class without a name.
pub const NEXT_KIND_KEY: Key = Bytes::from_static(&[class::KIND_NAME, 0]);

/// The key of a kind's name: `6b 00 name`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KindNameKey {
    /// The name, 1 to 128 bytes of UTF-8.
    pub name: String,
}

impl KindNameKey {
    /// The bytes under which the row is stored, as `FORMAT.md` lays them out.
    pub fn encode(&self) -> Key {
        let mut key = Vec::with_capacity(2 + self.name.len());
        key.put_slice(&[class::KIND_NAME, 0]);
        key.put_slice(self.name.as_bytes());
        Bytes::from(key)
    }

    /// Reads a key.
    ///
    /// # Errors
    /// [`Malformed`] for another class or a name that is empty, too long or not UTF-8.
    pub fn decode(key: &Key) -> Result<Self, Malformed> {
        let mut reader = Reader::new(key);
        reader.class(class::KIND_NAME)?;
        let name = String::from_utf8(reader.rest().to_vec())
            .map_err(|_| Malformed("kind name is not UTF-8"))?;
        if name.is_empty() || name.len() > KIND_NAME_BYTES_MAX {
            return Err(Malformed("kind name of a wrong length"));
        }
        Ok(Self { name })
    }
}

/// The value of a kind's name, and of the next kind to be allotted: `kind:u8`. A kind is allotted
/// once and never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KindNameRow {
    /// The kind that belongs to the name, or is the next to be allotted.
    pub kind: TimerKind,
}

impl KindNameRow {
    /// The bytes that are stored as the row's value, as `FORMAT.md` lays them out.
    pub fn encode(&self) -> Value {
        Bytes::copy_from_slice(&[self.kind.0])
    }

    /// Reads a value.
    ///
    /// # Errors
    /// [`Malformed`] for a wrong length.
    pub fn decode(value: &Value) -> Result<Self, Malformed> {
        let mut reader = Reader::new(value);
        let row = Self {
            kind: TimerKind(reader.u8()?),
        };
        reader.end()?;
        Ok(row)
    }
}
