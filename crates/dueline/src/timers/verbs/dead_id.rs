use std::fmt;
use std::str::FromStr;

use bytes::Bytes;

use super::hex;
use crate::limits::REFERENCE_BYTES_MAX;
use crate::rows::{DeadKey, class};
use crate::store::Key;
use crate::timers::{TimerError, TimerKind};

/// Which dead timer: named or not, it has exactly one. Opaque; its text is URL-safe and reads back
/// to the same id.
///
/// It also marks a place in the order of the dead, so the last id of a page is where the next
/// begins, whether its timer is still there or not.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct DeadId(Key);

impl DeadId {
    pub(super) fn of(key: &DeadKey) -> Self {
        Self(key.encode())
    }

    /// A place in the order of the dead, at a key that may not decode.
    pub(super) fn behind(key: &Key) -> Self {
        Self(key.clone())
    }

    pub(super) fn key(&self) -> &Key {
        &self.0
    }

    pub(super) fn decode(&self) -> Result<DeadKey, TimerError> {
        DeadKey::decode(&self.0).map_err(|_| unknown())
    }

    /// The kind of the dead timer.
    pub fn kind(&self) -> TimerKind {
        self.0.get(2).copied().map_or(TimerKind::INVALID, TimerKind)
    }
}

fn unknown() -> TimerError {
    TimerError::invalid("this is not the id of a dead timer")
}

impl FromStr for DeadId {
    type Err = TimerError;

    fn from_str(text: &str) -> Result<Self, TimerError> {
        const FIXED_BYTES: usize = 1 + 8 + 8;
        if text.len() > 2 * (FIXED_BYTES + REFERENCE_BYTES_MAX) {
            return Err(unknown());
        }
        let body = hex::read(text).ok_or_else(unknown)?;
        let key = Bytes::from([&[class::DEAD, 0], body.as_slice()].concat());
        let id = Self(key);
        id.decode()?;
        Ok(id)
    }
}

impl fmt::Display for DeadId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        hex::write(f, self.0.get(2..).unwrap_or_default())
    }
}

impl fmt::Debug for DeadId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DeadId({self})")
    }
}
