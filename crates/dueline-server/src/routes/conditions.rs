//! `If-Match`, `If-None-Match` and `Idempotency-Key`.

use std::fmt::Write;

use http::header::{HeaderName, IF_MATCH, IF_NONE_MATCH};
use http::request::Parts;
use sha2::{Digest, Sha256};

use super::problem::Problem;
use crate::service::{Condition, Keyed};

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// The condition of a request.
pub(super) fn condition(parts: &Parts) -> Result<Condition, Problem> {
    let if_match = header(parts, &IF_MATCH)?;
    let if_none_match = header(parts, &IF_NONE_MATCH)?;
    match (if_match, if_none_match) {
        (None, None) => Ok(Condition::None),
        (Some(_), Some(_)) => Err(Problem::bad_request(
            "If-Match and If-None-Match exclude each other",
        )),
        (None, Some(text)) if text.trim() == "*" => Ok(Condition::Absent),
        (None, Some(_)) => Err(Problem::bad_request(
            "If-None-Match takes * alone: create the timer only if there is none",
        )),
        (Some(text), None) if text.trim() == "*" => Ok(Condition::Present),
        (Some(text), None) => generations(&text).map(Condition::Generations),
    }
}

/// The generations of a list of entity tags. Weak ones, and those that no timer can have, match
/// nothing.
fn generations(text: &str) -> Result<Vec<u64>, Problem> {
    let mut generations = Vec::new();
    for tag in text.split(',').map(str::trim).filter(|tag| !tag.is_empty()) {
        let (weak, tag) = match tag.strip_prefix("W/") {
            Some(tag) => (true, tag),
            None => (false, tag),
        };
        let opaque = tag
            .strip_prefix('"')
            .and_then(|tag| tag.strip_suffix('"'))
            .ok_or_else(|| {
                Problem::bad_request(
                    "If-Match takes * or the timer's ETag in quotes: \"1850743917871104512\"",
                )
            })?;
        if !weak && let Ok(generation) = opaque.parse() {
            generations.push(generation);
        }
    }
    Ok(generations)
}

/// The idempotency key of a request, with what the request is known again by: everything that
/// decides what it does.
pub(super) fn keyed(parts: &Parts, body: &[u8]) -> Result<Option<Keyed>, Problem> {
    let Some(key) = header(parts, &IDEMPOTENCY_KEY)? else {
        return Ok(None);
    };
    let mut hash = Sha256::new();
    let if_match = header(parts, &IF_MATCH)?.unwrap_or_default();
    let if_none_match = header(parts, &IF_NONE_MATCH)?.unwrap_or_default();
    for part in [
        parts.method.as_str().as_bytes(),
        parts.uri.path().as_bytes(),
        parts.uri.query().unwrap_or_default().as_bytes(),
        if_match.as_bytes(),
        if_none_match.as_bytes(),
        body,
    ] {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    let mut fingerprint = String::with_capacity(64);
    for byte in hash.finalize() {
        let _ = write!(fingerprint, "{byte:02x}");
    }
    match Keyed::new(&key, fingerprint) {
        Some(keyed) => Ok(Some(keyed)),
        None => Err(Problem::bad_request(
            "Idempotency-Key is 1 to 255 printable ASCII characters",
        )),
    }
}

/// The value of a header; several of one name are one list.
fn header(parts: &Parts, name: &HeaderName) -> Result<Option<String>, Problem> {
    let mut values = Vec::new();
    for value in parts.headers.get_all(name) {
        let text = value
            .to_str()
            .map_err(|_| Problem::bad_request(format!("the header {name} is not ASCII")))?;
        values.push(text);
    }
    Ok((!values.is_empty()).then(|| values.join(",")))
}
