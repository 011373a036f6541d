//! Goal: a batch of up to a thousand timers is scheduled in one request, each with its own result.
//! Method: batches of 1 to 1,001; a receiver that counts what arrives.
#![cfg(test)]

mod support;

use std::collections::BTreeSet;

use serde_json::{Value, json};
use support::{Harness, Receiver, due, pending};

const BATCH: &str = "/v1/partitions/tenant-7/timers:batch";

fn batch(timers: &[Value]) -> Value {
    json!({ "timers": timers })
}

fn with_id(mut timer: Value, id: &str) -> Value {
    timer["id"] = json!(id);
    timer
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_timers_are_scheduled_and_each_delivered_once() {
    let mut receiver = Receiver::start([]).await;
    let harness = Harness::start().await;
    let timers: Vec<Value> = (0..1_000)
        .map(|index| with_id(due(&receiver.url()), &format!("t{index}")))
        .collect();
    let answer = harness.post(BATCH, &batch(&timers)).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    let results = answer.json()["results"].as_array().unwrap().clone();
    assert_eq!(results.len(), 1_000);
    for (index, result) in results.iter().enumerate() {
        assert_eq!(result["status"], 201);
        assert_eq!(result["timer"]["id"], format!("t{index}"));
    }
    let mut ids = BTreeSet::new();
    let mut messages = BTreeSet::new();
    for _ in 0..1_000 {
        let delivery = receiver.next().await;
        ids.insert(delivery.json()["data"]["id"].as_str().unwrap().to_owned());
        messages.insert(delivery.header("webhook-id").to_owned());
    }
    assert_eq!((ids.len(), messages.len()), (1_000, 1_000));
    let partition = "/v1/stats?partition=tenant-7";
    harness
        .until(partition, |answer| {
            answer.json()["partition"]["timers"]["count"] == 0
        })
        .await;
    assert!(receiver.is_silent());
}

#[tokio::test(flavor = "multi_thread")]
async fn each_timer_has_its_own_result_in_its_place() {
    let harness = Harness::start().await;
    harness
        .put("/v1/partitions/tenant-7/timers/there", &pending())
        .await;
    let mut other = pending();
    other["payload"] = json!("other");
    let mut wrong = pending();
    wrong["colour"] = json!(1);
    let mut large = pending();
    large["payload"] = json!("x".repeat(480 * 1_024));
    let answer = harness
        .post(
            BATCH,
            &batch(&[
                with_id(pending(), "new"),
                with_id(other, "there"),
                wrong,
                pending(),
                with_id(pending(), "new"),
                large,
                json!({"id": "bare"}),
            ]),
        )
        .await;
    let results = answer.json()["results"].as_array().unwrap().clone();
    let statuses: Vec<_> = results
        .iter()
        .map(|result| result["status"].as_u64().unwrap())
        .collect();
    assert_eq!(statuses, [201, 200, 422, 201, 422, 422, 422]);
    assert_eq!(
        results[2]["error"]["errors"][0]["pointer"],
        "/timers/2/colour"
    );
    assert_eq!(results[2]["error"]["code"], "invalid_request");
    assert_eq!(results[4]["error"]["errors"][0]["pointer"], "/timers/4/id");
    assert_eq!(
        results[5]["error"]["errors"][0]["pointer"],
        "/timers/5/payload"
    );
    let bare: Vec<_> = results[6]["error"]["errors"]
        .as_array()
        .unwrap()
        .iter()
        .collect();
    assert_eq!(bare.len(), 2);
    assert!(
        results[3]["timer"]["id"]
            .as_str()
            .is_some_and(|id| id.len() == 32)
    );
    let listed = harness.get("/v1/partitions/tenant-7/timers").await.json();
    assert_eq!(listed["timers"].as_array().map(Vec::len), Some(3));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_that_is_none_is_refused_as_a_whole() {
    let harness = Harness::start().await;
    let too_many = vec![pending(); 1_001];
    for (body, pointer) in [
        (json!({}), "/timers"),
        (json!({"timers": []}), "/timers"),
        (json!({"timers": {}}), "/timers"),
        (json!({"timers": [1]}), "/timers"),
        (batch(&too_many), "/timers"),
        (json!({"timers": [pending()], "dry": true}), "/dry"),
    ] {
        assert_eq!(harness.post(BATCH, &body).await.pointers(), [pointer]);
    }
    let listed = harness.get("/v1/partitions/tenant-7/timers").await.json();
    assert_eq!(listed, json!({"timers": []}));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_may_be_larger_than_a_single_timer() {
    let harness = Harness::start().await;
    let mut timer = pending();
    timer["payload"] = json!("x".repeat(400 * 1_024));
    let answer = harness.post(BATCH, &batch(&vec![timer.clone(); 8])).await;
    let results = answer.json()["results"].as_array().unwrap().clone();
    assert!(results.iter().all(|result| result["status"] == 201));
    let answer = harness.post(BATCH, &batch(&vec![timer; 42])).await;
    answer.assert_problem(413, "body_too_large");
}
