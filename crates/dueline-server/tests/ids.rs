//! Goal: ids and partitions of any script go through unharmed, and names that cannot be addressed
//! safely are refused with a clear text.
//! Method: paths encoded by hand, where a client would normalise them as raw bytes.
#![cfg(test)]

mod support;

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::json;
use support::{Harness, Receiver, due, pending};

fn encoded(text: &str) -> String {
    utf8_percent_encode(text, NON_ALPHANUMERIC).to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn names_of_any_script_go_through_unharmed() {
    let mut receiver = Receiver::start([]).await;
    let harness = Harness::start().await;
    let longest_partition = "\u{1f570}".repeat(64);
    for (partition, id) in [
        ("tenant-7", "\u{23f0}\u{1f9d1}\u{200d}\u{1f680}".to_owned()),
        (
            "\u{645}\u{648}\u{639}\u{62f}",
            "\u{5e9}\u{5dc}\u{5d5}\u{5dd}\u{200f}!".to_owned(),
        ),
        (longest_partition.as_str(), "\u{1f570}".repeat(128)),
        ("a b+c", "x".repeat(512)),
        ("100%", "%2F %41 %".to_owned()),
        ("a:b", "order:42:fire-now".to_owned()),
        (
            "<script>alert(1)</script>".split('/').next().unwrap(),
            "'\"<&>\\?#[]@!$&'()*+,;=".to_owned(),
        ),
        ("...", "...".to_owned()),
        ("timers", "timers".to_owned()),
    ] {
        let path = format!(
            "/v1/partitions/{}/timers/{}",
            encoded(partition),
            encoded(&id)
        );
        let created = harness.put(&path, &pending()).await;
        assert_eq!(created.status, 201, "{id}: {}", created.text);
        let timer = harness.get(&path).await.json();
        assert_eq!(
            (timer["partition"].as_str(), timer["id"].as_str()),
            (Some(partition), Some(&*id))
        );
        assert_eq!(harness.get(created.header("location")).await.json(), timer);
        let list = format!(
            "/v1/partitions/{}/timers?prefix={}",
            encoded(partition),
            encoded(&id)
        );
        assert_eq!(harness.get(&list).await.json()["timers"][0]["id"], *id);

        harness.put(&path, &due(&receiver.url())).await;
        let data = receiver.next().await.json()["data"].clone();
        assert_eq!(
            (data["partition"].as_str(), data["id"].as_str()),
            (Some(partition), Some(&*id))
        );
        harness.until_gone(&path).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_id_that_ends_like_a_verb_can_be_fired() {
    let harness = Harness::start().await;
    let timers = "/v1/partitions/tenant-7/timers";
    harness
        .put(&format!("{timers}/a:fire-now"), &pending())
        .await;
    let missing = harness.call("POST", &format!("{timers}/a:fire-now")).await;
    missing.assert_problem(404, "timer_not_found");
    let fired = harness
        .call("POST", &format!("{timers}/a%3Afire-now:fire-now"))
        .await;
    assert_eq!(fired.json()["id"], "a:fire-now");
    let fired = harness
        .call("POST", &format!("{timers}/a:fire-now:fire-now"))
        .await;
    assert_eq!(fired.json()["id"], "a:fire-now");
}

#[tokio::test(flavor = "multi_thread")]
async fn names_that_cannot_be_addressed_safely_are_refused() {
    let harness = Harness::start().await;
    let long_id = "x".repeat(513);
    let long_partition = "\u{e9}".repeat(129);
    let long_partition = encoded(&long_partition);
    for (partition, id, says) in [
        ("p", "a%2Fb", "must not contain \"/\""),
        ("p", "a%2fb", "must not contain \"/\""),
        ("p%2Fq", "a", "must not contain \"/\""),
        ("p", ".", "must not be \".\""),
        ("p", "..", "must not be \"..\""),
        ("p", "%2E%2e", "must not be \"..\""),
        ("..", "a", "must not be \"..\""),
        ("p", "a%00", "U+0000"),
        ("p", "a%0A", "U+000A"),
        ("p", "%7F", "U+007F"),
        ("p", "%C2%85", "U+0085"),
        ("p", "%ff", "UTF-8"),
        ("p", "%C3%28", "UTF-8"),
        ("p", "a%", "two hexadecimal digits"),
        ("p", "a%2", "two hexadecimal digits"),
        ("p", "a%zz", "two hexadecimal digits"),
        ("p", long_id.as_str(), "at most 512 bytes"),
        (long_partition.as_str(), "a", "at most 256 bytes"),
    ] {
        for method in ["GET", "DELETE"] {
            let answer = harness
                .raw(&format!(
                    "{method} /v1/partitions/{partition}/timers/{id} HTTP/1.1\r\n\
                     host: 127.0.0.1\r\nconnection: close\r\n\r\n"
                ))
                .await;
            assert!(
                answer.starts_with("HTTP/1.1 422 "),
                "{partition} {id}: {answer}"
            );
            let (_, body) = answer.split_once("\r\n\r\n").unwrap();
            let problem: serde_json::Value = serde_json::from_str(body).unwrap();
            assert_eq!(problem["code"], "invalid_name");
            let detail = problem["detail"].as_str().unwrap();
            assert!(detail.contains(says), "{partition} {id}: {detail}");
        }
    }
    let batch = json!({"timers": [
        {"id": "a/b", "delay": "1h", "target": {"url": support::TARGET}},
        {"id": "", "delay": "1h", "target": {"url": support::TARGET}},
        {"id": "fine", "delay": "1h", "target": {"url": support::TARGET}},
    ]});
    let results = harness
        .post("/v1/partitions/p/timers:batch", &batch)
        .await
        .json();
    let statuses: Vec<_> = results["results"]
        .as_array()
        .unwrap()
        .iter()
        .map(|r| &r["status"])
        .collect();
    assert_eq!(statuses, [422, 422, 201]);
    assert_eq!(
        results["results"][0]["error"]["errors"][0]["pointer"],
        "/timers/0/id"
    );
}
