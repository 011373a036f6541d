//! Goal: SIGKILL at any moment loses no timer, fires none early, and repeats only under the same webhook id.
//! Method: the real binary on a directory of its own, a receiver in this process, kills between and
//! during deliveries and requests.
#![cfg(test)]

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, RwLock};
use std::thread;

use support::http::send;
use support::receiver::{Delivery, Receiver};
use support::server::Server;
use support::{now_ms, run, wait_for};

/// Nothing is left in the partition, and doctor finds a healthy directory.
fn assert_nothing_is_left(server: Server, data: &Path, partition: &str) {
    wait_for("an empty partition", || {
        let page = server
            .run(&["timer", "list", partition, "--output", "json"])
            .json();
        page["timers"]
            .as_array()
            .expect("a list")
            .is_empty()
            .then_some(())
    });
    let dead = server
        .run(&["dead", "list", partition, "--output", "json"])
        .json();
    assert_eq!(dead["dead_letters"], serde_json::json!([]));
    server.kill();
    let data = data.to_str().expect("a path of text");
    let report = run(&["doctor", "--data", data, "--output", "json"]).json();
    assert_eq!(report["healthy"], true, "{report:#}");
    for count in [
        "lanes_without_wake",
        "names_adrift",
        "malformed",
        "quarantined",
    ] {
        assert_eq!(report["contents"][count], 0, "{count}: {report:#}");
    }
}

#[test]
fn a_timer_outlives_a_kill_and_its_signed_webhook_is_delivered_at_its_time() {
    let folder = tempfile::tempdir().expect("a folder");
    let receiver = Receiver::start();
    let server = Server::start(folder.path());
    let created = server
        .run(&[
            "timer",
            "create",
            "orders",
            "order-42",
            "--in",
            "3s",
            "--url",
            &receiver.url,
            "--payload",
            r#"{"order": 42}"#,
            "--output",
            "json",
        ])
        .json();
    let server = server.kill_and_restart();
    let shown = server
        .run(&["timer", "get", "orders", "order-42", "--output", "json"])
        .json();
    assert_eq!(shown, created);
    let deliveries = receiver.wait_for_deliveries(1);
    let delivery = &deliveries[0];
    let body = delivery.body();
    let due_ms = ms_of(created["due_at"].as_str().expect("a due"));
    assert!(
        delivery.arrived_ms >= due_ms,
        "early: {} before {due_ms}",
        delivery.arrived_ms
    );
    assert!(delivery.is_signed_by(folder.path()));
    assert_eq!(body["type"], "timer.fired");
    assert_eq!(body["data"]["payload"], serde_json::json!({"order": 42}));
    assert_eq!(body["data"]["attempt"], 1);
    assert_eq!(body["timestamp"], created["due_at"]);
    assert_nothing_is_left(server, folder.path(), "orders");
}

const TIMERS: usize = 500;
/// The first kill, when this many timers are scheduled: others are being scheduled.
const FIRST_KILL_AT_SCHEDULED: usize = 150;
/// The other kills, when this many webhooks have arrived.
const KILLS_AT_DELIVERED: [usize; 4] = [110, 220, 330, 440];
/// How many of those fall while the receiver keeps its answers back. They are the early ones: a claim
/// ends 11 s later, which is before the last timer is due.
const KILLS_DURING_CALLS: usize = 2;

