use std::fmt;
use std::str::FromStr;

use bytes::Bytes;

use crate::runtime::Runtime;
use crate::timers::{TimerError, hex};

const ID_BYTES: usize = 16;

/// The identity of a ticket, drawn when it is opened. Ids of one process order as the tickets were
/// opened; half of the bits are random, so that one cannot be guessed from another. Its text is 32
/// hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TicketId([u8; ID_BYTES]);

impl TicketId {
    pub(super) fn draw(runtime: &Runtime) -> Self {
        let drawn =
            (u128::from(runtime.draw_generation()) << 64) | u128::from(runtime.random_u64());
        Self(drawn.to_be_bytes())
    }

    /// An id from its 16 bytes.
    pub fn from_bytes(bytes: [u8; ID_BYTES]) -> Self {
        Self(bytes)
    }

    /// The 16 bytes.
    pub fn as_bytes(&self) -> &[u8; ID_BYTES] {
        &self.0
    }

    /// An id from bytes that may be of another length.
    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }

    pub(super) fn to_bytes(self) -> Bytes {
        Bytes::copy_from_slice(&self.0)
    }
}

impl FromStr for TicketId {
    type Err = TimerError;

    fn from_str(text: &str) -> Result<Self, TimerError> {
        hex::read(text)
            .and_then(|bytes| Self::read(&bytes))
            .ok_or_else(|| {
                TimerError::invalid("the id of a ticket is 32 lower-case hexadecimal digits")
            })
    }
}

impl fmt::Display for TicketId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        hex::write(f, &self.0)
    }
}

impl fmt::Debug for TicketId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TicketId({self})")
    }
}
