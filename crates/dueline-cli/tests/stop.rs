//! Goal: a server that is told to stop loses nothing, charges no attempt for what it cut, and exits with 0.
//! Method: signals to the real binary while a receiver keeps a webhook without an answer.
#![cfg(test)]
#![cfg(unix)]

mod support;

use std::path::Path;

use support::receiver::Receiver;
use support::server::Server;
use support::{now_ms, run};

fn schedule(server: &Server, receiver: &Receiver) {
    let due = [
        "timer",
        "create",
        "orders",
        "slow",
        "--in",
        "0s",
        "--url",
        &receiver.url,
    ];
    server.run(&due).ok();
}

#[test]
fn a_stop_with_nothing_under_way_is_clean_and_quick() {
    for signal in ["TERM", "INT"] {
        let folder = tempfile::tempdir().expect("a folder");
        let mut server = Server::start_with(folder.path(), &["--grace", "50s"]);
        let told_ms = now_ms();
        server.signal(signal);
        assert_eq!(server.wait().code(), Some(0), "{signal}");
        assert!(now_ms() - told_ms < 20_000, "it waited for nothing");
        let path = folder.path().to_str().expect("a path of text");
        let report = run(&["doctor", "--data", path]).ok();
        assert!(report.contains("not running; stopped cleanly"), "{report}");
    }
}

#[test]
fn a_delivery_that_outlasts_the_grace_period_is_given_back_and_sent_again_at_the_next_start() {
    let folder = tempfile::tempdir().expect("a folder");
    let receiver = Receiver::start();
    receiver.keep_silent(true);
    let mut server = Server::start_with(folder.path(), &["--grace", "500ms"]);
    schedule(&server, &receiver);
    receiver.wait_for_deliveries(1);
    server.signal("TERM");
    assert_eq!(server.wait().code(), Some(0));
    receiver.keep_silent(false);
    let server = Server::start(folder.path());
    let started_ms = now_ms();
    let deliveries = receiver.wait_for_deliveries(2);
    assert!(
        deliveries[1].arrived_ms < started_ms + 5_000,
        "it waited for the claim to end"
    );
    assert_eq!(deliveries[0].webhook_id(), deliveries[1].webhook_id());
    let attempts: Vec<_> = deliveries
        .iter()
        .map(|d| d.body()["data"]["attempt"].clone())
        .collect();
    assert_eq!(attempts, [1, 1], "the attempt that was cut is not charged");
    drop(server);
}

#[test]
fn a_second_signal_stops_at_once_and_the_timer_is_still_there() {
    let folder = tempfile::tempdir().expect("a folder");
    let receiver = Receiver::start();
    receiver.keep_silent(true);
    let mut server = Server::start_with(folder.path(), &["--grace", "50s"]);
    schedule(&server, &receiver);
    receiver.wait_for_deliveries(1);
    server.signal("TERM");
    support::wait_for("the first signal", || {
        server
            .log()
            .iter()
            .any(|line| line.contains("stopping"))
            .then_some(())
    });
    assert!(server.is_running());
    let told_ms = now_ms();
    server.signal("TERM");
    assert_eq!(server.wait().code(), Some(0));
    assert!(
        now_ms() - told_ms < 20_000,
        "it waited for the grace period"
    );
    let server = Server::start(folder.path());
    let timer = server
        .run(&["timer", "get", "orders", "slow", "--output", "json"])
        .json();
    assert_eq!(timer["state"], "claimed", "{timer}");
}

#[test]
fn a_start_that_cannot_succeed_says_why_and_exits_with_1() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().to_str().expect("a path of text");
    let open = run(&["serve", "--data", path, "--listen", "0.0.0.0:0"]);
    assert_eq!(open.code, Some(1));
    assert!(
        open.stderr.contains("refusing to listen on 0.0.0.0:0"),
        "{}",
        open.stderr
    );

    let server = Server::start(folder.path());
    let locked = run(&["serve", "--data", path, "--listen", "127.0.0.1:0"]);
    assert_eq!(locked.code, Some(1));
    assert!(locked.stderr.contains("is in use"), "{}", locked.stderr);

    let other = tempfile::tempdir().expect("a folder");
    let other = other.path().to_str().expect("a path of text");
    let taken = run(&["serve", "--data", other, "--listen", &server.address]);
    assert_eq!(taken.code, Some(1));
    assert!(
        taken.stderr.contains("cannot listen on"),
        "{}",
        taken.stderr
    );
}

#[test]
fn the_log_can_be_json_for_programs() {
    let folder = tempfile::tempdir().expect("a folder");
    let log = start_with_json_log(folder.path());
    let line: serde_json::Value = serde_json::from_str(&log).expect("a line of JSON");
    assert_eq!(
        (&line["level"], &line["message"]),
        (&"INFO".into(), &"listening".into())
    );
    assert_eq!(line["durability"], "process-crash");
    assert!(
        line["address"]
            .as_str()
            .is_some_and(|text| text.starts_with("127.0.0.1:"))
    );
}

/// The first line that a server says in JSON.
fn start_with_json_log(data: &Path) -> String {
    use std::io::{BufRead, BufReader};
    let data = data.to_str().expect("a path of text");
    let flags = [
        "--listen",
        "127.0.0.1:0",
        "--log-format",
        "json",
        "--durability",
        "process-crash",
    ];
    let mut arguments = vec!["serve", "--data", data];
    arguments.extend(flags);
    let mut child = support::dueline(&arguments)
        .stderr(std::process::Stdio::piped())
        .spawn()
        .expect("the binary starts");
    let stderr = child.stderr.take().expect("a pipe");
    let line = BufReader::new(stderr).lines().map_while(Result::ok).next();
    child.kill().expect("the process is ours");
    child.wait().expect("the process is ours");
    line.expect("a line")
}
