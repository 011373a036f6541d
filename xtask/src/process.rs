//! Running other programs: loudly, from the root of the workspace, with errors that say what to do.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;

use crate::test_counts::TestCounts;

/// Why a check failed, in words for a person, and how many tests ran, if it ran any.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) text: String,
    pub(crate) tests: Option<TestCounts>,
}

impl From<String> for Failure {
    fn from(text: String) -> Self {
        Self { text, tests: None }
    }
}

/// The root of the workspace: the folder above this crate.
pub(crate) fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_path_buf()
}

/// Makes the command that runs `program` in the root, and shows it.
///
/// A first argument of the form `NAME=value` before the program is not supported: use [`Command::env`].
pub(crate) fn command(program: &str, arguments: &[&str]) -> Command {
    println!("$ {program} {}", arguments.join(" "));
    quiet_command(program, arguments)
}

/// Runs the command with its output on ours; anything but success is a failure.
pub(crate) fn run(mut command: Command) -> Result<(), Failure> {
    let name = display_name(&command);
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{name} ended with {status}").into()),
        Err(error) => Err(format!("{name} could not be started: {error}").into()),
    }
}

/// Runs the command with its output on ours and keeps a copy of both streams.
///
/// Returns the lines of both streams, each in its own order, and whether the command succeeded.
pub(crate) fn run_and_keep(mut command: Command) -> Result<(Vec<String>, bool), Failure> {
    let name = display_name(&command);
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| format!("{name} could not be started: {error}"))?;
    let errors = child
        .stderr
        .take()
        .map(|stream| thread::spawn(move || keep(stream)));
    let mut lines = child.stdout.take().map(keep).unwrap_or_default();
    if let Some(reader) = errors {
        lines.extend(reader.join().unwrap_or_default());
    }
    match child.wait() {
        Ok(status) => Ok((lines, status.success())),
        Err(error) => Err(format!("{name} could not be awaited: {error}").into()),
    }
}

/// Whether `program arguments` exists and succeeds; its output is thrown away.
pub(crate) fn succeeds(program: &str, arguments: &[&str]) -> bool {
    let mut command = quiet_command(program, arguments);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// The standard output of `program arguments`, or nothing if it fails.
pub(crate) fn output_of(program: &str, arguments: &[&str]) -> Option<String> {
    let output = quiet_command(program, arguments).output().ok()?;
    output
        .status
        .success()
        .then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

fn quiet_command(program: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.args(arguments).current_dir(root());
    command
}

fn display_name(command: &Command) -> String {
    let mut words = vec![command.get_program().to_string_lossy().into_owned()];
    words.extend(
        command
            .get_args()
            .take(2)
            .map(|word| word.to_string_lossy().into_owned()),
    );
    format!("`{}`", words.join(" "))
}

fn keep(stream: impl Read) -> Vec<String> {
    let mut lines = Vec::new();
    let mut reader = BufReader::new(stream);
    let mut bytes = Vec::new();
    while reader
        .read_until(b'\n', &mut bytes)
        .is_ok_and(|count| count > 0)
    {
        let line = String::from_utf8_lossy(&bytes).trim_end().to_owned();
        // A reader that went away must not stop the tests; the copy below is what we judge by.
        let _ = writeln!(std::io::stdout().lock(), "{line}");
        lines.push(line);
        bytes.clear();
    }
    lines
}