#[test]
fn five_kills_among_500_timers_lose_none_fire_none_early_and_keep_every_webhook_id() {
    let folder = tempfile::tempdir().expect("a folder");
    let receiver = Receiver::start();
    let mut server = Server::start(folder.path());
    let address = Arc::new(RwLock::new(server.address.clone()));
    let first_due_ms = now_ms() + 1_000;
    let due_ms = move |timer: usize| first_due_ms + timer as u64 * 38;
    let scheduled = Arc::new(AtomicUsize::new(0));
    let scheduling = {
        let (address, url) = (Arc::clone(&address), receiver.url.clone());
        let scheduled = Arc::clone(&scheduled);
        thread::spawn(move || {
            for timer in 0..TIMERS {
                schedule(&address, timer, due_ms(timer), &url);
                scheduled.fetch_add(1, Ordering::SeqCst);
            }
        })
    };
    let start = || {
        let server = Server::start(folder.path());
        address
            .write()
            .expect("nobody panicked")
            .clone_from(&server.address);
        server
    };
    wait_for("the first timers", || {
        (scheduled.load(Ordering::SeqCst) >= FIRST_KILL_AT_SCHEDULED).then_some(())
    });
    server.kill();
    server = start();
    let mut unanswered = BTreeSet::new();
    for (kill, kill_at) in KILLS_AT_DELIVERED.into_iter().enumerate() {
        receiver.wait_for_deliveries(kill_at);
        if kill < KILLS_DURING_CALLS {
            receiver.keep_silent(true);
            let answered = receiver.deliveries().len();
            let arrived = receiver.wait_for_deliveries(answered + 1);
            unanswered.extend(arrived[answered..].iter().map(Delivery::timer_id));
        }
        server.kill();
        receiver.keep_silent(false);
        server = start();
    }
    scheduling.join().expect("every timer was acknowledged");
    wait_for("every timer", || {
        (by_timer(&receiver.deliveries()).len() == TIMERS).then_some(())
    });
    let repeated = wait_for("the repeats of what was not answered", || {
        let by_timer = by_timer(&receiver.deliveries());
        let repeated = |timer: &String| by_timer[timer].len() >= 2;
        unanswered.iter().all(repeated).then_some(unanswered.len())
    });
    assert!(repeated >= 2, "{unanswered:?}");
    assert_nothing_is_left(server, folder.path(), "batch");

    let by_timer = by_timer(&receiver.deliveries());
    assert_eq!(by_timer.len(), TIMERS);
    assert_sound(by_timer, folder.path(), due_ms);
}

/// Each timer under one webhook id of its own, with a further attempt each time, signed, never early.
fn assert_sound(
    by_timer: BTreeMap<String, Vec<Delivery>>,
    data: &Path,
    due_ms: impl Fn(usize) -> u64,
) {
    let mut webhook_ids = BTreeSet::new();
    for (timer, deliveries) in by_timer {
        let ids: BTreeSet<String> = deliveries.iter().map(Delivery::webhook_id).collect();
        assert_eq!(ids.len(), 1, "{timer} went out under several ids: {ids:?}");
        assert!(
            webhook_ids.insert(ids),
            "{timer} shares its webhook id with another"
        );
        let attempts = deliveries.iter().map(Delivery::attempt);
        assert!(
            attempts.is_sorted_by(|earlier, later| earlier < later),
            "each repeat of {timer} is a further attempt"
        );
        let number: usize = timer
            .strip_prefix("timer-")
            .and_then(|n| n.parse().ok())
            .expect("ours");
        for delivery in deliveries {
            assert!(delivery.arrived_ms >= due_ms(number), "{timer} was early");
            assert!(delivery.is_signed_by(data));
        }
    }
}

fn by_timer(deliveries: &[Delivery]) -> BTreeMap<String, Vec<Delivery>> {
    let mut by_timer: BTreeMap<String, Vec<Delivery>> = BTreeMap::new();
    for delivery in deliveries {
        by_timer
            .entry(delivery.timer_id())
            .or_default()
            .push(delivery.clone());
    }
    by_timer
}

/// Schedules as a careful client does: until it is acknowledged, under one idempotency key, so that a
/// repeat of a request whose answer was lost does not make a second timer.
fn schedule(address: &RwLock<String>, timer: usize, due_ms: u64, url: &str) {
    let path = format!("/v1/partitions/batch/timers/timer-{timer}");
    let body = format!(
        r#"{{"due_at": "{}", "target": {{"url": "{url}"}}, "deadline": "1s"}}"#,
        text_of(due_ms)
    );
    let key = format!("\"key-{timer}\"");
    wait_for("an acknowledgement", || {
        let address = address.read().expect("nobody panicked").clone();
        let answer = send(&address, "PUT", &path, &[("idempotency-key", &key)], &body).ok()?;
        match answer.status() {
            200 | 201 => Some(()),
            409 | 503 => None,
            other => panic!("{other}: {}", String::from_utf8_lossy(&answer.body)),
        }
    });
}

fn text_of(at_ms: u64) -> String {
    let at_ms = i64::try_from(at_ms).expect("a time");
    jiff::Timestamp::from_millisecond(at_ms)
        .expect("a time")
        .to_string()
}

fn ms_of(text: &str) -> u64 {
    let time: jiff::Timestamp = text.parse().expect("a time");
    u64::try_from(time.as_millisecond()).expect("a time after 1970")
}
