//! Goal: one timer over HTTP does what the API says, for every status of its routes.
//! Method: a server on a real socket; timers that stay pending.
#![cfg(test)]

mod support;

use serde_json::json;
use support::{Harness, LATER, TARGET, pending};

const TIMER: &str = "/v1/partitions/tenant-7/timers/order-42";

#[tokio::test(flavor = "multi_thread")]
async fn a_timer_is_created_read_replaced_and_cancelled() {
    let harness = Harness::start().await;
    let created = harness.put(TIMER, &pending()).await;
    assert_eq!(created.status, 201);
    assert_eq!(created.header("location"), TIMER);
    let timer = created.json();
    assert_eq!(timer["id"], "order-42");
    assert_eq!(timer["partition"], "tenant-7");
    assert_eq!(timer["due_at"], "2099-01-01T00:00:00.000Z");
    assert_eq!(timer["state"], "pending");
    assert_eq!(timer["attempt"], 0);
    assert!(timer["last_error"].is_null());
    assert_eq!(timer["payload"], json!({"order": 42}));
    assert_eq!(timer["target"], json!({"url": TARGET, "headers": {}}));
    assert_eq!(
        timer["retry"],
        json!({"attempts_max": 20, "initial": "5s", "max": "10m"})
    );
    assert_eq!(timer["deadline"], "30s");
    assert_eq!(timer["envelope"], "event");
    let generation = timer["generation"].as_str().unwrap();
    assert_eq!(created.header("etag"), format!("\"{generation}\""));

    let read = harness.get(TIMER).await;
    assert_eq!(read.status, 200);
    assert_eq!(read.header("etag"), created.header("etag"));
    assert_eq!(read.json(), timer);

    let mut other = pending();
    other["payload"] = json!("other");
    let replaced = harness.put(TIMER, &other).await;
    assert_eq!(replaced.status, 200);
    assert!(replaced.headers.get("location").is_none());
    assert_ne!(replaced.header("etag"), created.header("etag"));
    assert_eq!(harness.get(TIMER).await.json()["payload"], "other");

    assert_eq!(harness.call("DELETE", TIMER).await.status, 204);
    harness
        .call("DELETE", TIMER)
        .await
        .assert_problem(404, "timer_not_found");
    harness
        .get(TIMER)
        .await
        .assert_problem(404, "timer_not_found");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_put_equal_to_the_pending_timer_changes_nothing() {
    let harness = Harness::start().await;
    let mut body =
        json!({ "delay": "30m", "payload": {"b": 1, "a": 2}, "target": {"url": TARGET} });
    let first = harness.put(TIMER, &body).await;
    let again = harness.put(TIMER, &body).await;
    assert_eq!((first.status.as_u16(), again.status.as_u16()), (201, 200));
    assert_eq!(again.header("etag"), first.header("etag"));
    assert_eq!(
        again.json()["due_at"],
        first.json()["due_at"],
        "the first acceptance counts"
    );
    let spaced = "{ \"target\": {\"url\": \"https://example.com/hook\"}, \"delay\": \"PT30M\",\n \
                  \"payload\": { \"a\": 2, \"b\": 1 } }";
    let request = harness
        .request("PUT", TIMER)
        .header("content-type", "application/json");
    let spaced = harness.send(request.body(spaced)).await;
    assert_eq!(
        spaced.header("etag"),
        first.header("etag"),
        "blanks do not count"
    );
    body["delay"] = json!("31m");
    let other = harness.put(TIMER, &body).await;
    assert_ne!(other.header("etag"), first.header("etag"));

    let at_a_time = harness.put(TIMER, &pending()).await;
    let mut a_second_later = pending();
    a_second_later["due_at"] = json!("2099-01-01T00:00:01Z");
    let moved = harness.put(TIMER, &a_second_later).await;
    assert_ne!(moved.header("etag"), at_a_time.header("etag"));
    assert_eq!(moved.json()["due_at"], "2099-01-01T00:00:01.000Z");
}

#[tokio::test(flavor = "multi_thread")]
async fn conditions_hold_or_end_in_412() {
    let harness = Harness::start().await;
    let put = |name: &'static str, value: String, body| {
        let request = harness
            .request("PUT", TIMER)
            .header(name, value)
            .json(&body);
        harness.send(request)
    };
    put("if-match", "*".to_owned(), pending())
        .await
        .assert_problem(412, "precondition_failed");
    put("if-match", "\"5\"".to_owned(), pending())
        .await
        .assert_problem(412, "precondition_failed");
    let created = put("if-none-match", "*".to_owned(), pending()).await;
    assert_eq!(created.status, 201);
    put("if-none-match", "*".to_owned(), pending())
        .await
        .assert_problem(412, "precondition_failed");

    let mut other = pending();
    other["payload"] = json!(1);
    let tag = created.header("etag").to_owned();
    put("if-match", format!("W/{tag}"), other.clone())
        .await
        .assert_problem(412, "precondition_failed");
    let replaced = put("if-match", format!("\"5\", {tag}"), other.clone()).await;
    assert_eq!(replaced.status, 200);
    put("if-match", tag.clone(), pending())
        .await
        .assert_problem(412, "precondition_failed");
    assert_eq!(put("if-match", "*".to_owned(), pending()).await.status, 200);
    put("if-match", "order".to_owned(), pending())
        .await
        .assert_problem(400, "bad_request");
    put("if-none-match", tag.clone(), pending())
        .await
        .assert_problem(400, "bad_request");

    let stale = harness.request("PATCH", TIMER).header("if-match", &tag);
    let stale = harness.send(stale.json(&json!({"payload": 2}))).await;
    stale.assert_problem(412, "precondition_failed");
    let stale = harness
        .send(harness.request("DELETE", TIMER).header("if-match", &tag))
        .await;
    stale.assert_problem(412, "precondition_failed");
    let current = harness.get(TIMER).await.header("etag").to_owned();
    let delete = harness.request("DELETE", TIMER).header("if-match", current);
    assert_eq!(harness.send(delete).await.status, 204);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_post_draws_an_id_and_says_where_the_timer_is() {
    let harness = Harness::start().await;
    let timers = "/v1/partitions/tenant-7/timers";
    let first = harness.post(timers, &pending()).await;
    let second = harness.post(timers, &pending()).await;
    assert_eq!((first.status.as_u16(), second.status.as_u16()), (201, 201));
    assert_ne!(first.json()["id"], second.json()["id"]);
    let place = first.header("location").to_owned();
    assert_eq!(harness.get(&place).await.json(), first.json());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_patch_changes_what_it_names_and_nothing_else() {
    let harness = Harness::start().await;
    let mut body = pending();
    body["payload"] = json!({"keep": 1, "change": {"a": 1, "b": 2}, "drop": true});
    body["target"]["headers"] = json!({"x-tenant": "42"});
    let created = harness.put(TIMER, &body).await;

    let patch = json!({
        "payload": {"change": {"b": 3}, "drop": null},
        "target": {"headers": {"x-more": "1"}},
        "retry": {"attempts_max": 3},
    });
    let patched = harness.call_json("PATCH", TIMER, &patch).await;
    assert_eq!(patched.status, 200);
    assert_ne!(patched.header("etag"), created.header("etag"));
    let timer = patched.json();
    assert_eq!(
        timer["payload"],
        json!({"keep": 1, "change": {"a": 1, "b": 3}})
    );
    assert_eq!(timer["target"]["url"], TARGET);
    assert_eq!(
        timer["target"]["headers"],
        json!({"x-tenant": "42", "x-more": "1"})
    );
    assert_eq!(
        timer["retry"],
        json!({"attempts_max": 3, "initial": "5s", "max": "10m"})
    );
    assert_eq!(timer["due_at"], created.json()["due_at"]);
    assert_eq!(harness.get(TIMER).await.json(), timer);

    let later = json!({"due_at": "2098-06-01T12:00:00+02:00"});
    let moved = harness.call_json("PATCH", TIMER, &later).await;
    assert_eq!(moved.json()["due_at"], "2098-06-01T10:00:00.000Z");
    let bytes = harness
        .call_json("PATCH", TIMER, &json!({"payload_base64": "AAH/"}))
        .await;
    assert_eq!(bytes.json()["payload_base64"], "AAH/");
    assert!(bytes.json().get("payload").is_none());

    let same = harness.call_json("PATCH", TIMER, &json!({})).await;
    assert_eq!(same.header("etag"), bytes.header("etag"));
    for (patch, pointer) in [
        (json!({"due_at": null}), "/due_at"),
        (json!({"target": null}), "/target"),
        (json!({"target": {"url": "ftp://x"}}), "/target/url"),
        (json!({"colour": 1}), "/colour"),
        (json!({"retry": {"max": "1s"}}), "/retry/max"),
    ] {
        let refused = harness.call_json("PATCH", TIMER, &patch).await;
        assert_eq!(refused.pointers(), [pointer], "{patch}");
    }
    let missing = "/v1/partitions/tenant-7/timers/none";
    let missing = harness
        .call_json("PATCH", missing, &json!({"payload": 1}))
        .await;
    missing.assert_problem(404, "timer_not_found");
}

#[tokio::test(flavor = "multi_thread")]
async fn numbers_and_the_order_of_fields_pass_through_unchanged() {
    let harness = Harness::start().await;
    let payload = r#"{"z":12345678901234567890123,"a":1.50e400,"m":[-0.0,"\u00e9\ud83d"]}"#;
    let body = format!(
        r#"{{"due_at": "{LATER}", "target": {{"url": "{TARGET}"}}, "payload": {payload}}}"#
    );
    let request = harness
        .request("PUT", TIMER)
        .header("content-type", "application/json");
    let created = harness.send(request.body(body)).await;
    assert_eq!(created.status, 201, "{}", created.text);
    assert!(harness.get(TIMER).await.text.contains(payload));
    let patch = harness
        .call_json("PATCH", TIMER, &json!({"payload": {"n": 1}}))
        .await;
    assert!(
        patch.text.contains(&payload.replace('}', ",\"n\":1}")),
        "{}",
        patch.text
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_found_by_firing_what_is_not_there() {
    let harness = Harness::start().await;
    let fired = harness.call("POST", &format!("{TIMER}:fire-now")).await;
    fired.assert_problem(404, "timer_not_found");
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_puts_of_one_id_leave_one_timer() {
    let harness = std::sync::Arc::new(Harness::start().await);
    let mut puts = tokio::task::JoinSet::new();
    for turn in 0..50 {
        let harness = std::sync::Arc::clone(&harness);
        puts.spawn(async move {
            let mut body = pending();
            body["payload"] = json!(turn);
            harness.put(TIMER, &body).await
        });
    }
    let answers = puts.join_all().await;
    let created = answers.iter().filter(|answer| answer.status == 201).count();
    // Nobody asked for a condition, so nobody is told of a conflict: the last one stands.
    for answer in &answers {
        assert!(answer.status.is_success(), "{answer:?}");
    }
    assert_eq!(created, 1);
    let timers = harness.get("/v1/partitions/tenant-7/timers").await.json();
    assert_eq!(timers["timers"].as_array().map(Vec::len), Some(1));
}
