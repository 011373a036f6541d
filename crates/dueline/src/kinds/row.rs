//! Keys and values of the built-in kinds' rows.

use bytes::{BufMut, Bytes};

use crate::kind::TimerKind;
use crate::rows::codec::Reader;
use crate::rows::{Malformed, class};
use crate::store::{Key, StoreError, Value};

/// A table of a built-in kind: a letter that is never given a second meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Table {
    pub(crate) kind: TimerKind,
    pub(crate) letter: u8,
}

impl Table {
    pub(crate) const fn new(kind: TimerKind, letter: u8) -> Self {
        Self { kind, letter }
    }

    /// `62 00 kind letter`, then the fields one after another. The fields must be such that no two rows
    /// share their bytes: all but the last of a fixed length, or with their length in front.
    pub(crate) fn key(self, fields: &[&[u8]]) -> Key {
        let len: usize = fields.iter().map(|field| field.len()).sum();
        let mut key = Vec::with_capacity(4 + len);
        key.put_slice(&[class::BUILT_IN, 0, self.kind.0, self.letter]);
        for field in fields {
            key.put_slice(field);
        }
        Bytes::from(key)
    }

    /// The first key behind the table.
    pub(crate) fn end(self) -> Key {
        Key::copy_from_slice(&[class::BUILT_IN, 0, self.kind.0, self.letter + 1])
    }

    /// The fields of a key of this table.
    pub(crate) fn fields(self, key: &Key) -> Result<Reader, Malformed> {
        let mut reader = Reader::new(key);
        reader.class(class::BUILT_IN)?;
        if reader.u8()? != self.kind.0 || reader.u8()? != self.letter {
            return Err(Malformed("key of another table"));
        }
        Ok(reader)
    }
}

/// A value with a version in front.
pub(crate) trait Row: Sized {
    /// What the row is called in an error.
    const WHAT: &'static str;
    /// The version that this binary writes; it reads no other unless `decode` says so.
    const VERSION: u8 = 1;

    /// The fields behind the version.
    fn encode_fields(&self, out: &mut Vec<u8>);

    /// Reads the fields behind the version.
    fn decode_fields(reader: Reader) -> Result<Self, Malformed>;

    fn encode(&self) -> Value {
        let mut value = Vec::new();
        value.put_u8(Self::VERSION);
        self.encode_fields(&mut value);
        Bytes::from(value)
    }

    fn decode(value: &Bytes) -> Result<Self, Malformed> {
        let mut reader = Reader::new(value);
        if reader.u8()? != Self::VERSION {
            return Err(Malformed("unknown version"));
        }
        Self::decode_fields(reader)
    }

    /// The same with the error that a store gives for a row that does not decode.
    fn read(value: &Bytes) -> Result<Self, StoreError> {
        Self::decode(value)
            .map_err(|malformed| StoreError::corrupt(format!("{}: {}", Self::WHAT, malformed.0)))
    }
}
