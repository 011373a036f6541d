//! Goal: lists show what they are asked for, in pages that miss nothing and never loop.
//! Method: pages of every size over a known set; tokens used where they do not belong.
#![cfg(test)]

mod support;

use serde_json::{Value, json};
use support::{Harness, Receiver, Reply, TARGET, due, pending};

const TIMERS: &str = "/v1/partitions/tenant-7/timers";

async fn fill(harness: &Harness, ids: impl Iterator<Item = String>) {
    let timers: Vec<Value> = ids
        .enumerate()
        .map(|(index, id)| {
            let due_at = format!("2099-01-01T00:{:02}:{:02}Z", index / 60, index % 60);
            json!({"id": id, "due_at": due_at, "target": {"url": TARGET}})
        })
        .collect();
    let answer = harness
        .post(&format!("{TIMERS}:batch"), &json!({ "timers": timers }))
        .await;
    assert_eq!(answer.status, 200);
}

/// The values of a field over all pages, and how many pages there were.
async fn walk(harness: &Harness, path: &str, array: &str, field: &str) -> (Vec<String>, usize) {
    let mut values = Vec::new();
    let mut token = String::new();
    for page in 1..=1_000 {
        let joint = if path.contains('?') { '&' } else { '?' };
        let answer = harness
            .get(&format!("{path}{joint}page_token={token}"))
            .await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        let answer = answer.json();
        let rows = answer[array].as_array().unwrap();
        values.extend(
            rows.iter()
                .map(|row| row[field].as_str().unwrap().to_owned()),
        );
        match answer["next_page_token"].as_str() {
            Some(next) => token = next.to_owned(),
            None => return (values, page),
        }
    }
    panic!("{path} never ends");
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_of_every_size_hold_every_timer_once_in_order() {
    let harness = Harness::start().await;
    fill(&harness, (0..250).map(|index| format!("t{index:03}"))).await;
    let all: Vec<String> = (0..250).map(|index| format!("t{index:03}")).collect();
    for (query, pages) in [
        ("", 3),
        ("?page_size=1000", 1),
        ("?page_size=250", 1),
        ("?page_size=249", 2),
        ("?page_size=7", 36),
        ("?state=pending&page_size=90", 3),
        ("?prefix=t&page_size=125", 2),
        ("?due_before=2100-01-01T00:00:00Z&page_size=100", 3),
    ] {
        let (ids, found) = walk(&harness, &format!("{TIMERS}{query}"), "timers", "id").await;
        assert_eq!(ids, all, "{query}");
        assert_eq!(found, pages, "{query}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn filters_hold_alone_and_together() {
    let mut receiver = Receiver::start([Reply::status(410), Reply::status(500)]).await;
    let harness = Harness::start().await;
    fill(&harness, ["a1", "a2", "b1"].map(str::to_owned).into_iter()).await;
    for id in ["a-dead", "b-failed"] {
        harness
            .put(&format!("{TIMERS}/{id}"), &due(&receiver.url()))
            .await;
        receiver.next().await;
        harness
            .until(&format!("{TIMERS}/{id}"), |answer| {
                matches!(answer.json()["state"].as_str(), Some("dead" | "retrying"))
            })
            .await;
    }
    for (query, wanted) in [
        ("", &["a-dead", "a1", "a2", "b-failed", "b1"][..]),
        ("prefix=a", &["a-dead", "a1", "a2"]),
        ("prefix=a-", &["a-dead"]),
        ("prefix=c", &[]),
        ("state=pending", &["a1", "a2", "b1"]),
        ("state=dead", &["a-dead"]),
        ("state=retrying", &["b-failed"]),
        ("state=claimed", &[]),
        ("state=retrying,dead&prefix=a", &["a-dead"]),
        ("due_before=2099-01-01T00:00:01Z", &["b-failed", "a1"]),
        (
            "due_before=2099-01-01T00:00:02Z&state=pending",
            &["a1", "a2"],
        ),
        ("due_before=2099-01-01T00:00:02Z&prefix=a", &["a1", "a2"]),
    ] {
        let (ids, _) = walk(&harness, &format!("{TIMERS}?{query}"), "timers", "id").await;
        assert_eq!(ids, wanted, "{query}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_is_good_for_its_own_list_alone() {
    let harness = Harness::start().await;
    fill(&harness, (0..5).map(|index| format!("t{index}"))).await;
    let token = |answer: Value| answer["next_page_token"].as_str().unwrap().to_owned();
    let by_name = token(harness.get(&format!("{TIMERS}?page_size=2")).await.json());
    let by_state = token(
        harness
            .get(&format!("{TIMERS}?page_size=2&state=pending"))
            .await
            .json(),
    );
    harness
        .put("/v1/partitions/another/timers/x", &pending())
        .await;
    let partitions = token(harness.get("/v1/partitions?page_size=1").await.json());
    for path in [
        format!("{TIMERS}?page_token={by_state}"),
        format!("{TIMERS}?page_token={partitions}"),
        format!("{TIMERS}?page_token=%00"),
        format!("{TIMERS}?page_token=x"),
        format!("{TIMERS}?page_token={}", "A".repeat(9_000)),
        format!("{TIMERS}?state=pending&page_token={by_name}"),
        format!("{TIMERS}?state=dead&page_token={by_state}"),
        format!("{TIMERS}?prefix=t&page_token={by_name}"),
        format!("{TIMERS}?state=pending&due_before=2100-01-01T00:00:00Z&page_token={by_state}"),
        format!("/v1/partitions/another/timers?page_token={by_name}"),
        format!("/v1/partitions?page_token={by_name}"),
        format!("/v1/partitions/tenant-7/dead-letters?page_token={by_name}"),
    ] {
        harness
            .get(&path)
            .await
            .assert_problem(400, "invalid_page_token");
    }
    let bulk = format!("/v1/partitions/tenant-7/dead-letters:requeue?page_token={by_name}");
    harness
        .call("POST", &bulk)
        .await
        .assert_problem(400, "invalid_page_token");
    let resized = harness
        .get(&format!("{TIMERS}?page_size=1&page_token={by_name}"))
        .await;
    assert_eq!(
        resized.json()["timers"][0]["id"],
        "t2",
        "the size of a page may change"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn partitions_are_listed_in_pages() {
    let harness = Harness::start().await;
    let mut names: Vec<String> = (0..25).map(|index| format!("tenant-{index:02}")).collect();
    names.push("\u{1f570}".to_owned());
    for name in &names {
        let path = format!("/v1/partitions/{name}/timers/x");
        assert_eq!(harness.put(&path, &pending()).await.status, 201);
    }
    for size in [1, 7, 26, 1_000] {
        let path = format!("/v1/partitions?page_size={size}");
        let (mut listed, _) = walk(&harness, &path, "partitions", "partition").await;
        listed.sort();
        assert_eq!(listed, names, "{size}");
    }
}
