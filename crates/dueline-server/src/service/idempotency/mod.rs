//! `Idempotency-Key`: the first answer again for a day.
//!
//! The record of a key is a row of the partition, written in the batch that carries the request out,
//! so there is never one without the other. It is taken away by a timer of a kind of its own, written
//! in that batch too. Requests of a batch each have a record of their own, so that one that was cut
//! in the middle goes on where it was.

mod expiry;
mod in_flight;
mod record;
mod rows;
mod session;
mod stamping_store;

pub(crate) use expiry::{EXPIRY_GROUP_MAX, IDEMPOTENCY_EXPIRY, IdempotencyExpiry};
pub(crate) use in_flight::InFlight;
pub(crate) use record::Recorded;
pub(crate) use session::{BatchSession, Begun, Session};

/// How long a key is remembered, in milliseconds (24 h).
pub(crate) const REMEMBERED_MS: u64 = 24 * 3_600_000;

/// Longest key, in bytes.
pub(crate) const KEY_BYTES_MAX: usize = 255;

/// A request that asks to be carried out once.
#[derive(Clone, Debug)]
pub(crate) struct Keyed {
    key: String,
    fingerprint: String,
}

impl Keyed {
    /// A key (1 to 255 visible ASCII characters) and what the request is known again by.
    pub(crate) fn new(key: &str, fingerprint: String) -> Option<Self> {
        let sound = (1..=KEY_BYTES_MAX).contains(&key.len())
            && key.bytes().all(|byte| (b' '..=b'~').contains(&byte));
        sound.then(|| Self {
            key: key.to_owned(),
            fingerprint,
        })
    }
}
