use bytes::{BufMut, Bytes};
use sha2::{Digest, Sha256};

use super::PUBLICATION_RECHECK;
use super::gate::{Gated, GatedRecord};
use crate::kinds::fuzzing::Form;
use crate::kinds::row::Row;
use crate::rows::Malformed;
use crate::rows::codec::Reader;

/// What a position was reached with.
pub(super) type WalkDigest = [u8; 32];

/// What is stored, for the fuzz targets.
pub(in crate::kinds) const FORMS: &[Form] = &[Form::payload::<WalkCursor>(PUBLICATION_RECHECK)];

/// How far a walk has come, the timer's payload: `version:u8 digest:32 position:u32`. An empty payload is
/// a walk that has not begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WalkCursor {
    pub(super) digest: WalkDigest,
    /// How many remote dependencies, in canonical order, were visible.
    pub(super) position: u32,
}

impl WalkCursor {
    /// The cursor of a payload; `None` before the first walk.
    pub(super) fn of_payload(payload: &Bytes) -> Result<Option<Self>, Malformed> {
        if payload.is_empty() {
            return Ok(None);
        }
        Self::decode(payload).map(Some)
    }
}

impl Row for WalkCursor {
    const WHAT: &'static str = "the cursor of a recheck";

    fn encode_fields(&self, out: &mut Vec<u8>) {
        out.put_slice(&self.digest);
        out.put_u32(self.position);
    }

    fn decode_fields(mut reader: Reader) -> Result<Self, Malformed> {
        let mut digest = WalkDigest::default();
        let bytes = reader.bytes(digest.len())?;
        digest.copy_from_slice(&bytes);
        let position = reader.u32()?;
        reader.end()?;
        Ok(Self { digest, position })
    }
}

/// The digest of everything that a position rests on. The dependencies must be in canonical order.
///
/// It is a SHA-256, not one of the quick hashes used elsewhere: the bytes are the users', and two records
/// with one digest would let the second inherit what was seen for the first.
pub(super) fn digest(record: &GatedRecord, gated: &Gated) -> WalkDigest {
    let mut hasher = Sha256::new();
    let mut field = |bytes: &[u8]| {
        hasher.update((bytes.len() as u64).to_be_bytes());
        hasher.update(bytes);
    };
    field(b"dueline publication_recheck 1");
    field(&gated.generation.to_be_bytes());
    field(&gated.obligations);
    field(&record.key);
    field(&record.value);
    for dependency in &gated.dependencies {
        field(dependency.partition.as_bytes());
        field(&dependency.key);
    }
    hasher.finalize().into()
}
