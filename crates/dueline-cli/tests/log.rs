//! Goal: a log that cannot be written costs its lines and nothing else.
//! Method: the reader of the real binary's log goes away before the first delivery.
#![cfg(test)]
#![cfg(unix)]

mod support;

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use support::receiver::Receiver;
use support::{dueline, run, wait_for};

/// A server whose log has no reader any more, killed when it goes out of scope.
struct Unheard {
    child: Child,
    url: String,
}

impl Unheard {
    fn start(data: &str) -> Self {
        let mut child = dueline(&[
            "serve",
            "--data",
            data,
            "--listen",
            "127.0.0.1:0",
            "--allow-private-targets",
        ])
        .stderr(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .expect("the binary starts");
        let mut line = String::new();
        BufReader::new(child.stderr.take().expect("a pipe"))
            .read_line(&mut line)
            .expect("the start-up line");
        let (_, rest) = line.split_once(" listens on ").expect("an address");
        let url = rest.split(',').next().expect("an address").to_owned();
        Self { child, url }
    }

    fn run(&self, arguments: &[&str]) -> support::Run {
        run(&[arguments, &["--server", &self.url]].concat())
    }
}

impl Drop for Unheard {
    fn drop(&mut self) {
        // It may have ended already; then there is nothing to kill.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_server_whose_log_cannot_be_written_delivers_once_answers_and_stops_cleanly() {
    let folder = tempfile::tempdir().expect("a folder");
    let receiver = Receiver::start();
    let mut server = Unheard::start(folder.path().to_str().expect("a path of text"));
    let create = |id: &str, url: &str| {
        let flags = [
            "--in",
            "0s",
            "--retry-initial",
            "10ms",
            "--attempts-max",
            "3",
        ];
        let words = ["timer", "create", "orders", id, "--url", url];
        server.run(&[&words[..], &flags[..]].concat()).ok()
    };
    let gone = || {
        let listed = server.run(&["timer", "list", "orders", "--output", "json"]);
        listed.json()["timers"].as_array().map(Vec::len) == Some(0)
    };
    create("heard", &receiver.url);
    wait_for("the delivery to be settled", || gone().then_some(()));
    assert_eq!(receiver.deliveries().len(), 1, "a log line is no failure");

    // A failure is logged too, and is the receiver's alone.
    create("refused", "http://127.0.0.1:9/");
    let dead = wait_for("the dead letter", || {
        let listed = server.run(&["dead", "list", "orders", "--output", "json"]);
        listed.json()["dead_letters"].get(0).cloned()
    });
    assert!(dead.to_string().contains("could not connect"), "{dead}");

    let id = server.child.id().to_string();
    let sent = Command::new("kill").args(["-TERM", &id]).status();
    assert!(sent.expect("kill is there").success());
    let status = server.child.wait().expect("its child");
    assert_eq!(status.code(), Some(0));
}
