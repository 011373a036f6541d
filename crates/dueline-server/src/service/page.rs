//! Pages: how many rows, and where the next one begins.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};

use super::error::ServiceError;

/// Rows of a page unless the request says otherwise.
pub(crate) const PAGE_SIZE_DEFAULT: usize = 100;
/// Most rows of a page.
pub(crate) const PAGE_SIZE_MAX: usize = 1_000;

const HASH_BYTES: usize = 8;
const TOKEN_CHARS_MAX: usize = 8_192;

/// Which page of a list is wanted.
#[derive(Clone, Debug)]
pub(crate) struct PageRequest {
    /// 1 to 1,000.
    pub(crate) size: usize,
    /// The token of the page before.
    pub(crate) token: Option<String>,
}

/// The token of the page behind a position, bound to the list that it belongs to. Opaque.
pub(super) fn token(list: &[&str], position: &[u8]) -> String {
    let mut bytes = hash(list).to_vec();
    bytes.extend_from_slice(position);
    URL_SAFE_NO_PAD.encode(bytes)
}

/// The position of a token, if it belongs to this list.
pub(super) fn position(list: &[&str], token: &str) -> Result<Vec<u8>, ServiceError> {
    if token.len() > TOKEN_CHARS_MAX {
        return Err(ServiceError::PageToken);
    }
    let bytes = URL_SAFE_NO_PAD
        .decode(token)
        .map_err(|_| ServiceError::PageToken)?;
    match bytes.split_at_checked(HASH_BYTES) {
        Some((of, position)) if of == hash(list) => Ok(position.to_vec()),
        _ => Err(ServiceError::PageToken),
    }
}

/// The position of a token as a text.
pub(super) fn text_position(list: &[&str], token: &str) -> Result<String, ServiceError> {
    String::from_utf8(position(list, token)?).map_err(|_| ServiceError::PageToken)
}

fn hash(list: &[&str]) -> [u8; HASH_BYTES] {
    let mut hash = Sha256::new();
    for part in list {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part.as_bytes());
    }
    let mut short = [0; HASH_BYTES];
    for (to, from) in short.iter_mut().zip(hash.finalize()) {
        *to = from;
    }
    short
}
