//! Goal: a server starts where it may, keeps what it accepted, stops without losing anything, and
//! says what it is.
//! Method: servers started, stopped and started again over one data directory.
#![cfg(test)]

mod support;

use std::sync::Arc;
use std::time::Duration;

use dueline_server::{Config, Server, StartError};
use serde_json::{Value, json};
use support::{Harness, Receiver, Reply, due, pending};

const TIMER: &str = "/v1/partitions/tenant-7/timers/order-42";

#[tokio::test(flavor = "multi_thread")]
async fn addresses_that_others_can_reach_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    for address in [
        "0.0.0.0:0",
        "[::]:0",
        "192.168.1.5:0",
        "[::ffff:10.0.0.1]:0",
        "8.8.8.8:7431",
    ] {
        let config = Config::new(folder.path()).listen(address.parse().unwrap());
        let refused = Server::start(config).await.unwrap_err();
        assert!(
            matches!(refused, StartError::NotLoopback { .. }),
            "{address}: {refused}"
        );
        assert!(refused.to_string().contains("127.0.0.1"), "{refused}");
    }
    assert!(
        std::fs::read_dir(folder.path()).unwrap().next().is_none(),
        "nothing was made"
    );
}

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn a_data_directory_that_is_made_is_its_owners_alone() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let made = folder.path().join("state").join("dueline");
    let config = Config::new(&made).listen("127.0.0.1:0".parse().unwrap());
    let server = Server::start(config).await.unwrap();
    let mode = std::fs::metadata(&made).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
    server.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_server_over_the_same_data_is_refused() {
    let harness = Harness::start().await;
    let refused = Server::start(support::config(&harness.folder))
        .await
        .unwrap_err();
    assert!(matches!(refused, StartError::Store(_)), "{refused}");
    let taken = Config::new(harness.folder.path().join("other")).listen(harness.server.address());
    let refused = Server::start(taken).await.unwrap_err();
    assert!(matches!(refused, StartError::Listen { .. }), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn timers_and_secrets_outlive_a_restart() {
    let mut receiver = Receiver::start([]).await;
    let harness = Harness::start().await;
    let mut timer = pending();
    timer["target"]["url"] = json!(receiver.url());
    let created = harness.put(TIMER, &timer).await.json();
    let secret = harness.server.secrets().current();
    let folder = Arc::clone(&harness.folder);
    let report = harness.server.shutdown().await;
    assert!(report.requests_finished && report.deliveries_finished);

    let harness = Harness::over(folder, |config| config).await;
    assert_eq!(harness.get(TIMER).await.json(), created);
    assert_eq!(harness.server.secrets().current(), secret);
    harness.call("POST", &format!("{TIMER}:fire-now")).await;
    assert_eq!(receiver.next().await.json()["data"]["id"], "order-42");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_delivery_that_outlasts_the_grace_is_given_back_uncounted() {
    let mut receiver = Receiver::start([Reply::status(200).held()]).await;
    let harness = Harness::with(|config| config.grace(Duration::from_millis(100))).await;
    harness.put(TIMER, &due(&receiver.url())).await;
    let first = receiver.next().await;
    let folder = Arc::clone(&harness.folder);
    let report = harness.server.shutdown().await;
    assert!(!report.deliveries_finished);
    assert_eq!(report.deliveries_released, 1);

    let harness = Harness::over(folder, |config| config).await;
    let second = receiver.next().await;
    assert_eq!(second.header("webhook-id"), first.header("webhook-id"));
    assert_eq!(second.json()["data"]["attempt"], 1);
    harness.until_gone(TIMER).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_delivery_within_the_grace_is_finished() {
    let mut receiver = Receiver::start([Reply::status(200).held()]).await;
    let harness = Harness::start().await;
    harness.put(TIMER, &due(&receiver.url())).await;
    receiver.next().await;
    let folder = Arc::clone(&harness.folder);
    let stopping = harness.server.shutdown();
    receiver.open();
    let report = stopping.await;
    assert!(report.deliveries_finished);
    assert_eq!(report.deliveries_released, 0);
    let harness = Harness::over(folder, |config| config).await;
    harness
        .get(TIMER)
        .await
        .assert_problem(404, "timer_not_found");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_driver_that_stopped_makes_the_server_unready() {
    let harness = Harness::start().await;
    assert_eq!(
        harness.get("/readyz").await.json(),
        json!({"status": "ready"})
    );
    harness.server.driver().shutdown(Duration::ZERO).await;
    let unready = harness.get("/readyz").await;
    unready.assert_problem(503, "driver_stopped");
    assert_eq!(unready.header("retry-after"), "1");
    assert_eq!(
        harness.get("/healthz").await.json(),
        json!({"status": "ok"})
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_and_stats_say_what_the_server_is() {
    let mut receiver = Receiver::start([]).await;
    let harness = Harness::start().await;
    assert_eq!(
        harness.get("/v1/limits").await.json(),
        json!({
            "partition_bytes_max": 256,
            "timer_id_bytes_max": 512,
            "timer_bytes_max": 491_520,
            "due_at_max": "9999-12-31T23:59:59.999Z",
            "batch_timers_max": 1_000,
            "page_size_default": 100,
            "page_size_max": 1_000,
            "body_bytes_max": 1_048_576,
            "batch_body_bytes_max": 16_777_216,
            "idempotency_key_bytes_max": 255,
            "idempotency_keys_kept_for": "24h",
        })
    );
    harness.put(TIMER, &due(&receiver.url())).await;
    receiver.next().await;
    let stats = harness
        .until("/v1/stats", |answer| answer.json()["driver"]["fired"] == 1)
        .await
        .json();
    assert_eq!(stats["version"], env!("CARGO_PKG_VERSION"));
    assert!(stats.get("partition").is_none());
    assert_eq!(stats["driver"]["partitions_held_back"], 0);
    assert_eq!(stats["driver"]["held_back_since"], Value::Null);
    assert!(stats["started_at"].as_str() <= stats["now"].as_str());

    harness.put(TIMER, &pending()).await;
    let stats = harness.get("/v1/stats?partition=tenant-7").await.json()["partition"].clone();
    assert_eq!(stats["timers"], json!({"count": 1, "more": false}));
    assert_eq!(stats["next_due_at"], "2099-01-01T00:00:00.000Z");
    assert!(stats["paused_since"].is_null());
    let nowhere = harness.get("/v1/stats?partition=nowhere").await.json()["partition"].clone();
    assert_eq!(
        (nowhere["rows"].as_u64(), nowhere["next_due_at"].is_null()),
        (Some(0), true)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_under_another_name_or_from_another_site_are_refused() {
    let harness = Harness::start().await;
    let port = harness.server.address().port();
    for host in [
        "evil.example",
        "evil.example:7431",
        "10.0.0.1",
        "localhost.evil.example",
        "[::2]",
    ] {
        let request =
            format!("GET /v1/limits HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n");
        let answer = harness.raw(&request).await;
        assert!(answer.starts_with("HTTP/1.1 421 "), "{host}: {answer}");
        assert!(answer.contains("\"code\":\"unknown_host\""), "{answer}");
    }
    for host in ["127.0.0.1", "localhost:1", "[::1]:7431"] {
        let request =
            format!("GET /v1/limits HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n");
        let answer = harness.raw(&request).await;
        assert!(answer.starts_with("HTTP/1.1 200 "), "{host}: {answer}");
    }
    let fire = format!("{TIMER}:fire-now");
    for origin in ["https://evil.example", "null"] {
        let request = harness.request("POST", &fire).header("origin", origin);
        harness
            .send(request)
            .await
            .assert_problem(403, "cross_origin");
    }
    let own = harness
        .request("POST", &fire)
        .header("origin", format!("http://127.0.0.1:{port}"));
    harness
        .send(own)
        .await
        .assert_problem(404, "timer_not_found");
}
