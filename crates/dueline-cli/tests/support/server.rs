//! A server process that can be killed and started again on the same data directory.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use super::{Run, dueline, run, wait_for};

/// A running server, killed when it goes out of scope.
#[derive(Debug)]
pub(crate) struct Server {
    child: Child,
    pub(crate) address: String,
    data: PathBuf,
    log: Arc<Mutex<Vec<String>>>,
}

impl Server {
    /// Starts a server that may send webhooks to this machine.
    pub(crate) fn start(data: &Path) -> Self {
        Self::start_with(data, &[])
    }

    pub(crate) fn start_with(data: &Path, flags: &[&str]) -> Self {
        Self::of(data, serving(data, flags))
    }

    /// Starts a server without flags of its own, under these variables.
    pub(crate) fn start_in_environment(data: &Path, variables: &[(&str, &str)]) -> Self {
        let data_text = data.to_str().expect("a path of text");
        let mut command = dueline(&["serve", "--data", data_text, "--listen", "127.0.0.1:0"]);
        command.envs(variables.iter().copied());
        Self::of(data, command)
    }

    fn of(data: &Path, command: Command) -> Self {
        let mut child = spawn(command);
        let log = Arc::new(Mutex::new(Vec::new()));
        let (lines, stderr) = (Arc::clone(&log), child.stderr.take().expect("a pipe"));
        thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                lines.lock().expect("nobody panicked").push(line);
            }
        });
        let address = wait_for("the start-up line", || {
            if let Some(status) = child.try_wait().expect("its child") {
                panic!("the server ended with {status}: {log:?}");
            }
            let lines = log.lock().expect("nobody panicked");
            let line = lines
                .iter()
                .find_map(|line| line.split_once(" listens on http://"))?;
            Some(line.1.split(',').next().expect("an address").to_owned())
        });
        Self {
            child,
            address,
            data: data.to_owned(),
            log,
        }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) fn log(&self) -> Vec<String> {
        self.log.lock().expect("nobody panicked").clone()
    }

    /// SIGKILL, and a new process on the same directory.
    pub(crate) fn kill_and_restart(self) -> Self {
        let data = self.data.clone();
        self.kill();
        Self::start(&data)
    }

    /// SIGKILL.
    pub(crate) fn kill(mut self) {
        self.child.kill().expect("the process is ours");
        self.child.wait().expect("the process is ours");
    }

    /// Sends a signal by its name.
    pub(crate) fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        let sent = Command::new("kill")
            .args([&format!("-{name}"), &id])
            .status();
        assert!(sent.expect("kill is there").success());
    }

    /// Waits for its end.
    pub(crate) fn wait(&mut self) -> ExitStatus {
        wait_for("the end of the server", || {
            self.child.try_wait().expect("its child")
        })
    }

    pub(crate) fn is_running(&mut self) -> bool {
        self.child.try_wait().expect("its child").is_none()
    }

    /// Runs a command of the binary against this server.
    pub(crate) fn run(&self, arguments: &[&str]) -> Run {
        let url = self.url();
        let mut whole = arguments.to_vec();
        whole.extend(["--server", &url]);
        run(&whole)
    }
}

/// Starts a server and kills it this long afterwards, ready or not.
#[allow(
    clippy::disallowed_methods,
    reason = "the moment of the kill is meant to be any"
)]
pub(crate) fn start_and_kill(data: &Path, flags: &[&str], after: Duration) {
    let mut child = spawn(serving(data, flags));
    let mut errors = child.stderr.take().expect("a pipe");
    thread::sleep(after);
    let ended = child.try_wait().expect("its child");
    child.kill().expect("the process is ours");
    child.wait().expect("the process is ours");
    let mut text = String::new();
    let _ = errors.read_to_string(&mut text);
    assert!(
        ended.is_none(),
        "the server ended by itself, {ended:?}: {text}"
    );
}

fn serving(data: &Path, flags: &[&str]) -> Command {
    let data = data.to_str().expect("a path of text");
    let mut arguments = vec!["serve", "--data", data, "--listen", "127.0.0.1:0"];
    arguments.push("--allow-private-targets");
    arguments.extend(flags);
    dueline(&arguments)
}

fn spawn(mut command: Command) -> Child {
    command
        .stderr(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .expect("the binary starts")
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended already; then there is nothing to kill.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
