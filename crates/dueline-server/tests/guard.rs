//! Goal: no webhook goes to an address that is not public, whatever way it is written, unless the
//! server was told to.
//! Method: a server with its guard on, whose resolver answers as the test says; a receiver on
//! loopback that must stay silent.
#![cfg(test)]

mod support;

use std::io;
use std::net::IpAddr;
use std::sync::Arc;

use dueline::BoxFuture;
use dueline_server::Lookup;
use serde_json::json;
use support::{Harness, Receiver, due, pending};

const TIMER: &str = "/v1/partitions/tenant-7/timers/order-42";

/// A resolver that answers every name with these addresses.
#[derive(Debug)]
struct Answers(Vec<IpAddr>);

impl Lookup for Answers {
    fn lookup(&self, _name: &str) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> {
        let answer = self.0.clone();
        Box::pin(std::future::ready(Ok(answer)))
    }
}

fn answers(addresses: &[&str]) -> Arc<Answers> {
    Arc::new(Answers(
        addresses.iter().map(|text| text.parse().unwrap()).collect(),
    ))
}

#[tokio::test(flavor = "multi_thread")]
async fn targets_that_are_not_public_are_refused_when_they_are_scheduled() {
    let harness = Harness::guarded(answers(&[])).await;
    for url in [
        "http://127.0.0.1/",
        "http://127.1/",
        "http://2130706433/",
        "http://0x7f.0.0.1/",
        "http://0x7f000001/",
        "http://017700000001/",
        "http://0177.0.0.1/",
        "http://0/",
        "http://0.0.0.0/",
        "http://10.0.0.1/",
        "http://172.16.0.1/",
        "http://192.168.1.1/",
        "http://169.254.169.254/latest/meta-data",
        "http://100.64.0.1/",
        "http://198.18.0.1/",
        "http://224.0.0.1/",
        "http://255.255.255.255/",
        "http://127.0.0.1.:80/",
        "http://\u{ff11}\u{ff12}\u{ff17}.0.0.1/",
        "http://[::1]/",
        "http://[::]/",
        "http://[::ffff:127.0.0.1]/",
        "http://[::ffff:7f00:1]/",
        "http://[::127.0.0.1]/",
        "http://[64:ff9b::127.0.0.1]/",
        "http://[2002:7f00:1::]/",
        "http://[2001:0:4136:e378:8000:63bf:3f57:fefe]/",
        "http://[fc00::1]/",
        "http://[fe80::1]/",
        "http://[fec0::1]/",
        "http://[ff02::1]/",
        "http://localhost/",
        "http://LOCALHOST./",
        "http://api.localhost/",
        "http://localhost.localdomain/",
    ] {
        let mut timer = pending();
        timer["target"]["url"] = json!(url);
        let refused = harness.put(TIMER, &timer).await;
        assert_eq!(refused.pointers(), ["/target/url"], "{url}");
        assert!(
            refused.text.contains("--allow-private-targets"),
            "{}",
            refused.text
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn urls_that_are_no_targets_are_refused_even_where_private_ones_are_allowed() {
    let harness = Harness::start().await;
    for url in [
        "",
        "hook",
        "//example.com/",
        "ftp://example.com/",
        "file:///etc/passwd",
        "javascript:alert(1)",
        "http://user@example.com/",
        "http://user:word@example.com/",
        "http://:word@example.com/",
        "https://example.com/#part",
        "http://exa mple.com/",
        "http://example.com/\tx",
        " http://example.com/",
        "http://",
        "http://[::1",
        "http://example.com:99999/",
    ] {
        let mut timer = pending();
        timer["target"]["url"] = json!(url);
        let refused = harness.put(TIMER, &timer).await;
        assert_eq!(refused.pointers(), ["/target/url"], "{url}");
    }
    let mut timer = pending();
    timer["target"]["url"] = json!(format!("https://example.com/{}", "x".repeat(4_096)));
    assert_eq!(harness.put(TIMER, &timer).await.pointers(), ["/target/url"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn public_targets_pass() {
    let harness = Harness::guarded(answers(&[])).await;
    for url in [
        "https://example.com/hook?x=1",
        "http://8.8.8.8:8080/",
        "https://[2606:4700:4700::1111]/",
        "https://b\u{fc}cher.example/",
    ] {
        let mut timer = pending();
        timer["target"]["url"] = json!(url);
        let created = harness.put(TIMER, &timer).await;
        assert!(created.status.is_success(), "{url}: {}", created.text);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_that_resolves_inwards_is_refused_before_a_byte_is_sent() {
    for addresses in [
        &["127.0.0.1"][..],
        &["::1"],
        &["10.0.0.1"],
        &["169.254.169.254"],
        &["::ffff:127.0.0.1"],
        // One address that is not public spoils the name.
        &["8.8.8.8", "127.0.0.1"],
    ] {
        let mut receiver = Receiver::start([]).await;
        let harness = Harness::guarded(answers(addresses)).await;
        let port = receiver.address.port();
        let timer = due(&format!("http://rebound.example:{port}/hook"));
        assert_eq!(harness.put(TIMER, &timer).await.status, 201);
        let shown = harness
            .until(TIMER, |answer| answer.json()["state"] == "retrying")
            .await
            .json();
        let detail = shown["last_error"]["detail"].as_str().unwrap();
        assert!(
            detail.contains("refused: rebound.example resolves to a"),
            "{detail}"
        );
        assert!(
            !detail.contains(addresses[0]),
            "the address is not told: {detail}"
        );
        assert!(receiver.is_silent(), "{addresses:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_timer_that_was_allowed_once_is_checked_again_when_it_is_sent() {
    let mut receiver = Receiver::start([]).await;
    let harness = Harness::start().await;
    let mut timer = pending();
    timer["target"]["url"] = json!(receiver.url());
    assert_eq!(harness.put(TIMER, &timer).await.status, 201);
    let folder = Arc::clone(&harness.folder);
    harness.server.shutdown().await;

    let harness = Harness::over(folder, |config| config.allow_private_targets(false)).await;
    harness.call("POST", &format!("{TIMER}:fire-now")).await;
    let shown = harness
        .until(TIMER, |answer| answer.json()["state"] == "retrying")
        .await
        .json();
    let detail = shown["last_error"]["detail"].as_str().unwrap();
    assert!(
        detail.starts_with("refused: the host is a loopback address"),
        "{detail}"
    );
    assert!(receiver.is_silent());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_is_resolved_by_the_given_resolver_and_connected_where_it_says() {
    let mut receiver = Receiver::start([]).await;
    let lookup = answers(&["127.0.0.1"]);
    let harness = Harness::with(|config| config.lookup(lookup)).await;
    let url = format!("http://hook.example:{}/hook", receiver.address.port());
    harness.put(TIMER, &due(&url)).await;
    let delivery = receiver.next().await;
    let host = format!("hook.example:{}", receiver.address.port());
    assert_eq!(delivery.header("host"), host);
}
