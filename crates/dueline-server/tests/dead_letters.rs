//! Goal: what could not be delivered is listed, and lives again or goes for good, one by one and in
//! bulk.
//! Method: a receiver that answers 410, then accepts.
#![cfg(test)]

mod support;

use std::collections::BTreeMap;

use serde_json::{Value, json};
use support::{Harness, Receiver, Reply, due};

const TIMER: &str = "/v1/partitions/tenant-7/timers/order-42";
const DEAD: &str = "/v1/partitions/tenant-7/dead-letters";

/// Waits until this many dead letters are there.
async fn dead_letters(harness: &Harness, count: usize) -> Vec<Value> {
    let list = format!("{DEAD}?page_size=1000");
    let found = harness
        .until(&list, |answer| {
            answer.json()["dead_letters"].as_array().map(Vec::len) == Some(count)
        })
        .await;
    found.json()["dead_letters"].as_array().unwrap().clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_requeued_dead_letter_is_delivered_under_its_webhook_id() {
    let mut receiver = Receiver::start([Reply::status(410).body("closed")]).await;
    let harness = Harness::start().await;
    let created = harness.put(TIMER, &due(&receiver.url())).await.json();
    let first = receiver.next().await;
    let dead = dead_letters(&harness, 1).await.remove(0);
    assert_eq!(dead["id"], "order-42");
    assert_eq!(dead["partition"], "tenant-7");
    assert_eq!(dead["generation"], created["generation"]);
    assert_eq!(dead["payload"], json!({"order": 42}));
    assert_eq!(
        dead["last_error"]["detail"],
        "the receiver answered 410 Gone: closed"
    );

    let dead_id = dead["dead_id"].as_str().unwrap();
    let requeue = format!("{DEAD}/{dead_id}:requeue");
    let requeued = harness.call("POST", &requeue).await;
    assert_eq!(requeued.status, 200, "{}", requeued.text);
    assert_eq!(requeued.json()["generation"], created["generation"]);
    let second = receiver.next().await;
    assert_eq!(second.header("webhook-id"), first.header("webhook-id"));
    assert_eq!(second.json()["data"]["attempt"], 1, "attempts begin anew");
    harness.until_gone(TIMER).await;
    harness
        .call("POST", &requeue)
        .await
        .assert_problem(404, "dead_letter_not_found");
    assert_eq!(dead_letters(&harness, 0).await.len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_purged_dead_letter_is_gone_with_its_name() {
    let mut receiver = Receiver::start([Reply::status(410)]).await;
    let harness = Harness::start().await;
    harness.put(TIMER, &due(&receiver.url())).await;
    receiver.next().await;
    let dead = dead_letters(&harness, 1).await.remove(0);
    let purge = format!("{DEAD}/{}:purge", dead["dead_id"].as_str().unwrap());
    assert_eq!(harness.call("POST", &purge).await.status, 204);
    harness
        .call("POST", &purge)
        .await
        .assert_problem(404, "dead_letter_not_found");
    harness
        .get(TIMER)
        .await
        .assert_problem(404, "timer_not_found");
    for id in ["", "zz", "00", "%00", &"0".repeat(5_000)] {
        let refused = harness.call("POST", &format!("{DEAD}/{id}:purge")).await;
        refused.assert_problem(404, "dead_letter_not_found");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn dead_letters_are_listed_and_requeued_in_pages() {
    const COUNT: usize = 150;
    let mut receiver = Receiver::start(vec![Reply::status(410); COUNT]).await;
    let harness = Harness::start().await;
    let timers: Vec<Value> = (0..COUNT)
        .map(|index| {
            let mut timer = due(&receiver.url());
            timer["id"] = json!(format!("t{index}"));
            timer
        })
        .collect();
    let batch = json!({ "timers": timers });
    harness
        .post("/v1/partitions/tenant-7/timers:batch", &batch)
        .await;
    let mut ids = BTreeMap::new();
    for _ in 0..COUNT {
        let delivery = receiver.next().await;
        let id = delivery.json()["data"]["id"].as_str().unwrap().to_owned();
        ids.insert(id, delivery.header("webhook-id").to_owned());
    }
    dead_letters(&harness, COUNT).await;
    let page = harness.get(DEAD).await.json();
    assert_eq!(page["dead_letters"].as_array().map(Vec::len), Some(100));
    let token = page["next_page_token"].as_str().unwrap();
    let page = harness
        .get(&format!("{DEAD}?page_token={token}"))
        .await
        .json();
    assert_eq!(page["dead_letters"].as_array().map(Vec::len), Some(50));
    assert!(page.get("next_page_token").is_none());

    let page = harness
        .call("POST", &format!("{DEAD}:requeue?page_size=90"))
        .await
        .json();
    assert_eq!(
        (page["done"].as_u64(), page["left"].as_u64()),
        (Some(90), Some(0))
    );
    let token = page["next_page_token"].as_str().unwrap();
    let page = harness
        .call("POST", &format!("{DEAD}:requeue?page_token={token}"))
        .await
        .json();
    assert_eq!(page, json!({"done": 60, "left": 0}));
    for _ in 0..COUNT {
        let delivery = receiver.next().await;
        let id = delivery.json()["data"]["id"].as_str().unwrap().to_owned();
        assert_eq!(
            ids.remove(&id).as_deref(),
            Some(delivery.header("webhook-id"))
        );
    }
    dead_letters(&harness, 0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dead_timer_can_be_scheduled_fired_and_cancelled_by_its_id() {
    let mut receiver = Receiver::start([410, 410, 204].map(Reply::status)).await;
    let harness = Harness::start().await;
    let created = harness.put(TIMER, &due(&receiver.url())).await;
    receiver.next().await;
    dead_letters(&harness, 1).await;
    let refused = harness
        .call_json("PATCH", TIMER, &json!({"payload": 1}))
        .await;
    assert_eq!(refused.pointers(), [""], "a dead timer has no due");
    let fired = harness.call("POST", &format!("{TIMER}:fire-now")).await;
    assert_eq!(fired.json()["generation"], created.json()["generation"]);
    receiver.next().await;
    dead_letters(&harness, 1).await;
    let again = harness.put(TIMER, &due(&receiver.url())).await;
    assert_eq!(again.status, 201, "there was no live timer");
    receiver.next().await;
    harness.until_gone(TIMER).await;
    dead_letters(&harness, 0).await;
}
