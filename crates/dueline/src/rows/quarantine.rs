use bytes::{BufMut, Bytes};

use super::codec::Reader;
use super::{Malformed, class};
use crate::store::Key;

/// The key of a row set aside: `71 00` and the malformed key without its first two bytes. The value
/// is the row's, byte for byte.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuarantineKey {
    /// The malformed key behind its class.
    pub malformed: Bytes,
}

impl QuarantineKey {
    /// Where the row of this malformed key of the timer class is set aside.
    pub fn of(malformed_key: &Key) -> Self {
        Self {
            malformed: malformed_key.slice(2.min(malformed_key.len())..),
        }
    }

    /// The bytes under which the row is stored, as `FORMAT.md` lays them out.
    pub fn encode(&self) -> Key {
        let mut key = Vec::with_capacity(2 + self.malformed.len());
        key.put_slice(&[class::QUARANTINE, 0]);
        key.put_slice(&self.malformed);
        Bytes::from(key)
    }

    /// Reads a key.
    ///
    /// # Errors
    /// [`Malformed`] for another class.
    pub fn decode(key: &Key) -> Result<Self, Malformed> {
        let mut reader = Reader::new(key);
        reader.class(class::QUARANTINE)?;
        Ok(Self {
            malformed: reader.rest(),
        })
    }

    /// The key as it was found.
    pub fn original(&self) -> Key {
        let mut key = Vec::with_capacity(2 + self.malformed.len());
        key.put_slice(&[class::TIMER, 0]);
        key.put_slice(&self.malformed);
        Bytes::from(key)
    }
}
