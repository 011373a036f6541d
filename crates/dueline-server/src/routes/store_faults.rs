//! Goal: what goes wrong in the store is told by its kind, never by the backend's words, and a
//! request whose outcome was lost can be repeated with its key.
//! Method: the router over a store that fails on demand.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use dueline::Bytes;
use dueline::memory::MemoryStore;
use dueline::store::{Partition, StoreErrorKind, WakeStore};
use dueline::timers::Timers;
use dueline_testkit::{CommitFault, FaultStore, ManualClock, block_on, test_runtime};
use http::{Request, StatusCode};
use serde_json::{Value, json};
use tower::ServiceExt;

use super::router;
use crate::service::{DriverCounts, DriverHealth, Service};
use crate::webhook::WEBHOOK;

const TIMERS: &str = "/v1/partitions/tenant-7/timers";

#[derive(Debug)]
struct Running;

impl DriverHealth for Running {
    fn is_running(&self) -> bool {
        true
    }

    fn counts(&self) -> DriverCounts {
        DriverCounts::default()
    }
}

pub(super) fn faulty() -> (Arc<FaultStore>, Router) {
    served_by(Arc::new(Running))
}

fn served_by(driver: Arc<dyn DriverHealth>) -> (Arc<FaultStore>, Router) {
    let clock = ManualClock::new(1_800_000_000_000);
    let memory = Arc::new(MemoryStore::new(Arc::new(clock.clone())));
    let store = Arc::new(FaultStore::new(memory));
    let timers = Timers::new(Arc::clone(&store) as _, test_runtime(&clock));
    let wakes: Arc<dyn WakeStore> = Arc::clone(&store) as _;
    let service = Service::new(timers, wakes, driver, false);
    (store, router(service))
}

pub(super) async fn send(
    router: &Router,
    method: &str,
    path: &str,
    key: &str,
    body: &Value,
) -> (u16, Value) {
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", "application/json")
        .header("idempotency-key", key)
        .body(Body::from(body.to_string()))
        .unwrap();
    let response = router.clone().oneshot(request).await.unwrap();
    let status = response.status();
    if status == StatusCode::SERVICE_UNAVAILABLE {
        assert_eq!(response.headers()["retry-after"], "1");
    }
    let bytes = axum::body::to_bytes(response.into_body(), 1 << 20)
        .await
        .unwrap();
    let body = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
    (status.as_u16(), body)
}

fn timer() -> Value {
    json!({"delay": "1h", "target": {"url": "https://example.com/"}})
}

#[tokio::test]
async fn each_kind_of_store_error_has_its_status_and_no_backend_text() {
    for (kind, status, code) in [
        (StoreErrorKind::Unavailable, 503, "store_unavailable"),
        (StoreErrorKind::Unknown, 503, "outcome_unknown"),
        (StoreErrorKind::Full, 507, "store_full"),
        (StoreErrorKind::Corrupt, 500, "store_corrupt"),
        (StoreErrorKind::Unsupported, 500, "internal"),
    ] {
        let (store, router) = faulty();
        store.fail_commit(1, CommitFault::NotWritten(kind));
        let (found, problem) = send(&router, "POST", TIMERS, "k", &timer()).await;
        assert_eq!((found, problem["code"].as_str()), (status, Some(code)));
        let text = problem.to_string().to_lowercase();
        for word in ["injected", "fault store", "sqlite", "sql"] {
            assert!(!text.contains(word), "{text}");
        }
        store.heal();
        let (found, _) = send(&router, "POST", TIMERS, "k", &timer()).await;
        assert_eq!(found, 201, "what was not written can be repeated");
    }
}

#[tokio::test]
async fn a_request_whose_answer_was_lost_is_one_timer_when_it_is_repeated() {
    for (method, path) in [
        ("POST", TIMERS.to_owned()),
        ("PUT", format!("{TIMERS}/order-42")),
    ] {
        let (store, router) = faulty();
        store.fail_commit(1, CommitFault::AnswerLost);
        let (status, problem) = send(&router, method, &path, "k", &timer()).await;
        assert_eq!((status, &problem["code"]), (503, &json!("outcome_unknown")));
        let (status, first) = send(&router, method, &path, "k", &timer()).await;
        assert_eq!(status, 201);
        let (_, listed) = send(&router, "GET", TIMERS, "none", &json!({})).await;
        assert_eq!(listed["timers"], json!([first]));
    }
}

