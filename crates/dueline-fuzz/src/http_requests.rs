use std::sync::Arc;

use bytes::Bytes;
use dueline::memory::MemoryStore;
use dueline::store::NamespaceStore;
use dueline::timers::Timers;
use dueline_server::fuzzing::Api;
use dueline_testkit::{ManualClock, block_on, test_runtime};
use http::header::{CONTENT_TYPE, ETAG, HOST, HeaderName, HeaderValue, LOCATION};
use http::{Method, Request, Response, StatusCode, Uri};
use serde_json::Value;

/// 2027-01-31T09:00:00Z.
const NOW_MS: i64 = 1_801_386_000_000;
const REQUESTS_MAX: usize = 12;
/// What stands between two requests.
const BETWEEN: &str = "\n---\n";

/// Requests to one server, as they are written down: a line of method and path, lines of headers, an
/// empty line, a body; `---` between two. Each is answered by something sound, and never by a fault of
/// the server's own; a timer that was made is found where the answer says, as the answer shows it.
///
/// # Panics
/// If one is not.
pub fn http_requests(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let clock = ManualClock::new(NOW_MS);
    let store = Arc::new(MemoryStore::new(Arc::new(clock.clone())));
    let verbs = Arc::clone(&store) as Arc<dyn NamespaceStore>;
    let api = Api::new(Timers::new(verbs, test_runtime(&clock)), store);
    for written in text.split(BETWEEN).take(REQUESTS_MAX) {
        let Some(request) = read(written) else {
            continue;
        };
        let made = makes_a_timer(request.method());
        let answer = answer_to(&api, request, written);
        check(&answer, written);
        if made && answer.status().is_success() && answer.headers().contains_key(ETAG) {
            finds_what_was_made(&api, &answer, written);
        }
        clock.advance_ms(1);
    }
}

fn answer_to(api: &Api, request: Request<Vec<u8>>, written: &str) -> Response<Bytes> {
    let answer = block_on(api.answer(request));
    answer.unwrap_or_else(|| panic!("an answer without an end: {written:?}"))
}

fn makes_a_timer(method: &Method) -> bool {
    [Method::PUT, Method::PATCH, Method::POST].contains(method)
}

/// Reads a request; `None` for one that no HTTP parser would let through.
fn read(written: &str) -> Option<Request<Vec<u8>>> {
    let (head, body) = written.split_once("\n\n").unwrap_or((written, ""));
    let mut lines = head.lines();
    let (method, target) = lines.next()?.split_once(' ')?;
    let uri: Uri = target.parse().ok()?;
    let mut request = Request::new(body.as_bytes().to_vec());
    *request.method_mut() = Method::from_bytes(method.as_bytes()).ok()?;
    *request.uri_mut() = uri;
    let headers = request.headers_mut();
    headers.insert(HOST, HeaderValue::from_static("localhost"));
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    for line in lines {
        let (name, value) = line.split_once(':')?;
        let name = HeaderName::from_bytes(name.as_bytes()).ok()?;
        let value = HeaderValue::from_bytes(value.trim().as_bytes()).ok()?;
        if name == CONTENT_TYPE || name == HOST {
            headers.insert(name, value);
        } else {
            headers.append(name, value);
        }
    }
    Some(request)
}

fn json(answer: &Response<Bytes>, written: &str) -> Value {
    serde_json::from_slice(answer.body())
        .unwrap_or_else(|error| panic!("{error} in {:?}, the answer to {written:?}", answer.body()))
}

fn check(answer: &Response<Bytes>, written: &str) {
    let status = answer.status();
    assert!(
        !status.is_server_error(),
        "{status}: {:?}, the answer to {written:?}",
        answer.body()
    );
    if answer.body().is_empty() {
        return;
    }
    let content_type = answer.headers().get(CONTENT_TYPE);
    let content_type = content_type.and_then(|value| value.to_str().ok());
    let content_type = content_type.unwrap_or_default();
    if !status.is_success() {
        assert_eq!(content_type, "application/problem+json", "{written:?}");
        let problem = json(answer, written);
        assert_eq!(problem["status"], status.as_u16(), "{written:?}");
        for field in ["type", "title", "detail", "code"] {
            let text = problem[field].as_str().unwrap_or_default();
            assert!(!text.is_empty(), "no {field}: {problem}, for {written:?}");
        }
    } else if content_type.starts_with("application/json") {
        json(answer, written);
    }
}

/// Reads the timer of an answer. An idempotency key may bring back the answer of a request whose timer
/// has been changed since, so what is found may be newer.
fn finds_what_was_made(api: &Api, answer: &Response<Bytes>, written: &str) {
    let made = json(answer, written);
    let uri = match answer.headers().get(LOCATION) {
        Some(location) => location.to_str().unwrap().parse::<Uri>().unwrap(),
        None => return,
    };
    let mut request = Request::new(Vec::new());
    *request.uri_mut() = uri;
    let found = answer_to(api, request, written);
    let is_repeat = written.to_ascii_lowercase().contains("idempotency-key");
    if is_repeat && found.status() == StatusCode::NOT_FOUND {
        return;
    }
    assert_eq!(found.status(), StatusCode::OK, "made by {written:?}");
    let shown = json(&found, written);
    assert_eq!(
        (&shown["id"], &shown["partition"]),
        (&made["id"], &made["partition"])
    );
    if !is_repeat {
        assert_eq!(shown, made, "made by {written:?}");
        assert_eq!(found.headers().get(ETAG), answer.headers().get(ETAG));
    }
}
