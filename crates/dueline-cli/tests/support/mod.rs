//! Runs the real binary and reads what it says.

use std::process::{Command, Output, Stdio};

/// What one run of the binary left behind.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
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
