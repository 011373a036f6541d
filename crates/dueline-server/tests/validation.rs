//! Goal: every request that cannot be carried out is refused with its own status, a problem that
//! says what to do, and a pointer to each thing that is wrong.
//! Method: tables of requests; raw bytes where no client would send them.
#![cfg(test)]

mod support;

use dueline_testkit::{ManualClock, test_runtime};
use serde_json::{Value, json};
use support::{Harness, LATER, TARGET, pending};

const TIMER: &str = "/v1/partitions/tenant-7/timers/order-42";

/// A pending timer with one field set.
fn with(field: &str, value: Value) -> Value {
    let mut timer = pending();
    timer[field] = value;
    timer
}

#[tokio::test(flavor = "multi_thread")]
async fn several_things_that_are_wrong_are_told_at_once() {
    let harness = Harness::start().await;
    let body = json!({
        "due_at": "tomorrow",
        "target": {"url": "ftp://example.com", "headers": {"Host": "x", "x y": "1", "n": 5}, "verb": "PUT"},
        "retry": {"attempts_max": 0, "initial": "-5s", "colour": "blue"},
        "deadline": "1h",
        "envelope": "paper",
        "a/b~c": 1,
    });
    let mut pointers = harness.put(TIMER, &body).await.pointers();
    pointers.sort();
    assert_eq!(
        pointers,
        [
            "/a~1b~0c",
            "/deadline",
            "/due_at",
            "/envelope",
            "/retry/attempts_max",
            "/retry/colour",
            "/retry/initial",
            "/target/headers/Host",
            "/target/headers/n",
            "/target/headers/x y",
            "/target/url",
            "/target/verb",
        ]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn each_field_is_refused_where_it_lies() {
    let harness = Harness::start().await;
    for (body, pointer) in [
        (json!({"target": {"url": TARGET}}), ""),
        (json!({"due_at": LATER}), "/target"),
        (json!({"due_at": LATER, "target": {}}), "/target/url"),
        (json!({"due_at": LATER, "target": "x"}), "/target"),
        (json!({"due_at": null, "target": {"url": TARGET}}), ""),
        (json!({"due_at": LATER, "target": null}), "/target"),
        (with("delay", json!("5s")), "/delay"),
        (with("due_at", json!(1_801_386_000)), "/due_at"),
        (with("due_at", json!("2027-02-30T00:00:00Z")), "/due_at"),
        (with("payload_base64", json!("AAAA")), "/payload_base64"),
        (
            json!({"delay": "soon", "target": {"url": TARGET}}),
            "/delay",
        ),
        (
            json!({"delay": "1 month", "target": {"url": TARGET}}),
            "/delay",
        ),
        (json!({"delay": "-1s", "target": {"url": TARGET}}), "/delay"),
        (
            json!({"delay": "5s", "target": {"url": TARGET}, "payload_base64": "A"}),
            "/payload_base64",
        ),
        (with("retry", json!([])), "/retry"),
        (
            with("retry", json!({"attempts_max": 65_536})),
            "/retry/attempts_max",
        ),
        (
            with("retry", json!({"attempts_max": 1.5})),
            "/retry/attempts_max",
        ),
        (with("retry", json!({"initial": "0s"})), "/retry/initial"),
        (
            with("retry", json!({"initial": "10s", "max": "5s"})),
            "/retry/max",
        ),
        (with("retry", json!({"max": "31d"})), "/retry/max"),
        (with("deadline", json!("0s")), "/deadline"),
        (with("deadline", json!(30)), "/deadline"),
        (with("id", json!("x")), "/id"),
        (json!([]), ""),
        (json!("timer"), ""),
    ] {
        let refused = harness.put(TIMER, &body).await;
        assert_eq!(refused.pointers(), [pointer], "{body}: {}", refused.text);
    }
    harness
        .get(TIMER)
        .await
        .assert_problem(404, "timer_not_found");
}

#[tokio::test(flavor = "multi_thread")]
async fn headers_that_a_target_may_not_have_are_refused() {
    let harness = Harness::start().await;
    let headers = |headers: Value| with("target", json!({"url": TARGET, "headers": headers}));
    for (body, pointer) in [
        (
            headers(json!({"webhook-id": "x"})),
            "/target/headers/webhook-id",
        ),
        (
            headers(json!({"Webhook-Signature": "x"})),
            "/target/headers/Webhook-Signature",
        ),
        (
            headers(json!({"Content-Length": "5"})),
            "/target/headers/Content-Length",
        ),
        (
            headers(json!({"transfer-encoding": "chunked"})),
            "/target/headers/transfer-encoding",
        ),
        (
            headers(json!({"connection": "close"})),
            "/target/headers/connection",
        ),
        (headers(json!({"a": "1", "A": "2"})), "/target/headers/a"),
        (headers(json!({"a": "line\r\nbreak"})), "/target/headers/a"),
        (headers(json!({"a": "\u{e9}"})), "/target/headers/a"),
        (headers(json!({"a": "x".repeat(16_385)})), "/target/headers"),
    ] {
        let refused = harness.put(TIMER, &body).await;
        assert_eq!(refused.pointers(), [pointer], "{body}: {}", refused.text);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_that_appears_twice_is_refused() {
    let harness = Harness::start().await;
    let body = r#"{"delay": "5s", "delay": "6s", "target": {"url": "https://a.example", "url": "https://b.example"}}"#;
    let request = harness
        .request("PUT", TIMER)
        .header("content-type", "application/json");
    let mut pointers = harness.send(request.body(body)).await.pointers();
    pointers.sort();
    assert_eq!(pointers, ["/delay", "/target/url"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_json_is_refused_with_its_position() {
    let harness = Harness::start().await;
    for (body, position) in [
        ("", "line 1 column 0"),
        ("{\"due_at\": }", "line 1 column 12"),
        ("{\n  \"due_at\": \"x\",\n", "line 3 column 0"),
        ("{} x", "line 1 column 4"),
        ("{\"a\": 01}", "line 1 column 8"),
    ] {
        let request = harness
            .request("PUT", TIMER)
            .header("content-type", "application/json");
        let problem = harness
            .send(request.body(body))
            .await
            .assert_problem(400, "malformed_json");
        assert!(
            problem["detail"].as_str().unwrap().contains(position),
            "{body}: {problem}"
        );
    }
    let request = harness
        .request("PUT", TIMER)
        .header("content-type", "application/json");
    let not_utf8 = request.body(&b"{\"a\": \"\xff\"}"[..]);
    harness
        .send(not_utf8)
        .await
        .assert_problem(400, "malformed_json");
}

#[tokio::test(flavor = "multi_thread")]
async fn deep_nesting_is_refused_and_harms_nobody() {
    let harness = Harness::start().await;
    for levels in [120, 200_000] {
        let nested = format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        let body =
            format!(r#"{{"delay": "5s", "target": {{"url": "{TARGET}"}}, "payload": {nested}}}"#);
        let request = harness
            .request("PUT", TIMER)
            .header("content-type", "application/json");
        assert_eq!(harness.send(request.body(body)).await.pointers(), [""]);
    }
    harness.put(TIMER, &pending()).await;
    let levels = 60_000;
    let body = format!("{}1{}", r#"{"payload":"#.repeat(levels), "}".repeat(levels));
    let request = harness
        .request("PATCH", TIMER)
        .header("content-type", "application/json");
    assert_eq!(harness.send(request.body(body)).await.pointers(), [""]);
    assert_eq!(harness.get("/healthz").await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn another_content_type_is_refused() {
    let harness = Harness::start().await;
    for content_type in [
        "text/plain",
        "application/x-www-form-urlencoded",
        "application/jsonx",
        "",
    ] {
        let request = harness
            .request("PUT", TIMER)
            .header("content-type", content_type);
        let refused = harness.send(request.body(pending().to_string())).await;
        refused.assert_problem(415, "unsupported_media_type");
    }
    let request = harness.request("PUT", TIMER).body(pending().to_string());
    harness
        .send(request)
        .await
        .assert_problem(415, "unsupported_media_type");
    for content_type in [
        "application/json; charset=utf-8",
        "Application/JSON",
        "application/merge-patch+json",
    ] {
        let request = harness
            .request("PUT", TIMER)
            .header("content-type", content_type);
        assert!(
            harness
                .send(request.body(pending().to_string()))
                .await
                .status
                .is_success()
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn sizes_are_limited() {
    let harness = Harness::start().await;
    let large = |bytes: usize| with("payload", json!("x".repeat(bytes)));
    let fits = harness.put(TIMER, &large(480 * 1_024 - 200)).await;
    assert_eq!(fits.status, 201);
    assert_eq!(harness.get(TIMER).await.text.len(), fits.text.len());
    let refused = harness.put(TIMER, &large(480 * 1_024)).await;
    assert_eq!(refused.pointers(), ["/payload"]);
    let refused = harness.put(TIMER, &large(1_024 * 1_024)).await;
    refused.assert_problem(413, "body_too_large");

    // A body without a length is cut off as it arrives.
    let body = pending().to_string();
    let request = format!(
        "PUT {TIMER} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n\
         transfer-encoding: chunked\r\nconnection: close\r\n\r\n{:x}\r\n{body}{}\r\n0\r\n\r\n",
        body.len() + 1_100_000,
        " ".repeat(1_100_000),
    );
    let answer = harness.raw(&request).await;
    assert!(answer.starts_with("HTTP/1.1 413 "), "{answer}");
}

/// On one thread, where all that is ready runs between two steps of the clock.
#[tokio::test]
async fn a_body_that_never_ends_is_cut_off() {
    let clock = ManualClock::new(1_800_000_000_000);
    let runtime = test_runtime(&clock);
    let harness = Harness::with(|config| config.runtime(runtime)).await;
    for (length, status, code) in [
        (50, 408, "body_too_slow"),
        (2_000_000, 413, "body_too_large"),
    ] {
        let request = format!(
            "PUT {TIMER} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n\
             content-length: {length}\r\nconnection: close\r\n\r\n{{"
        );
        let mut answer = std::pin::pin!(harness.raw(&request));
        let answer = loop {
            tokio::select! {
                biased;
                answer = &mut answer => break answer,
                () = tokio::task::yield_now() => clock.advance_ms(10),
            }
        };
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status} ")),
            "{answer}"
        );
        assert!(answer.contains(code), "{answer}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_paths_methods_verbs_and_parameters_are_problems() {
    let harness = Harness::start().await;
    for path in [
        "/v2",
        "/v1/partitions/p",
        "/v1/partitions/p/timers/",
        "/v1/partitions//x",
        "/v1/timers",
    ] {
        harness.get(path).await.assert_problem(404, "not_found");
    }
    harness
        .call("POST", &format!("{TIMER}:explode"))
        .await
        .assert_problem(404, "not_found");
    harness
        .call("POST", "/v1/partitions/p/dead-letters/00:explode")
        .await
        .assert_problem(404, "not_found");
    for (method, path, allowed) in [
        ("POST", TIMER, "DELETE, GET, HEAD, PATCH, PUT"),
        ("OPTIONS", TIMER, "DELETE, GET, HEAD, PATCH, PUT"),
        ("PUT", "/v1/partitions/p/timers", "GET, HEAD, POST"),
        ("GET", "/v1/partitions/p/timers:batch", "POST"),
        ("DELETE", "/v1/partitions/p/dead-letters", "GET, HEAD"),
        ("GET", "/v1/partitions/p/dead-letters:requeue", "POST"),
        ("GET", "/v1/partitions/p/dead-letters/00:requeue", "POST"),
        ("POST", "/v1/partitions", "GET, HEAD"),
        ("POST", "/v1/stats", "GET, HEAD"),
        ("POST", "/v1/limits", "GET, HEAD"),
        ("POST", "/healthz", "GET, HEAD"),
        ("POST", "/readyz", "GET, HEAD"),
    ] {
        let refused = harness.call(method, path).await;
        refused.assert_problem(405, "method_not_allowed");
        assert_eq!(refused.header("allow"), allowed, "{method} {path}");
    }
    for (path, pointer) in [
        (format!("{TIMER}?colour=1"), "?colour"),
        (
            "/v1/partitions/p/timers?page_size=0".to_owned(),
            "?page_size",
        ),
        (
            "/v1/partitions/p/timers?page_size=1001".to_owned(),
            "?page_size",
        ),
        ("/v1/partitions/p/timers?state=late".to_owned(), "?state"),
        (
            "/v1/partitions/p/timers?due_before=now".to_owned(),
            "?due_before",
        ),
        ("/v1/partitions/p/timers?prefix=a%00".to_owned(), "?prefix"),
        (
            "/v1/partitions/p/timers?state=dead&state=dead".to_owned(),
            "?state",
        ),
        ("/v1/limits?x=1".to_owned(), "?x"),
        ("/v1/stats?partition=..".to_owned(), "?partition"),
    ] {
        assert_eq!(harness.get(&path).await.pointers(), [pointer], "{path}");
    }
    let delete = harness.call("DELETE", &format!("{TIMER}?force=yes")).await;
    assert_eq!(delete.pointers(), ["?force"]);
    let fired = harness
        .post(&format!("{TIMER}:fire-now"), &json!({"at": 1}))
        .await;
    assert_eq!(fired.pointers(), ["/at"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_problem_says_what_to_do() {
    let harness = Harness::start().await;
    let missing = harness.get(TIMER).await;
    assert_eq!(
        missing.json(),
        json!({
            "type": "urn:dueline:problem:timer_not_found",
            "title": "There is no such timer",
            "status": 404,
            "detail": "nothing has this id now: it never was, has fired, or was cancelled",
            "code": "timer_not_found",
        })
    );
    let unknown = harness.put(TIMER, &with("colour", json!(1))).await;
    assert_eq!(
        unknown.json(),
        json!({
            "type": "urn:dueline:problem:invalid_request",
            "title": "The request cannot be carried out as it stands",
            "status": 422,
            "detail": "/colour: unknown field; known here: due_at, delay, payload, payload_base64, \
                       target, retry, deadline, envelope",
            "code": "invalid_request",
            "errors": [{
                "pointer": "/colour",
                "detail": "unknown field; known here: due_at, delay, payload, payload_base64, \
                           target, retry, deadline, envelope",
            }],
        })
    );
}
