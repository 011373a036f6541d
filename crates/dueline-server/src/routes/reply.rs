use axum::Json;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use http::header::{ETAG, HeaderValue, LOCATION};

use super::names::timer_path;
use crate::service::{Answer, Outcome};

/// The status of an outcome.
pub(super) fn status_of(outcome: Outcome) -> StatusCode {
    match outcome {
        Outcome::Created => StatusCode::CREATED,
        Outcome::Replaced | Outcome::Unchanged | Outcome::Moved => StatusCode::OK,
    }
}

/// A timer as a request left it: with its ETag, and its place if it is new.
pub(super) fn timer(answer: Answer) -> Response {
    let timer = answer.timer;
    let place = timer_path(&timer.partition, &timer.id);
    let tag = entity_tag(&timer.generation);
    let mut response = (status_of(answer.outcome), Json(timer)).into_response();
    if let Some(tag) = tag {
        response.headers_mut().insert(ETAG, tag);
    }
    if answer.outcome == Outcome::Created
        && let Ok(place) = HeaderValue::from_str(&place)
    {
        response.headers_mut().insert(LOCATION, place);
    }
    response
}

/// A generation as an entity tag.
pub(super) fn entity_tag(generation: &str) -> Option<HeaderValue> {
    HeaderValue::from_str(&format!("\"{generation}\"")).ok()
}
