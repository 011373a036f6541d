use std::collections::BTreeMap;

use bytes::Bytes;
use dueline_server::fuzzing::Delivery;
use http::header::{CONTENT_TYPE, ETAG};
use http::{Response, StatusCode};
use serde_json::Value;
use serde_json::value::RawValue;

pub(super) fn json(answer: &Response<Bytes>, written: &str) -> Value {
    let read: Result<&RawValue, _> = serde_json::from_slice(answer.body());
    match read {
        Ok(raw) => value(raw),
        Err(error) => panic!("{error} in {:?}, the answer to {written:?}", answer.body()),
    }
}

/// A JSON text as a value. What JSON can say and a value cannot hold (`1e400`, half a surrogate pair) is
/// the text that it is written in: payloads are kept as they were written.
fn value(raw: &RawValue) -> Value {
    let text = raw.get();
    if let Ok(value) = serde_json::from_str(text) {
        value
    } else if let Ok(members) = serde_json::from_str::<BTreeMap<String, &RawValue>>(text) {
        members
            .into_iter()
            .map(|(name, raw)| (name, value(raw)))
            .collect()
    } else if let Ok(elements) = serde_json::from_str::<Vec<&RawValue>>(text) {
        elements.into_iter().map(value).collect()
    } else {
        Value::String(text.to_owned())
    }
}

/// Every answer is sound, whether or not it is to have a body; the code of a problem.
pub(super) fn answer_is_sound(
    answer: &Response<Bytes>,
    has_body: bool,
    written: &str,
) -> Option<String> {
    let status = answer.status();
    assert!(
        !status.is_server_error(),
        "{status}: {:?}, the answer to {written:?}",
        answer.body()
    );
    if answer.body().is_empty() {
        let is_enough = status.is_success() || !has_body;
        assert!(is_enough, "{status} and no word to {written:?}");
        return None;
    }
    let content_type = answer.headers().get(CONTENT_TYPE);
    let content_type = content_type.and_then(|value| value.to_str().ok());
    let content_type = content_type.unwrap_or_default();
    if status.is_success() {
        if content_type.starts_with("application/json") {
            json(answer, written);
        }
        return None;
    }
    assert_eq!(content_type, "application/problem+json", "{written:?}");
    let problem = json(answer, written);
    assert_eq!(problem["status"], status.as_u16(), "{written:?}");
    for field in ["type", "title", "detail", "code"] {
        let text = problem[field].as_str().unwrap_or_default();
        assert!(!text.is_empty(), "no {field}: {problem}, for {written:?}");
    }
    problem["code"].as_str().map(str::to_owned)
}

/// Reads the timer of an answer. An idempotency key may bring back the answer of a request whose timer
/// has been changed since, so what is found may be newer.
pub(super) fn found_is_what_was_made(
    found: &Response<Bytes>,
    answer: &Response<Bytes>,
    written: &str,
) {
    let made = json(answer, written);
    let is_repeat = written.to_ascii_lowercase().contains("idempotency-key");
    if is_repeat && found.status() == StatusCode::NOT_FOUND {
        return;
    }
    assert_eq!(found.status(), StatusCode::OK, "made by {written:?}");
    let shown = json(found, written);
    let name = |timer: &Value| (timer["id"].clone(), timer["partition"].clone());
    assert_eq!(name(&shown), name(&made));
    if !is_repeat {
        assert_eq!(shown, made, "made by {written:?}");
        assert_eq!(found.headers().get(ETAG), answer.headers().get(ETAG));
    }
}

/// What was sent is what it says it is, and nothing was accepted twice.
pub(super) fn deliveries_are_sound(deliveries: &[Delivery]) {
    for (place, delivery) in deliveries.iter().enumerate() {
        if delivery.content_type == "application/json" {
            let body: Result<&RawValue, _> = serde_json::from_slice(&delivery.body);
            assert!(body.is_ok(), "not JSON: {delivery:?}");
        }
        let again = deliveries
            .iter()
            .skip(place + 1)
            .find(|later| delivery.is_accepted && later.message_id == delivery.message_id);
        assert!(again.is_none(), "sent although accepted: {again:?}");
    }
}
