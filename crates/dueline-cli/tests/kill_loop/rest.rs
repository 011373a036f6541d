//! Lets a server come to rest, and looks at what is left.

use std::path::Path;

use dueline_history::{Answered, Event, Log, What, read};

use super::client::{PARTITIONS, ms_of};
use super::support::receiver::Receiver;
use super::support::server::Server;
use super::support::{run, wait_for};

/// What a database without a timer may have: its pages and its log, which is written over in place and
/// reaches 4,000 pages before it begins again, and as much for what one commit may add.
const FILE_BYTES_EMPTY: u64 = 2 * 4_000 * 4_096 + 1_048_576;
/// What the record of an idempotency key, kept for a day, may take with its own timer and their wakes.
const FILE_BYTES_PER_KEY: u64 = 2_048;

/// Waits until no timer is left, kills the server and asks doctor.
pub(crate) fn come_to(server: Server, data: &Path, history: &Path) -> What {
    let count = |command: &[&str], field: &str| -> u64 {
        let of = |partition: &str| {
            let words = [command, &[partition, "--output", "json"]].concat();
            let page = server.run(&words).json();
            page[field].as_array().expect("a list").len() as u64
        };
        PARTITIONS.into_iter().map(of).sum()
    };
    wait_for("empty partitions", || {
        (count(&["timer", "list"], "timers") == 0).then_some(())
    });
    let timers = count(&["timer", "list"], "timers");
    let dead_letters = count(&["dead", "list"], "dead_letters");
    server.kill();
    let report = run(&[
        "doctor",
        "--data",
        data.to_str().expect("a path of text"),
        "--output",
        "json",
    ])
    .json();
    let size = |field: &str| report[field].as_u64().expect("a size");
    let acknowledged = read(history).expect("a whole history");
    let keys = acknowledged.iter().filter(|event| is_kept(event)).count() as u64;
    What::Quiet {
        timers,
        dead_letters,
        findings: findings(&report),
        file_bytes: size("file_bytes") + size("log_bytes"),
        file_bytes_max: FILE_BYTES_EMPTY + keys * FILE_BYTES_PER_KEY,
    }
}

/// Whether a record of a key may have been kept for this request.
fn is_kept(event: &Event) -> bool {
    matches!(
        event.what,
        What::Answer {
            answered: Answered::Created | Answered::Replaced | Answered::Unknown,
            ..
        }
    )
}

fn findings(report: &serde_json::Value) -> Vec<String> {
    let mut findings = Vec::new();
    if report["healthy"] != true {
        findings.push("not healthy".to_owned());
    }
    for finding in report["findings"].as_array().expect("a list") {
        // What is good to know, such as the unclean stop that we made, is no fault.
        if finding["level"] == "problem" {
            findings.push(finding.to_string());
        }
    }
    for count in [
        "lanes_without_wake",
        "names_adrift",
        "malformed",
        "quarantined",
    ] {
        if report["contents"][count] != 0 {
            findings.push(format!("{count}: {}", report["contents"][count]));
        }
    }
    findings
}

/// Adds the calls that the receiver got to the history.
pub(crate) fn record_calls(log: &Log, receiver: &Receiver) {
    for delivery in receiver.deliveries() {
        let body = delivery.body();
        let what = What::Call {
            timer: delivery.timer_id(),
            version: body["data"]["payload"]["version"]
                .as_u64()
                .expect("a version"),
            occurrence: delivery.webhook_id(),
            due_ms: ms_of(body["data"]["due_at"].as_str().expect("a due")),
            status: delivery.status,
        };
        let event = Event {
            at_ms: delivery.arrived_ms,
            actor: "receiver".into(),
            what,
        };
        log.append(&event).expect("the history can be written");
    }
}
