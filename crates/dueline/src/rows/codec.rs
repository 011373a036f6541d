//! Reading big-endian fields off the front of a row, for the engine's rows and those of the built-in kinds.

use bytes::{Buf, Bytes};

use super::Malformed;

/// What is left of a row that is being read.
pub(crate) struct Reader {
    rest: Bytes,
}

impl Reader {
    pub(crate) fn new(row: &Bytes) -> Self {
        Self { rest: row.clone() }
    }

    /// Reads the class of a key and refuses another one.
    pub(crate) fn class(&mut self, class: u8) -> Result<(), Malformed> {
        if !super::is_of_class(&self.rest, class) {
            return Err(Malformed("key of another class"));
        }
        self.rest.advance(2);
        Ok(())
    }

    pub(crate) fn u8(&mut self) -> Result<u8, Malformed> {
        self.rest.try_get_u8().map_err(|_| Malformed("too short"))
    }

    pub(crate) fn u16(&mut self) -> Result<u16, Malformed> {
        self.rest.try_get_u16().map_err(|_| Malformed("too short"))
    }

    pub(crate) fn u32(&mut self) -> Result<u32, Malformed> {
        self.rest.try_get_u32().map_err(|_| Malformed("too short"))
    }

    pub(crate) fn u64(&mut self) -> Result<u64, Malformed> {
        self.rest.try_get_u64().map_err(|_| Malformed("too short"))
    }

    pub(crate) fn bytes(&mut self, len: usize) -> Result<Bytes, Malformed> {
        if self.rest.len() < len {
            return Err(Malformed("too short"));
        }
        Ok(self.rest.split_to(len))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    pub(crate) fn rest(self) -> Bytes {
        self.rest
    }

    pub(crate) fn end(self) -> Result<(), Malformed> {
        if self.rest.is_empty() {
            Ok(())
        } else {
            Err(Malformed("too long"))
        }
    }
}