/// Held back as a damaged partition is: the others are served, so the server is ready, and says so elsewhere.
#[tokio::test]
async fn a_partition_that_is_held_back_is_shown_and_leaves_the_server_ready() {
    #[derive(Debug)]
    struct HoldsBack;

    impl DriverHealth for HoldsBack {
        fn is_running(&self) -> bool {
            true
        }

        fn counts(&self) -> DriverCounts {
            DriverCounts {
                partitions_held_back: 1,
                refused_since_ms: Some(0),
                ..DriverCounts::default()
            }
        }
    }

    let (_, router) = served_by(Arc::new(HoldsBack));
    let (status, _) = send(&router, "GET", "/readyz", "none", &json!({})).await;
    assert_eq!(status, 200);
    let (_, stats) = send(&router, "GET", "/v1/stats", "none", &json!({})).await;
    let driver = &stats["driver"];
    assert_eq!(driver["partitions_held_back"], 1, "{stats}");
    assert_eq!(driver["held_back_since"], "1970-01-01T00:00:00.000Z");
}

/// Between the two rows that a read of a timer takes, others move it on: more often than the engine
/// looks again, so that the request has to.
#[tokio::test]
async fn a_read_that_is_overtaken_again_and_again_is_answered() {
    const OVERTAKEN: u64 = 60;
    let path = format!("{TIMERS}/order-42");
    for read in [path.as_str(), TIMERS] {
        let (store, router) = faulty();
        let (status, _) = send(&router, "PUT", &path, "k", &timer()).await;
        assert_eq!(status, 201);
        let clock = ManualClock::new(1_800_000_000_000);
        let others = Timers::new(Arc::clone(store.inner()) as _, test_runtime(&clock));
        let partition = Partition::new("tenant-7".to_owned()).unwrap();
        let id = Bytes::from_static(b"order-42");
        let mut moved = 0;
        store.fail_reads_with(move |_| {
            if moved < OVERTAKEN {
                moved += 1;
                let due_at_ms = 1_800_000_000_000 + moved;
                let moving = others.reschedule(&partition, WEBHOOK, &id, due_at_ms, None);
                block_on(moving).unwrap();
            }
            None
        });
        let (status, answer) = send(&router, "GET", read, "none", &json!({})).await;
        assert_eq!(status, 200, "{answer}");
        assert!(answer.to_string().contains("order-42"), "{answer}");
    }
}

#[tokio::test]
async fn a_batch_that_was_cut_goes_on_where_it_was() {
    let (store, router) = faulty();
    let batch = json!({ "timers": vec![timer(); 10] });
    let path = format!("{TIMERS}:batch");
    // The record of the batch, three timers, and then nothing more.
    for nth in 5..=11 {
        let fault = CommitFault::NotWritten(StoreErrorKind::Unavailable);
        store.fail_commit(nth, fault);
    }
    let (status, cut) = send(&router, "POST", &path, "k", &batch).await;
    assert_eq!(status, 200);
    let created = |answer: &Value| -> Vec<Value> {
        let results = answer["results"].as_array().unwrap().iter();
        results
            .filter(|result| result["status"] == 201)
            .cloned()
            .collect()
    };
    assert_eq!(created(&cut).len(), 3);
    store.heal();
    let (_, whole) = send(&router, "POST", &path, "k", &batch).await;
    assert_eq!(created(&whole).len(), 10);
    assert!(
        created(&cut)
            .iter()
            .all(|result| created(&whole).contains(result))
    );
    let (_, listed) = send(&router, "GET", TIMERS, "none", &json!({})).await;
    assert_eq!(listed["timers"].as_array().map(Vec::len), Some(10));
}

#[tokio::test]
async fn a_store_that_does_not_answer_makes_the_server_unready() {
    let (store, router) = faulty();
    let (status, _) = send(&router, "GET", "/readyz", "none", &json!({})).await;
    assert_eq!(status, 200);
    store.fail_reads_with(|_| Some(StoreErrorKind::Unavailable));
    let (status, problem) = send(&router, "GET", "/readyz", "none", &json!({})).await;
    assert_eq!(
        (status, &problem["code"]),
        (503, &json!("store_unavailable"))
    );
    let (status, problem) = send(&router, "GET", TIMERS, "none", &json!({})).await;
    assert_eq!(
        (status, &problem["code"]),
        (503, &json!("store_unavailable"))
    );
}
