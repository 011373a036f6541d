use bytes::Bytes;

use super::rows::{EpochRow, HeldRow};
use super::{LEASE_NAME_BYTES_MAX, LEASE_OWNER_BYTES_MAX};
use crate::kinds::row::Row;
use crate::store::{Batch, Key, Precondition, StoreError, Value};

/// What is leased, 1 to 256 bytes; unique in its partition.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LeaseName(Bytes);

impl LeaseName {
    /// A name.
    ///
    /// # Errors
    /// `Invalid` for an empty one or one over 256 bytes.
    pub fn new(name: impl Into<Bytes>) -> Result<Self, StoreError> {
        Ok(Self(sized(
            "the name of a lease",
            name.into(),
            LEASE_NAME_BYTES_MAX,
        )?))
    }

    /// The bytes of the name.
    pub fn as_bytes(&self) -> &Bytes {
        &self.0
    }
}

/// Who holds a lease, 1 to 256 bytes. Let every life of a process have one of its own: a grant that finds
/// its own owner then knows that an earlier try was committed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LeaseOwner(Bytes);

impl LeaseOwner {
    /// An owner.
    ///
    /// # Errors
    /// `Invalid` for an empty one or one over 256 bytes.
    pub fn new(owner: impl Into<Bytes>) -> Result<Self, StoreError> {
        Ok(Self(sized(
            "the owner of a lease",
            owner.into(),
            LEASE_OWNER_BYTES_MAX,
        )?))
    }

    /// The bytes of the owner.
    pub fn as_bytes(&self) -> &Bytes {
        &self.0
    }
}

fn sized(what: &str, bytes: Bytes, most: usize) -> Result<Bytes, StoreError> {
    if bytes.is_empty() || bytes.len() > most {
        return Err(StoreError::invalid(format!(
            "{what} has 1 to {most} bytes, this one has {}",
            bytes.len()
        )));
    }
    Ok(bytes)
}

/// A lease that somebody holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    /// What is leased.
    pub name: LeaseName,
    /// Who holds it.
    pub owner: LeaseOwner,
    /// Grows by at least one with every grant of this name and never shrinks; the same over renewals.
    pub epoch: u64,
    /// When it expires, in milliseconds since 1970. It is held until it is swept, which may be later.
    pub expires_at_ms: u64,
    /// The highest watermark that the [`LeaseSource`](super::LeaseSource) has told of this name.
    pub watermark: u64,
}

impl Lease {
    pub(super) fn of(name: &LeaseName, row: &HeldRow) -> Result<Self, StoreError> {
        let owner = LeaseOwner::new(row.owner.clone());
        Ok(Self {
            name: name.clone(),
            owner: owner.map_err(|error| StoreError::corrupt(format!("a lease: {error}")))?,
            epoch: row.epoch,
            expires_at_ms: row.expires_at_ms,
            watermark: row.watermark,
        })
    }

    /// Whether its time is over at this time, in milliseconds since 1970.
    pub fn has_expired(&self, now_ms: u64) -> bool {
        self.expires_at_ms <= now_ms
    }

    /// The guard of this holder's writes.
    pub fn fence(&self) -> Fence {
        Fence::new(&self.name, self.epoch)
    }
}

/// A precondition: the lease is still held in this epoch.
///
/// A holder appends it to each batch it writes in the partition of the lease. Once the lease was
/// released, swept or granted anew the batch loses and writes nothing, however late it arrives. Renewals
/// do not disturb it, and making it reads nothing.
///
/// A lease that has expired and is not swept yet is still held: nobody else has it. A holder that wants
/// its writes to end with its term adds [`until`](Self::until).
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "a fence guards nothing until it is in a batch"]
pub struct Fence {
    key: Key,
    value: Value,
    until_ms: Option<u64>,
}

impl Fence {
    /// The fence of a lease that was granted in this epoch.
    pub fn new(name: &LeaseName, epoch: u64) -> Self {
        Self {
            key: EpochRow::key(name),
            value: EpochRow::Held { epoch }.encode(),
            until_ms: None,
        }
    }

    /// Holds at most until this time by the store's clock, in milliseconds since 1970: the
    /// [`expires_at_ms`](Lease::expires_at_ms) of the last renewal.
    pub fn until(mut self, until_ms: u64) -> Self {
        self.until_ms = Some(until_ms);
        self
    }

    /// Adds the guard behind those of a batch: one precondition, two with a time.
    #[must_use]
    pub fn guard(&self, batch: Batch) -> Batch {
        let batch = batch.require_equals(self.key.clone(), self.value.clone());
        match self.until_ms {
            Some(until_ms) => batch.require(Precondition::NotAfter(until_ms)),
            None => batch,
        }
    }
}
