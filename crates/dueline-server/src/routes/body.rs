use std::future::poll_fn;
use std::pin::Pin;
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use dueline::limits::PAYLOAD_BYTES_MAX;
use dueline::runtime::Runtime;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, EXPECT};
use http::{HeaderMap, StatusCode};
use serde_json::value::RawValue;

use super::problem::Problem;
use crate::service::{Members, compact};

/// How long a body may take to arrive.
const BODY_TIMEOUT: Duration = Duration::from_secs(30);
/// How long, and how much of, a body that is too large is still taken.
const DISCARD_TIMEOUT: Duration = Duration::from_secs(2);
const DISCARDED_BYTES_MAX: usize = 64 * 1_024 * 1_024;

/// A body: its bytes, and the members of its object.
#[derive(Debug)]
pub(super) struct JsonBody {
    pub(super) bytes: Bytes,
    pub(super) members: Members,
}

/// Reads a JSON object of at most `bytes_max` bytes.
pub(super) async fn read_json(
    runtime: &Runtime,
    headers: &HeaderMap,
    body: Body,
    bytes_max: usize,
) -> Result<JsonBody, Problem> {
    require_json(headers)?;
    let bytes = read(runtime, headers, body, bytes_max).await?;
    Ok(JsonBody {
        members: members(&bytes)?,
        bytes,
    })
}

/// Reads a JSON object, or nothing at all, which counts as an empty object.
pub(super) async fn read_json_or_nothing(
    runtime: &Runtime,
    headers: &HeaderMap,
    body: Body,
    bytes_max: usize,
) -> Result<JsonBody, Problem> {
    let bytes = read(runtime, headers, body, bytes_max).await?;
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

/// Reads a body, for as long as it arrives in time.
async fn read(
    runtime: &Runtime,
    headers: &HeaderMap,
    mut body: Body,
    bytes_max: usize,
) -> Result<Bytes, Problem> {
    let announced: Option<usize> = headers
        .get(CONTENT_LENGTH)
        .and_then(|value| value.to_str().ok())
        .and_then(|text| text.parse().ok());
    let read = if announced.is_some_and(|bytes| bytes > bytes_max) {
        Ok(None)
    } else {
        // A connection that has stood still for even longer is cut by then: it was the client that was slow.
        tokio::select! {
            biased;
            () = runtime.sleep(BODY_TIMEOUT) => Err(too_slow()),
            read = read_within(&mut body, bytes_max) => read,
        }
    };
    if let Some(bytes) = read? {
        return Ok(bytes);
    }
    // A client that waits for leave to send is told before it does; one that is busy sending gets to
    // see the answer only if what it sends is taken, for a while.
    if !headers.contains_key(EXPECT) {
        tokio::select! {
            () = discard(body) => {}
            () = runtime.sleep(DISCARD_TIMEOUT) => {}
        }
    }
    Err(too_large(bytes_max))
}

/// The body, or `None` once it is over the limit.
async fn read_within(body: &mut Body, bytes_max: usize) -> Result<Option<Bytes>, Problem> {
    let mut read = Vec::new();
    while let Some(piece) = next_piece(body).await {
        let data = piece.map_err(|_| Problem::bad_request("the body broke off"))?;
        if read.len().saturating_add(data.len()) > bytes_max {
            return Ok(None);
        }
        read.extend_from_slice(&data);
    }
    Ok(Some(Bytes::from(read)))
}

async fn discard(mut body: Body) {
    let mut discarded = 0usize;
    while let Some(Ok(data)) = next_piece(&mut body).await {
        discarded = discarded.saturating_add(data.len());
        if discarded > DISCARDED_BYTES_MAX {
            return;
        }
    }
}

/// The next piece of a body; trailers count as an empty one.
async fn next_piece(body: &mut Body) -> Option<Result<Bytes, axum::Error>> {
    let frame = poll_fn(|context| Pin::new(&mut *body).poll_frame(context)).await?;
    Some(frame.map(|frame| frame.into_data().unwrap_or_default()))
}

fn too_slow() -> Problem {
    Problem::new(
        StatusCode::REQUEST_TIMEOUT,
        "body_too_slow",
        "The body did not arrive in time",
        format!("a body has to arrive within {} s", BODY_TIMEOUT.as_secs()),
    )
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
