use bytes::{BufMut, Bytes};

use super::{LEASE_SWEEP, LeaseName};
use crate::kinds::fuzzing::Form;
use crate::kinds::observed::Observed;
use crate::kinds::row::{Row, Table};
use crate::rows::Malformed;
use crate::rows::codec::Reader;
use crate::store::{Key, Partition, ReadStore, StoreError};

/// A lease that somebody holds: `62 00 01 6c`, then its name.
const HELD: Table = Table::new(LEASE_SWEEP, b'l');
/// The last epoch of a lease: `62 00 01 65`, then its name.
const EPOCH: Table = Table::new(LEASE_SWEEP, b'e');

/// What is stored, for the fuzz targets.
pub(in crate::kinds) const FORMS: &[Form] =
    &[Form::row::<HeldRow>(HELD), Form::row::<EpochRow>(EPOCH)];

/// A lease that somebody holds,
/// `version:u8 epoch:u64 expires_at_ms:u64 sweep_due_ms:u64 watermark:u64 owner`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct HeldRow {
    pub(super) epoch: u64,
    pub(super) expires_at_ms: u64,
    /// The due of the one timer that this row waits for.
    pub(super) sweep_due_ms: u64,
    pub(super) watermark: u64,
    pub(super) owner: Bytes,
}

impl HeldRow {
    pub(super) fn key(name: &LeaseName) -> Key {
        HELD.key(&[name.as_bytes()])
    }
}

impl Row for HeldRow {
    const WHAT: &'static str = "a lease";

    fn encode_fields(&self, out: &mut Vec<u8>) {
        out.put_u64(self.epoch);
        out.put_u64(self.expires_at_ms);
        out.put_u64(self.sweep_due_ms);
        out.put_u64(self.watermark);
        out.put_slice(&self.owner);
    }

    fn decode_fields(mut reader: Reader) -> Result<Self, Malformed> {
        Ok(Self {
            epoch: reader.u64()?,
            expires_at_ms: reader.u64()?,
            sweep_due_ms: reader.u64()?,
            watermark: reader.u64()?,
            owner: reader.rest(),
        })
    }
}

/// The last epoch of a lease, `version:u8 held:u8 epoch:u64`, and `watermark:u64` behind it if nobody
/// holds the lease. It stays when the lease goes, so that no epoch is given twice, and while the lease is
/// held its bytes follow from the epoch alone, so that a fence needs no read and outlives renewals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EpochRow {
    Held { epoch: u64 },
    Vacant { epoch: u64, watermark: u64 },
}

impl EpochRow {
    pub(super) fn key(name: &LeaseName) -> Key {
        EPOCH.key(&[name.as_bytes()])
    }

    pub(super) fn epoch(self) -> u64 {
        match self {
            Self::Held { epoch } | Self::Vacant { epoch, .. } => epoch,
        }
    }
}

impl Row for EpochRow {
    const WHAT: &'static str = "the epoch of a lease";

    fn encode_fields(&self, out: &mut Vec<u8>) {
        match self {
            Self::Held { epoch } => {
                out.put_u8(1);
                out.put_u64(*epoch);
            }
            Self::Vacant { epoch, watermark } => {
                out.put_u8(0);
                out.put_u64(*epoch);
                out.put_u64(*watermark);
            }
        }
    }

    fn decode_fields(mut reader: Reader) -> Result<Self, Malformed> {
        let held = reader.u8()?;
        let epoch = reader.u64()?;
        let row = match held {
            1 => Self::Held { epoch },
            0 => Self::Vacant {
                epoch,
                watermark: reader.u64()?,
            },
            _ => return Err(Malformed("unknown flags")),
        };
        reader.end()?;
        Ok(row)
    }
}

/// Both rows of a lease, read together.
#[derive(Debug)]
pub(super) struct LeaseRows {
    pub(super) held: Observed<HeldRow>,
    pub(super) epoch: Observed<EpochRow>,
}

impl LeaseRows {
    /// Reads both rows in one call. `Corrupt` if one does not decode or they contradict each other.
    pub(super) async fn read(
        reads: &dyn ReadStore,
        partition: &Partition,
        name: &LeaseName,
    ) -> Result<Self, StoreError> {
        let keys = [HeldRow::key(name), EpochRow::key(name)];
        let values = reads.get_many(partition, &keys).await?;
        let [held_key, epoch_key] = keys;
        let mut values = values.into_iter();
        let rows = Self {
            held: Observed::of(held_key, values.next().flatten())?,
            epoch: Observed::of(epoch_key, values.next().flatten())?,
        };
        let holding = rows.held.row.as_ref().map(|held| held.epoch);
        let known = match rows.epoch.row {
            Some(EpochRow::Held { epoch }) => Some(epoch),
            Some(EpochRow::Vacant { .. }) | None => None,
        };
        if holding != known {
            return Err(StoreError::corrupt(
                "a lease and its epoch contradict each other",
            ));
        }
        Ok(rows)
    }
}
