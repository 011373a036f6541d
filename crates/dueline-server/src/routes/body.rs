use std::future::poll_fn;
use std::pin::Pin;

use axum::body::{Body, Bytes, HttpBody};
use dueline::limits::PAYLOAD_BYTES_MAX;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, EXPECT};
use http::{HeaderMap, StatusCode};
use serde_json::value::RawValue;

use super::problem::Problem;
use crate::service::{Members, compact};

/// Most bytes of a body that is too large which are still read, so that a client that is busy sending
/// gets to see the answer.
const DISCARDED_BYTES_MAX: usize = 64 * 1_024 * 1_024;

/// A body: its bytes, and the members of its object.
#[derive(Debug)]
pub(super) struct JsonBody {
    pub(super) bytes: Bytes,
    pub(super) members: Members,
}

/// Reads a JSON object of at most `bytes_max` bytes.
pub(super) async fn read_json(
    headers: &HeaderMap,
    body: Body,
    bytes_max: usize,
) -> Result<JsonBody, Problem> {
    require_json(headers)?;
    let bytes = read(headers, body, bytes_max).await?;
    Ok(JsonBody {
        members: members(&bytes)?,
        bytes,
    })
}

/// Reads a JSON object, or nothing at all, which counts as an empty object.
pub(super) async fn read_json_or_nothing(
    headers: &HeaderMap,
    body: Body,
    bytes_max: usize,
) -> Result<JsonBody, Problem> {
    let bytes = read(headers, body, bytes_max).await?;
    if bytes.is_empty() {
        return Ok(JsonBody {
            bytes,
            members: Members::default(),
        });
    }
    require_json(headers)?;
    Ok(JsonBody {
        members: members(&bytes)?,
        bytes,
    })
}

fn require_json(headers: &HeaderMap) -> Result<(), Problem> {
    let content_type = headers
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    let essence = content_type.split(';').next().unwrap_or_default().trim();
    let is_json = essence.eq_ignore_ascii_case("application/json")
        || essence
            .to_ascii_lowercase()
            .strip_prefix("application/")
            .is_some_and(|subtype| subtype.ends_with("+json"));
    if is_json {
        return Ok(());
    }
    Err(Problem::new(
        StatusCode::UNSUPPORTED_MEDIA_TYPE,
        "unsupported_media_type",
        "The body is not JSON",
        "send content-type: application/json",
    ))
}

async fn read(headers: &HeaderMap, mut body: Body, bytes_max: usize) -> Result<Bytes, Problem> {
    let announced: Option<usize> = headers
        .get(CONTENT_LENGTH)
        .and_then(|value| value.to_str().ok())
        .and_then(|text| text.parse().ok());
    let mut fits = announced.is_none_or(|bytes| bytes <= bytes_max);
    if !fits && headers.contains_key(EXPECT) {
        // The client waits for leave to send: it is told before it does.
        return Err(too_large(bytes_max));
    }
    let mut read = Vec::new();
    let mut discarded = 0usize;
    while let Some(frame) = poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await {
        let frame = frame.map_err(|_| Problem::bad_request("the body broke off"))?;
        let Ok(data) = frame.into_data() else {
            continue;
        };
        fits = fits && read.len().saturating_add(data.len()) <= bytes_max;
        if fits {
            read.extend_from_slice(&data);
            continue;
        }
        read = Vec::new();
        discarded = discarded.saturating_add(data.len());
        if discarded > DISCARDED_BYTES_MAX {
            break;
        }
    }
    if fits {
        Ok(Bytes::from(read))
    } else {
        Err(too_large(bytes_max))
    }
}

fn too_large(bytes_max: usize) -> Problem {
    Problem::new(
        StatusCode::PAYLOAD_TOO_LARGE,
        "body_too_large",
        "The body is too large",
        format!(
            "a body has at most {bytes_max} bytes here, and a timer takes at most \
             {PAYLOAD_BYTES_MAX}"
        ),
    )
}

fn members(bytes: &[u8]) -> Result<Members, Problem> {
    let raw: Box<RawValue> = serde_json::from_slice(bytes).map_err(|error| {
        Problem::new(
            StatusCode::BAD_REQUEST,
            "malformed_json",
            "The body is not JSON",
            error.to_string(),
        )
    })?;
    let text = compact(&raw).map_err(at_root)?;
    serde_json::from_str(text.get()).map_err(|_| at_root("the body is a JSON object".to_owned()))
}

fn at_root(detail: String) -> Problem {
    Problem::impossible(vec![crate::service::FieldError {
        pointer: String::new(),
        detail,
    }])
}
