use dueline::store::Key;
use sha2::{Digest, Sha256};

const RECORD: &[u8] = b"idempotency/";
const ITEM: &[u8] = b"idempotency-item/";
const ITEM_HASH_BYTES: usize = 16;

/// The key of a record.
pub(super) fn record_key(idempotency_key: &str) -> Key {
    [RECORD, idempotency_key.as_bytes()].concat().into()
}

/// The key of the record of one request of a batch. The batch is hashed, so that no key is the
/// beginning of another, with its end, so that a later use of the key does not meet the rows of an
/// earlier one.
pub(super) fn item_key(idempotency_key: &str, expires_at_ms: u64, index: u32) -> Key {
    let start = item_start(idempotency_key, expires_at_ms);
    [start.as_ref(), &index.to_be_bytes()].concat().into()
}

/// The first key of the items of a batch.
pub(super) fn item_start(idempotency_key: &str, expires_at_ms: u64) -> Key {
    let hash = Sha256::new()
        .chain_update(expires_at_ms.to_be_bytes())
        .chain_update(idempotency_key.as_bytes())
        .finalize();
    let hash = hash.get(..ITEM_HASH_BYTES).unwrap_or_default();
    [ITEM, hash, b"/"].concat().into()
}

/// The first key behind the items of a batch.
pub(super) fn item_end(idempotency_key: &str, expires_at_ms: u64) -> Key {
    let mut end = item_start(idempotency_key, expires_at_ms).to_vec();
    end.pop();
    end.push(b'/' + 1);
    end.into()
}

/// Which request of the batch an item's key belongs to.
pub(super) fn item_index(key: &Key) -> Option<u32> {
    let (_, index) = key.split_last_chunk::<4>()?;
    Some(u32::from_be_bytes(*index))
}
