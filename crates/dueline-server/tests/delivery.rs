//! Goal: a due timer reaches its receiver as the API says, and what the receiver answers decides
//! what becomes of it.
//! Method: a real server and a real receiver on loopback; retries within milliseconds.
#![cfg(test)]
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test helper fails the test"
)]

mod support;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, Mac};
use serde_json::{Value, json};
use sha2::Sha256;
use support::{Delivery, Harness, Receiver, Reply, due, due_quickly_retried, pending};

const TIMER: &str = "/v1/partitions/tenant-7/timers/order-42";
const DEAD: &str = "/v1/partitions/tenant-7/dead-letters";

/// The signature that a receiver works out by itself.
fn expected_signature(secret: &str, delivery: &Delivery) -> String {
    let key = STANDARD
        .decode(secret.strip_prefix("whsec_").unwrap())
        .unwrap();
    let mut signed = format!(
        "{}.{}.",
        delivery.header("webhook-id"),
        delivery.header("webhook-timestamp")
    )
    .into_bytes();
    signed.extend_from_slice(&delivery.body);
    let mut mac = <Hmac<Sha256> as Mac>::new_from_slice(&key).unwrap();
    mac.update(&signed);
    format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()))
}

async fn the_dead_letter(harness: &Harness) -> Value {
    let found = harness
        .until(DEAD, |answer| answer.json()["dead_letters"] != json!([]))
        .await;
    found.json()["dead_letters"][0].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_due_timer_is_delivered_signed_and_gone() {
    let mut receiver = Receiver::start([]).await;
    let harness = Harness::start().await;
    let mut timer = due(&receiver.url());
    timer["target"]["headers"] = json!({"X-Tenant": "42", "authorization": "Bearer t"});
    assert_eq!(harness.put(TIMER, &timer).await.status, 201);

    let delivery = receiver.next().await;
    assert_eq!(delivery.path, "/hook");
    assert_eq!(
        delivery.json(),
        json!({
            "type": "timer.fired",
            "timestamp": "2020-01-01T00:00:00.000Z",
            "data": {
                "partition": "tenant-7",
                "id": "order-42",
                "due_at": "2020-01-01T00:00:00.000Z",
                "attempt": 1,
                "payload": {"order": 42},
            },
        })
    );
    assert_eq!(delivery.header("content-type"), "application/json");
    assert_eq!(delivery.header("x-tenant"), "42");
    assert_eq!(delivery.header("authorization"), "Bearer t");
    let agent = format!("dueline/{}", env!("CARGO_PKG_VERSION"));
    assert_eq!(delivery.header("user-agent"), agent);
    assert!(delivery.header("webhook-id").starts_with("msg_"));
    let signature = expected_signature(&harness.server.secrets().current(), &delivery);
    assert_eq!(delivery.header("webhook-signature"), signature);

    harness.until_gone(TIMER).await;
    let partitions = harness.get("/v1/stats?partition=tenant-7").await.json();
    assert_eq!(
        partitions["partition"]["timers"],
        json!({"count": 0, "more": false})
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn during_a_rotation_both_secrets_sign() {
    let mut receiver = Receiver::start([]).await;
    let harness = Harness::start().await;
    let secrets = harness.server.secrets();
    let old = secrets.current();
    let far_ms = 4_000_000_000_000;
    secrets.rotate(0, far_ms).unwrap();
    harness.put(TIMER, &due(&receiver.url())).await;
    let delivery = receiver.next().await;
    let signatures = [&secrets.current(), &old].map(|secret| expected_signature(secret, &delivery));
    assert_eq!(delivery.header("webhook-signature"), signatures.join(" "));
}

#[tokio::test(flavor = "multi_thread")]
async fn raw_envelopes_and_bytes_are_delivered_as_they_are() {
    let mut receiver = Receiver::start([]).await;
    let harness = Harness::start().await;
    let mut timer = due(&receiver.url());
    timer["envelope"] = json!("raw");
    harness.put(TIMER, &timer).await;
    let delivery = receiver.next().await;
    assert_eq!(delivery.body.as_ref(), br#"{"order":42}"#);
    assert_eq!(delivery.header("content-type"), "application/json");

    timer.as_object_mut().unwrap().remove("payload");
    timer["payload_base64"] = json!("AAH/");
    harness.put(TIMER, &timer).await;
    let delivery = receiver.next().await;
    assert_eq!(delivery.body.as_ref(), &[0, 1, 255]);
    assert_eq!(delivery.header("content-type"), "application/octet-stream");

    timer["envelope"] = json!("event");
    timer["target"]["headers"] = json!({"content-type": "application/vnd.mine+json"});
    harness.put(TIMER, &timer).await;
    let delivery = receiver.next().await;
    assert_eq!(delivery.json()["data"]["payload_base64"], "AAH/");
    assert_eq!(delivery.header("content-type"), "application/vnd.mine+json");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_attempt_has_the_same_webhook_id_and_a_new_scheduling_another() {
    let replies = [500, 302, 404].map(Reply::status);
    let mut receiver = Receiver::start(replies).await;
    let harness = Harness::start().await;
    harness
        .put(TIMER, &due_quickly_retried(&receiver.url()))
        .await;
    let first = receiver.next().await;
    for attempt in 2..=4 {
        let again = receiver.next().await;
        assert_eq!(again.header("webhook-id"), first.header("webhook-id"));
        assert_eq!(again.json()["data"]["attempt"], attempt);
        let signature = expected_signature(&harness.server.secrets().current(), &again);
        assert_eq!(again.header("webhook-signature"), signature);
    }
    harness.until_gone(TIMER).await;
    harness.put(TIMER, &due(&receiver.url())).await;
    let other = receiver.next().await;
    assert_ne!(other.header("webhook-id"), first.header("webhook-id"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_timer_shows_why_and_when_it_is_tried_again() {
    let reply = Reply::status(500).body("no such\ntenant");
    let mut receiver = Receiver::start([reply]).await;
    let harness = Harness::start().await;
    harness.put(TIMER, &due(&receiver.url())).await;
    receiver.next().await;
    let timer = harness
        .until(TIMER, |answer| answer.json()["state"] == "retrying")
        .await
        .json();
    assert_eq!(timer["attempt"], 1);
    assert_eq!(timer["due_at"], "2020-01-01T00:00:00.000Z");
    assert_eq!(
        timer["last_error"]["detail"],
        "the receiver answered 500 Internal Server Error: no such tenant"
    );
    assert!(timer["last_error"]["at"].as_str() < timer["next_attempt_at"].as_str());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redirect_is_a_failure_and_is_not_followed() {
    let mut elsewhere = Receiver::start([]).await;
    let redirect = Reply::status(307).header("location", elsewhere.url());
    let mut receiver = Receiver::start([redirect]).await;
    let harness = Harness::start().await;
    let mut timer = due(&receiver.url());
    timer["retry"] = json!({ "attempts_max": 1 });
    harness.put(TIMER, &timer).await;
    receiver.next().await;
    let dead = the_dead_letter(&harness).await;
    assert_eq!(dead["reason"], "exhausted");
    let detail = dead["last_error"]["detail"].as_str().unwrap();
    assert!(
        detail.contains("307") && detail.contains("redirects are not followed"),
        "{detail}"
    );
    assert!(elsewhere.is_silent());
}

#[tokio::test(flavor = "multi_thread")]
async fn gone_ends_in_the_dead_letters_at_once() {
    let mut receiver = Receiver::start([Reply::status(410)]).await;
    let harness = Harness::start().await;
    harness
        .put(TIMER, &due_quickly_retried(&receiver.url()))
        .await;
    receiver.next().await;
    let dead = the_dead_letter(&harness).await;
    assert_eq!(dead["id"], "order-42");
    assert_eq!(dead["reason"], "handler");
    assert_eq!(dead["attempt"], 1);
    assert_eq!(harness.get(TIMER).await.json()["state"], "dead");
    assert!(receiver.is_silent());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_receiver_says_when_to_come_again() {
    let in_an_hour = Reply::status(503).header("retry-after", "3600");
    let at_a_date = Reply::status(429).header("retry-after", "Fri, 01 Jan 2100 00:00:00 GMT");
    let mut receiver = Receiver::start([in_an_hour, at_a_date]).await;
    let harness = Harness::start().await;
    for (id, hours) in [("a", 1), ("b", 24)] {
        let timer = format!("/v1/partitions/tenant-7/timers/{id}");
        harness
            .put(&timer, &due_quickly_retried(&receiver.url()))
            .await;
        receiver.next().await;
        let shown = harness
            .until(&timer, |answer| answer.json()["state"] == "retrying")
            .await
            .json();
        let at = |text: &Value| text.as_str().unwrap().parse::<jiff::Timestamp>().unwrap();
        let wait = at(&shown["next_attempt_at"]).duration_since(at(&shown["last_error"]["at"]));
        let asked = jiff::SignedDuration::from_hours(hours);
        assert!(wait >= asked, "{shown}");
        assert!(
            wait < asked + jiff::SignedDuration::from_secs(10),
            "{shown}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_receiver_that_never_answers_is_cut_at_the_deadline() {
    let mut receiver = Receiver::start([Reply::status(200).held()]).await;
    let harness = Harness::start().await;
    let mut timer = due_quickly_retried(&receiver.url());
    timer["deadline"] = json!("100ms");
    harness.put(TIMER, &timer).await;
    let first = receiver.next().await;
    let second = receiver.next().await;
    assert_eq!(second.json()["data"]["attempt"], 2);
    assert_eq!(second.header("webhook-id"), first.header("webhook-id"));
    harness.until_gone(TIMER).await;
}

/// Answers every connection with these bytes and then keeps it open.
async fn endless(answer: &'static str) -> (String, tokio::task::JoinSet<()>) {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/hook", listener.local_addr().unwrap());
    let mut tasks = tokio::task::JoinSet::new();
    tasks.spawn(async move {
        let mut open = Vec::new();
        loop {
            let (mut socket, _) = listener.accept().await.unwrap();
            let mut request = vec![0; 4_096];
            assert!(socket.read(&mut request).await.unwrap() > 0);
            socket.write_all(answer.as_bytes()).await.unwrap();
            open.push(socket);
        }
    });
    (url, tasks)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_whose_body_never_ends_counts_by_its_status() {
    let (accepting, _tasks) = endless("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nx").await;
    let (refusing, _tasks) = endless("HTTP/1.1 410 Gone\r\ncontent-length: 9\r\n\r\nwhy").await;
    let harness = Harness::start().await;
    let mut timer = due_quickly_retried(&accepting);
    timer["deadline"] = json!("10s");
    harness.put(TIMER, &timer).await;
    harness.until_gone(TIMER).await;
    let stats = harness
        .until("/v1/stats", |answer| answer.json()["driver"]["fired"] == 1)
        .await;
    assert_eq!(stats.json()["driver"]["failed"], 0);
    timer["target"]["url"] = json!(refusing);
    harness.put(TIMER, &timer).await;
    let dead = the_dead_letter(&harness).await;
    assert_eq!(dead["attempt"], 1);
    let detail = dead["last_error"]["detail"].as_str();
    assert_eq!(detail, Some("the receiver answered 410 Gone: why"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_timer_in_delivery_is_removed_only_by_force() {
    let mut receiver = Receiver::start([Reply::status(500).held()]).await;
    let harness = Harness::start().await;
    harness
        .put(TIMER, &due_quickly_retried(&receiver.url()))
        .await;
    receiver.next().await;
    let shown = harness.get(TIMER).await.json();
    assert_eq!(
        (shown["state"].as_str(), shown["attempt"].as_u64()),
        (Some("claimed"), Some(1))
    );
    harness
        .call("DELETE", TIMER)
        .await
        .assert_problem(409, "timer_in_delivery");
    let forced = harness.call("DELETE", &format!("{TIMER}?force=true")).await;
    assert_eq!(forced.status, 204);
    receiver.open();
    // The failed call settles nothing: its timer is gone. The next delivery is another's.
    harness
        .put(
            "/v1/partitions/tenant-7/timers/other",
            &due(&receiver.url()),
        )
        .await;
    assert_eq!(receiver.next().await.json()["data"]["id"], "other");
    harness
        .get(TIMER)
        .await
        .assert_problem(404, "timer_not_found");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_put_while_it_is_delivered_is_a_new_scheduling() {
    let mut receiver = Receiver::start([Reply::status(200).held()]).await;
    let harness = Harness::start().await;
    harness.put(TIMER, &due(&receiver.url())).await;
    let first = receiver.next().await;
    let replaced = harness.put(TIMER, &due(&receiver.url())).await;
    assert_eq!(replaced.status, 200);
    receiver.open();
    let second = receiver.next().await;
    assert_ne!(second.header("webhook-id"), first.header("webhook-id"));
    harness.until_gone(TIMER).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn fire_now_delivers_under_the_same_generation() {
    let mut receiver = Receiver::start([Reply::status(500)]).await;
    let harness = Harness::start().await;
    let mut timer = pending();
    timer["target"]["url"] = json!(receiver.url());
    let created = harness.put(TIMER, &timer).await.json();
    let fired = harness.call("POST", &format!("{TIMER}:fire-now")).await;
    assert_eq!(fired.status, 200);
    assert_eq!(fired.json()["generation"], created["generation"]);
    assert_eq!(fired.json()["due_at"], created["due_at"]);
    let first = receiver.next().await;
    assert_eq!(first.json()["data"]["due_at"], created["due_at"]);
    harness
        .until(TIMER, |answer| answer.json()["state"] == "retrying")
        .await;
    let again = harness.call("POST", &format!("{TIMER}:fire-now")).await;
    assert_eq!(again.status, 200, "a back-off is cut short: {}", again.text);
    let second = receiver.next().await;
    assert_eq!(second.header("webhook-id"), first.header("webhook-id"));
    harness.until_gone(TIMER).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_target_that_refuses_the_connection_is_tried_again() {
    let harness = Harness::start().await;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    harness
        .put(TIMER, &due(&format!("http://{address}/?token=s3cret")))
        .await;
    let shown = harness
        .until(TIMER, |answer| answer.json()["state"] == "retrying")
        .await
        .json();
    let detail = shown["last_error"]["detail"].as_str().unwrap();
    assert!(detail.starts_with("could not connect: "), "{detail}");
    assert!(!detail.contains("s3cret"), "{detail}");
}
