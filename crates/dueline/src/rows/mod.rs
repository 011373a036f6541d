//! The engine's rows: one file per class of keys, each with its layout, encoder and decoder.
//!
//! A class is a letter followed by `00`; integers are big-endian, so that rows of a class order as
//! their numbers do. `FORMAT.md` has the same tables with golden bytes.

pub(crate) mod codec;
mod dead;
mod header;
mod kind_name;
mod name;
mod pause;
mod quarantine;
mod timer;

pub use dead::{DeadKey, DeadReason, DeadRow};
pub use header::{Failure, Flags, HEADER_VERSION, Header};
pub use kind_name::{KindNameKey, KindNameRow, NEXT_KIND_KEY};
pub use name::{NameKey, NameRow, NameState};
pub use pause::{PauseKey, PauseRow};
pub use quarantine::QuarantineKey;
pub use timer::{LaneHead, TimerKey, TimerRow, lane_head};

use bytes::Bytes;

use crate::store::Key;

/// The letter of each class, followed in a key by `00`.
pub mod class {
    /// Timers that wait for their due, in due order: [`TimerKey`](super::TimerKey).
    pub const TIMER: u8 = b'w';
    /// Names, each pointing at its timer: [`NameKey`](super::NameKey).
    pub const NAME: u8 = b'n';
    /// Timers that were given up, in the order of their death: [`DeadKey`](super::DeadKey).
    pub const DEAD: u8 = b'd';
    /// Kinds that are paused in the partition: [`PauseKey`](super::PauseKey).
    pub const PAUSE: u8 = b'p';
    /// Kinds that were allotted to a name: [`KindNameKey`](super::KindNameKey).
    pub const KIND_NAME: u8 = b'k';
    /// Keys of the timer class that did not decode.
    pub const QUARANTINE: u8 = b'q';
    /// Rows of the built-in kinds: [`kinds`](crate::kinds).
    pub const BUILT_IN: u8 = crate::store::BUILT_IN_ROWS[0];
    /// No rows: marks in a batch of work that a host does with its commit. A store that knows them takes
    /// them out, and to any other they are deletes of rows that are not there.
    pub const EFFECT: u8 = b'e';
}

/// Why a row does not decode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed(pub &'static str);

impl std::fmt::Display for Malformed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "malformed row: {}", self.0)
    }
}

impl std::error::Error for Malformed {}

/// The first key of a class.
pub fn class_start(class: u8) -> Key {
    Bytes::copy_from_slice(&[class, 0])
}

/// The first key behind a class.
pub fn class_end(class: u8) -> Key {
    Bytes::copy_from_slice(&[class, 1])
}

/// Whether a key belongs to this class.
pub fn is_of_class(key: &[u8], class: u8) -> bool {
    key.starts_with(&[class, 0])
}

/// Whether a key belongs to the engine or a built-in kind: its second byte is `00`.
pub fn is_reserved(key: &[u8]) -> bool {
    key.get(1) == Some(&0)
}
