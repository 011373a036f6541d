//! Goal: a request repeated with its `Idempotency-Key` is carried out once and answered alike, for a
//! day, and not a moment longer.
//! Method: a clock that the test moves; the rows of the store are counted.
#![cfg(test)]

mod support;

use std::sync::Arc;
use std::time::Duration;

use dueline_testkit::{ManualClock, test_runtime};
use serde_json::{Value, json};
use support::{Answer, Harness, Receiver, Reply, due, pending};
use tokio::task::JoinSet;

const TIMERS: &str = "/v1/partitions/tenant-7/timers";
const TIMER: &str = "/v1/partitions/tenant-7/timers/order-42";
const NOW_MS: i64 = 1_800_000_000_000;
const DAY: Duration = Duration::from_secs(24 * 3_600);

async fn keyed(harness: &Harness, method: &str, path: &str, body: &Value, key: &str) -> Answer {
    let request = harness
        .request(method, path)
        .header("idempotency-key", key)
        .json(body);
    harness.send(request).await
}

async fn rows(harness: &Harness) -> u64 {
    let stats = harness.get("/v1/stats?partition=tenant-7").await.json();
    stats["partition"]["rows"].as_u64().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repeated_post_is_one_timer_and_one_answer() {
    let harness = Harness::start().await;
    let mut body = pending();
    body["delay"] = json!("1h");
    body.as_object_mut().unwrap().remove("due_at");
    let first = keyed(&harness, "POST", TIMERS, &body, "k1").await;
    let again = keyed(&harness, "POST", TIMERS, &body, "k1").await;
    assert_eq!(first.status, 201);
    assert_eq!((again.status, &again.text), (first.status, &first.text));
    assert_eq!(again.header("location"), first.header("location"));
    assert_eq!(again.header("etag"), first.header("etag"));
    let other = keyed(&harness, "POST", TIMERS, &body, "k2").await;
    assert_ne!(other.json()["id"], first.json()["id"]);
    let listed = harness.get(TIMERS).await.json();
    assert_eq!(listed["timers"].as_array().map(Vec::len), Some(2));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_put_repeated_after_the_fire_creates_nothing() {
    let mut receiver = Receiver::start([]).await;
    let harness = Harness::start().await;
    let body = due(&receiver.url());
    let first = keyed(&harness, "PUT", TIMER, &body, "k1").await;
    assert_eq!(first.status, 201);
    receiver.next().await;
    harness.until_gone(TIMER).await;
    let again = keyed(&harness, "PUT", TIMER, &body, "k1").await;
    assert_eq!((again.status, &again.text), (first.status, &first.text));
    harness
        .get(TIMER)
        .await
        .assert_problem(404, "timer_not_found");
    assert!(receiver.is_silent());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_put_that_changed_nothing_is_remembered_too() {
    let harness = Harness::start().await;
    let created = harness.put(TIMER, &pending()).await;
    let first = keyed(&harness, "PUT", TIMER, &pending(), "k1").await;
    assert_eq!(first.status, 200);
    assert_eq!(first.header("etag"), created.header("etag"));
    harness.call("DELETE", TIMER).await;
    let again = keyed(&harness, "PUT", TIMER, &pending(), "k1").await;
    assert_eq!((again.status, &again.text), (first.status, &first.text));
    harness
        .get(TIMER)
        .await
        .assert_problem(404, "timer_not_found");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repeated_patch_and_a_repeated_fire_are_answered_alike() {
    let mut receiver = Receiver::start([]).await;
    let harness = Harness::start().await;
    let mut body = pending();
    body["target"]["url"] = json!(receiver.url());
    harness.put(TIMER, &body).await;
    let patch = json!({"payload": {"more": 1}});
    let patched = keyed(&harness, "PATCH", TIMER, &patch, "k1").await;
    assert_eq!(patched.json()["payload"], json!({"order": 42, "more": 1}));
    let fired = keyed(
        &harness,
        "POST",
        &format!("{TIMER}:fire-now"),
        &json!({}),
        "k2",
    )
    .await;
    assert_eq!(fired.status, 200);
    receiver.next().await;
    harness.until_gone(TIMER).await;
    let again = keyed(&harness, "PATCH", TIMER, &patch, "k1").await;
    assert_eq!((again.status, &again.text), (patched.status, &patched.text));
    let again = keyed(
        &harness,
        "POST",
        &format!("{TIMER}:fire-now"),
        &json!({}),
        "k2",
    )
    .await;
    assert_eq!((again.status, &again.text), (fired.status, &fired.text));
    assert!(receiver.is_silent());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_showed_a_failure_shows_it_again() {
    let mut receiver = Receiver::start([Reply::status(500).body("why")]).await;
    let harness = Harness::start().await;
    harness.put(TIMER, &due(&receiver.url())).await;
    receiver.next().await;
    harness
        .until(TIMER, |answer| answer.json()["state"] == "retrying")
        .await;
    let patch = json!({"payload": 1});
    let first = keyed(&harness, "PATCH", TIMER, &patch, "k1").await;
    assert_eq!(first.json()["state"], "retrying");
    assert_eq!(first.json()["attempt"], 1);
    assert!(first.text.contains("why"), "{}", first.text);
    let again = keyed(&harness, "PATCH", TIMER, &patch, "k1").await;
    assert_eq!((again.status, &again.text), (first.status, &first.text));
}

#[tokio::test(flavor = "multi_thread")]
async fn another_request_under_the_same_key_is_refused() {
    let harness = Harness::start().await;
    keyed(&harness, "PUT", TIMER, &pending(), "k1").await;
    let mut other = pending();
    other["payload"] = json!(2);
    for (method, path, body) in [
        ("PUT", TIMER, &other),
        ("PUT", "/v1/partitions/tenant-7/timers/other", &pending()),
        ("POST", TIMERS, &pending()),
        ("PATCH", TIMER, &json!({})),
        (
            "POST",
            "/v1/partitions/tenant-7/timers:batch",
            &json!({"timers": [pending()]}),
        ),
    ] {
        let refused = keyed(&harness, method, path, body, "k1").await;
        refused.assert_problem(422, "idempotency_key_reused");
    }
    let elsewhere = "/v1/partitions/tenant-8/timers/order-42";
    let created = keyed(&harness, "PUT", elsewhere, &other, "k1").await;
    assert_eq!(created.status, 201, "keys are each partition's own");
    for key in ["", "k\u{e9}", &"k".repeat(256)] {
        let refused = keyed(&harness, "PUT", TIMER, &pending(), key).await;
        refused.assert_problem(400, "bad_request");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_refused_is_not_remembered() {
    let harness = Harness::start().await;
    let patch = json!({"payload": 1});
    let refused = keyed(&harness, "PATCH", TIMER, &patch, "k1").await;
    refused.assert_problem(404, "timer_not_found");
    harness.put(TIMER, &pending()).await;
    assert_eq!(
        keyed(&harness, "PATCH", TIMER, &patch, "k1").await.status,
        200
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_at_once_one_is_carried_out() {
    let harness = Arc::new(Harness::start().await);
    let mut requests = JoinSet::new();
    for _ in 0..50 {
        let harness = Arc::clone(&harness);
        requests.spawn(async move { keyed(&harness, "POST", TIMERS, &pending(), "k1").await });
    }
    let answers = requests.join_all().await;
    let created: Vec<_> = answers
        .iter()
        .filter(|answer| answer.status == 201)
        .collect();
    assert!(!created.is_empty());
    assert!(created.iter().all(|answer| answer.text == created[0].text));
    for refused in answers.iter().filter(|answer| answer.status != 201) {
        refused.assert_problem(409, "idempotency_key_in_flight");
        assert_eq!(refused.header("retry-after"), "1");
    }
    let listed = harness.get(TIMERS).await.json();
    assert_eq!(listed["timers"].as_array().map(Vec::len), Some(1));
}

#[tokio::test(flavor = "multi_thread")]
async fn records_outlive_a_restart_and_are_taken_away_after_a_day() {
    let clock = ManualClock::new(NOW_MS);
    let runtime = test_runtime(&clock);
    let configured = runtime.clone();
    let harness = Harness::with(|config| config.runtime(configured)).await;
    let first = keyed(&harness, "PUT", TIMER, &pending(), "k1").await;
    // A timer and its name; a record and the timer of its end.
    assert_eq!(rows(&harness).await, 4);
    let folder = Arc::clone(&harness.folder);
    harness.server.shutdown().await;

    let harness = Harness::over(folder, |config| config.runtime(runtime)).await;
    clock.advance(DAY - Duration::from_millis(1));
    let again = keyed(&harness, "PUT", TIMER, &pending(), "k1").await;
    assert_eq!(again.status, first.status);
    clock.advance(Duration::from_millis(1));
    harness
        .until("/v1/stats?partition=tenant-7", |answer| {
            answer.json()["partition"]["rows"] == 2
        })
        .await;
    let after = keyed(&harness, "PUT", TIMER, &pending(), "k1").await;
    assert_eq!(
        after.status, 200,
        "the key is as new: the timer is there and as asked"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repeated_batch_is_answered_alike_and_goes_on_where_it_was() {
    let clock = ManualClock::new(NOW_MS);
    let runtime = test_runtime(&clock);
    let harness = Harness::with(|config| config.runtime(runtime)).await;
    let batch_path = "/v1/partitions/tenant-7/timers:batch";
    let timers: Vec<Value> = (0..120)
        .map(|index| {
            let mut timer = pending();
            if index % 2 == 0 {
                timer["id"] = json!(format!("t{index}"));
            }
            if index == 7 {
                timer["colour"] = json!("blue");
            }
            timer
        })
        .collect();
    let batch = json!({ "timers": timers });
    let first = keyed(&harness, "POST", batch_path, &batch, "k1").await;
    assert_eq!(first.status, 200);
    let again = keyed(&harness, "POST", batch_path, &batch, "k1").await;
    assert_eq!(again.text, first.text);
    let results = first.json()["results"].as_array().unwrap().clone();
    assert_eq!(
        results
            .iter()
            .filter(|result| result["status"] == 201)
            .count(),
        119
    );
    assert_eq!(results[7]["status"], 422);
    // 119 timers, their names and their records; one record of the batch and the timer of its end.
    assert_eq!(rows(&harness).await, 119 * 3 + 2);
    clock.advance(DAY);
    // More rows than one run takes away: it schedules itself again, so the clock has to go on.
    harness
        .until("/v1/stats?partition=tenant-7", |answer| {
            clock.advance_ms(1);
            answer.json()["partition"]["rows"] == 119 * 2
        })
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_is_cut_off_frees_its_key() {
    let harness = Arc::new(Harness::start().await);
    for turn in 0..20 {
        let mut cut = JoinSet::new();
        let sender = Arc::clone(&harness);
        cut.spawn(async move { keyed(&sender, "POST", TIMERS, &pending(), "k1").await });
        for _ in 0..turn {
            harness.get("/healthz").await;
        }
        cut.shutdown().await;
    }
    let answer = loop {
        let answer = keyed(&harness, "POST", TIMERS, &pending(), "k1").await;
        // The server may still be at work for a client that has gone.
        if answer.status != 409 {
            break answer;
        }
    };
    assert_eq!(answer.status, 201);
    let listed = harness.get(TIMERS).await.json();
    assert_eq!(listed["timers"].as_array().map(Vec::len), Some(1));
    assert_eq!(listed["timers"][0]["id"], answer.json()["id"]);
}
