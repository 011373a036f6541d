//! Servers that answer wrongly.

use bytes::Bytes;
use dueline_fuzz::{Answering, http_requests_answered};
use dueline_server::fuzzing::Api;
use http::header::{CONTENT_TYPE, ETAG, HeaderValue};
use http::{Method, Request, Response, StatusCode};
use serde_json::Value;

const INPUTS_MAX: usize = 3_000;

type Answer = Option<Response<Bytes>>;

/// The answer with its JSON changed.
fn changed(answer: Answer, change: impl Fn(&mut Value)) -> Answer {
    let (parts, body) = answer?.into_parts();
    let body = match serde_json::from_slice(&body) {
        Ok(mut value) => {
            change(&mut value);
            Bytes::from(value.to_string())
        }
        Err(_) => body,
    };
    Some(Response::from_parts(parts, body))
}

fn is(request: &Request<Vec<u8>>, method: &Method, path_end: &str) -> bool {
    request.method() == method && request.uri().path().ends_with(path_end)
}

fn fails_for_an_encoded_name(api: &Api, request: Request<Vec<u8>>) -> Answer {
    let is_encoded = request.uri().path().contains("%E2");
    let mut answer = api.answer(request)?;
    if is_encoded {
        *answer.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
    }
    Some(answer)
}

fn panics_for_a_deep_payload(api: &Api, request: Request<Vec<u8>>) -> Answer {
    let is_deep = request.body().windows(4).any(|bytes| bytes == b"[[[[");
    assert!(!is_deep, "a parser that has no room left");
    api.answer(request)
}

fn refuses_in_plain_text(api: &Api, request: Request<Vec<u8>>) -> Answer {
    let mut answer = api.answer(request)?;
    if answer.status() == StatusCode::UNSUPPORTED_MEDIA_TYPE {
        let plain = HeaderValue::from_static("text/plain");
        answer.headers_mut().insert(CONTENT_TYPE, plain);
    }
    Some(answer)
}

fn refuses_without_a_code(api: &Api, request: Request<Vec<u8>>) -> Answer {
    changed(api.answer(request), |value| {
        if value["status"] == 412 {
            value["code"] = Value::Null;
        }
    })
}

/// Answers a conditional creation, and does not do it.
fn forgets_what_was_made(api: &Api, request: Request<Vec<u8>>) -> Answer {
    let is_conditional = request.headers().contains_key("if-none-match");
    let uri = request.uri().clone();
    let answer = api.answer(request)?;
    if is_conditional && answer.status().is_success() {
        let mut undo = Request::new(Vec::new());
        (*undo.method_mut(), *undo.uri_mut()) = (Method::DELETE, uri);
        api.answer(undo)?;
    }
    Some(answer)
}

fn tags_what_was_before(api: &Api, request: Request<Vec<u8>>) -> Answer {
    let is_change = request.method() == Method::PATCH;
    let mut answer = api.answer(request)?;
    if is_change && answer.headers().contains_key(ETAG) {
        let before = HeaderValue::from_static("\"1\"");
        answer.headers_mut().insert(ETAG, before);
    }
    Some(answer)
}

/// Loses the last timer of every page but the last.
fn loses_a_timer_between_pages(api: &Api, request: Request<Vec<u8>>) -> Answer {
    let is_list = is(&request, &Method::GET, "/timers");
    changed(api.answer(request), |value| {
        if is_list && value["next_page_token"].is_string() {
            let _lost = value["timers"].as_array_mut().and_then(Vec::pop);
        }
    })
}

fn lists_a_claim_as_pending(api: &Api, request: Request<Vec<u8>>) -> Answer {
    let is_list = is(&request, &Method::GET, "/timers");
    changed(api.answer(request), |value| {
        for timer in value["timers"].as_array_mut().into_iter().flatten() {
            if is_list && timer["state"] == "claimed" {
                timer["state"] = "pending".into();
            }
        }
    })
}

#[test]
fn a_server_that_answers_wrongly_is_found() {
    let faults: [(&str, Answering); 9] = [
        ("a request fails for its name", fails_for_an_encoded_name),
        ("a parser panics", panics_for_a_deep_payload),
        ("a refusal is plain text", refuses_in_plain_text),
        ("a refusal has no code", refuses_without_a_code),
        ("a timer is answered, not made", forgets_what_was_made),
        (
            "an answer has the tag of what was before",
            tags_what_was_before,
        ),
        (
            "a timer is lost between two pages",
            loses_a_timer_between_pages,
        ),
        ("a list shows another state", lists_a_claim_as_pending),
        ("an answer never ends", |api, request| {
            let is_requeue = request.uri().path().ends_with(":requeue");
            api.answer(request)
                .filter(|answer| !is_requeue || !answer.status().is_success())
        }),
    ];
    for (fault, answering) in faults {
        super::is_found(fault, "http_requests", INPUTS_MAX, |input| {
            let _reached = http_requests_answered(input, answering);
        });
    }
}
