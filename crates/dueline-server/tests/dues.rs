//! Goal: a due may lie anywhere in the calendar, and never fires before it.
//! Method: the edges of the calendar; a clock that the test moves.
#![cfg(test)]

mod support;

use std::time::Duration;

use dueline_testkit::{ManualClock, test_runtime};
use serde_json::json;
use support::{Harness, Receiver, TARGET, due};

const TIMER: &str = "/v1/partitions/tenant-7/timers/order-42";
const NOW_MS: i64 = 1_800_000_000_000;

#[tokio::test(flavor = "multi_thread")]
async fn the_last_millisecond_of_the_calendar_is_accepted_and_the_next_refused() {
    let harness = Harness::start().await;
    let at = |text: &str| json!({"due_at": text, "target": {"url": TARGET}});
    let created = harness.put(TIMER, &at("9999-12-31T23:59:59.999Z")).await;
    assert_eq!(created.status, 201);
    assert_eq!(created.json()["due_at"], "9999-12-31T23:59:59.999Z");
    assert_eq!(
        harness.get(TIMER).await.json()["due_at"],
        "9999-12-31T23:59:59.999Z"
    );
    for text in [
        "9999-12-31T23:59:59.9991Z",
        "9999-12-31T23:59:59-00:01",
        "1969-12-31T23:59:59Z",
    ] {
        assert_eq!(
            harness.put(TIMER, &at(text)).await.pointers(),
            ["/due_at"],
            "{text}"
        );
    }
    for delay in [
        "9223372036854775807ms",
        "9000y",
        "70000000h",
        "9999999999999999999999s",
    ] {
        let body = json!({"delay": delay, "target": {"url": TARGET}});
        assert_eq!(
            harness.put(TIMER, &body).await.pointers(),
            ["/delay"],
            "{delay}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_delay_of_sixty_days_fires_at_its_end_and_not_before() {
    let clock = ManualClock::new(NOW_MS);
    let mut receiver = Receiver::start([]).await;
    let runtime = test_runtime(&clock);
    let harness = Harness::with(|config| config.runtime(runtime)).await;
    let body = json!({"delay": "P60D", "target": {"url": receiver.url()}});
    let created = harness.put(TIMER, &body).await.json();
    assert_eq!(created["due_at"], "2027-03-16T08:00:00.000Z");
    let days = |days: u64| Duration::from_secs(days * 24 * 3_600);
    clock.advance(days(60) - Duration::from_millis(1));
    // Another timer shows that the driver has looked meanwhile.
    harness
        .put(
            "/v1/partitions/tenant-7/timers/other",
            &due(&receiver.url()),
        )
        .await;
    assert_eq!(receiver.next().await.json()["data"]["id"], "other");
    assert_eq!(harness.get(TIMER).await.json()["state"], "pending");
    clock.advance(Duration::from_millis(1));
    assert_eq!(receiver.next().await.json()["data"]["id"], "order-42");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_due_in_the_past_fires_at_once_and_keeps_its_due() {
    let mut receiver = Receiver::start([]).await;
    let harness = Harness::start().await;
    let body = json!({"due_at": "1970-01-01T00:00:00Z", "target": {"url": receiver.url()}});
    assert_eq!(harness.put(TIMER, &body).await.status, 201);
    assert_eq!(
        receiver.next().await.json()["data"]["due_at"],
        "1970-01-01T00:00:00.000Z"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fraction_below_a_millisecond_is_rounded_up() {
    let harness = Harness::start().await;
    let body = json!({"due_at": "2099-01-01T00:00:00.0000001+00:00", "target": {"url": TARGET}});
    let created = harness.put(TIMER, &body).await.json();
    assert_eq!(created["due_at"], "2099-01-01T00:00:00.001Z");
}

#[tokio::test(flavor = "multi_thread")]
async fn back_off_follows_the_timers_own_policy() {
    let clock = ManualClock::new(NOW_MS);
    let mut receiver = Receiver::start([500, 500, 500].map(support::Reply::status)).await;
    let runtime = test_runtime(&clock);
    let harness = Harness::with(|config| config.runtime(runtime)).await;
    let mut timer = due(&receiver.url());
    timer["retry"] = json!({"attempts_max": 3, "initial": "10s", "max": "15s"});
    harness.put(TIMER, &timer).await;
    for (attempt, base_s) in [(1, 10), (2, 15)] {
        receiver.next().await;
        let shown = harness
            .until(TIMER, |answer| {
                answer.json()["state"] == "retrying" && answer.json()["attempt"] == attempt
            })
            .await
            .json();
        let at = |field: &serde_json::Value| {
            field
                .as_str()
                .unwrap()
                .parse::<jiff::Timestamp>()
                .unwrap()
                .as_millisecond()
        };
        let wait_ms = at(&shown["next_attempt_at"]) - at(&shown["last_error"]["at"]);
        assert!(
            (base_s * 1_000..=base_s * 1_200).contains(&wait_ms),
            "{wait_ms}"
        );
        clock.advance(Duration::from_millis(u64::try_from(wait_ms).unwrap()));
    }
    receiver.next().await;
    harness
        .until(TIMER, |answer| answer.json()["state"] == "dead")
        .await;
}
