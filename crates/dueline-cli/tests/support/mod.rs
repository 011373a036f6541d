//! Runs the real binary, talks to it, and receives its webhooks.
#![allow(dead_code, reason = "each test file uses its own part of it")]

pub(crate) mod http;
pub(crate) mod receiver;
pub(crate) mod server;

use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// What one run of the binary left behind.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Run {
    /// The output of a run that did what it was asked.
    pub(crate) fn ok(self) -> String {
        assert_eq!(self.code, Some(0), "{}{}", self.stdout, self.stderr);
        self.stdout
    }

    /// The output as JSON of a run that did what it was asked.
    pub(crate) fn json(self) -> serde_json::Value {
        serde_json::from_str(&self.ok()).expect("the output is JSON")
    }
}

/// The binary with these arguments, in an environment without settings of the person who runs the tests.
pub(crate) fn dueline(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dueline"));
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("DUELINE_") {
            command.env_remove(name);
        }
    }
    command.args(arguments).stdin(Stdio::null());
    command
}

/// Runs the binary to its end.
pub(crate) fn run(arguments: &[&str]) -> Run {
    finish(&mut dueline(arguments))
}

/// Runs the command to its end.
pub(crate) fn finish(command: &mut Command) -> Run {
    let Output {
        status,
        stdout,
        stderr,
    } = command.output().expect("the binary starts");
    Run {
        code: status.code(),
        stdout: String::from_utf8(stdout).expect("the output is text"),
        stderr: String::from_utf8(stderr).expect("the complaints are text"),
    }
}

/// The machine's clock, which the server under test goes by, in milliseconds since 1970.
#[allow(
    clippy::disallowed_methods,
    reason = "the server under test is a process of its own"
)]
pub(crate) fn now_ms() -> u64 {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .expect("a clock after 1970");
    u64::try_from(since.as_millis()).expect("a clock before the end of time")
}

/// Waits until `condition` gives a value, and fails after a minute.
#[allow(
    clippy::disallowed_methods,
    reason = "the condition lies in another process"
)]
pub(crate) fn wait_for<T>(what: &str, mut condition: impl FnMut() -> Option<T>) -> T {
    let started = Instant::now();
    loop {
        if let Some(value) = condition() {
            return value;
        }
        assert!(
            started.elapsed() < Duration::from_secs(60),
            "waited a minute for {what}"
        );
        std::thread::sleep(Duration::from_millis(10));
    }
}
