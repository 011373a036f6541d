//! Goal: a claim that has ended is a timer that waits for its next run, wherever it is shown.
//! Method: the rows of a claim, as a crash leaves them, written beside the router.

use dueline::rows::{Flags, Header, NameKey, NameRow, NameState, TimerKey, TimerRow};
use dueline::store::{Batch, Partition};
use dueline_testkit::commit;
use serde_json::{Value, json};

use super::store_faults::{faulty, send};
use crate::webhook::WEBHOOK;

const NOW_MS: u64 = 1_800_000_000_000;
const TIMERS: &str = "/v1/partitions/tenant-7/timers";

/// A claimed timer whose claim ends then.
fn claimed(id: &'static str, ends_at_ms: u64) -> Batch {
    let key = TimerKey {
        kind: WEBHOOK,
        due_ms: ends_at_ms,
        generation: 7,
        reference: id.into(),
    };
    let flags = Flags {
        named: true,
        claimed: true,
        recurring: false,
    };
    let row = TimerRow {
        header: Header {
            flags,
            attempt: 1,
            original_due_ms: 1_000,
            failure: None,
        },
        payload: r#"{"v":1,"target":{"url":"https://example.com/"},"payload":{"json":1}}"#.into(),
    };
    let name = NameKey {
        kind: WEBHOOK,
        reference: id.into(),
    };
    let name_row = NameRow {
        state: NameState::Claimed,
        due_ms: ends_at_ms,
        generation: 7,
    };
    Batch::new()
        .put(key.encode(), row.encode())
        .put(name.encode(), name_row.encode())
}

#[tokio::test]
async fn an_ended_claim_is_shown_and_listed_as_retrying() {
    let (store, router) = faulty();
    let partition = Partition::new("tenant-7").unwrap();
    commit(store.inner().as_ref(), &partition, claimed("ended", NOW_MS));
    commit(
        store.inner().as_ref(),
        &partition,
        claimed("running", NOW_MS + 1),
    );
    for (id, state) in [("ended", "retrying"), ("running", "claimed")] {
        let path = format!("{TIMERS}/{id}");
        let (status, timer) = send(&router, "GET", &path, "none", &json!({})).await;
        assert_eq!((status, timer["state"].as_str()), (200, Some(state)));
        let path = format!("{TIMERS}?state={state}");
        let (_, listed) = send(&router, "GET", &path, "none", &json!({})).await;
        assert_eq!(listed, json!({ "timers": [timer] }));
    }
    let running = format!("{TIMERS}/running");
    let (status, problem) = send(&router, "DELETE", &running, "none", &Value::Null).await;
    assert_eq!(
        (status, &problem["code"]),
        (409, &json!("timer_in_delivery"))
    );
    let ended = format!("{TIMERS}/ended");
    let (status, _) = send(&router, "DELETE", &ended, "none", &Value::Null).await;
    assert_eq!(status, 204, "no call of it is under way");
}
