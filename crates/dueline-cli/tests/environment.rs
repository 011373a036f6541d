//! Goal: what the environment sets is what the server does, and a start tells what it found.
//! Method: the real binary under variables, its log, and commands against it.
#![cfg(test)]

mod support;

use std::net::TcpListener;

use support::server::Server;
use support::{Run, dueline, finish, run};

/// A timer for a receiver on this machine: taken only where private targets are allowed.
fn create_local(server: &Server) -> Run {
    server.run(&[
        "timer",
        "create",
        "orders",
        "a",
        "--in",
        "1h",
        "--url",
        "http://127.0.0.1:9/",
    ])
}

#[test]
fn private_targets_are_allowed_by_a_variable_in_every_spelling_of_yes_and_no() {
    for (value, allowed) in [("1", true), ("yes", true), ("0", false), ("false", false)] {
        let folder = tempfile::tempdir().expect("a folder");
        let variable = ("DUELINE_ALLOW_PRIVATE_TARGETS", value);
        let server = Server::start_in_environment(folder.path(), &[variable]);
        let created = create_local(&server);
        if allowed {
            created.ok();
        } else {
            assert_eq!(created.code, Some(1), "{value}");
            assert!(
                created.stderr.contains("--allow-private-targets"),
                "{}",
                created.stderr
            );
        }
    }
}

#[test]
fn a_filter_of_the_log_that_cannot_be_read_is_told_and_the_usual_one_is_taken() {
    let folder = tempfile::tempdir().expect("a folder");
    let complains = |value: &str| {
        let server = Server::start_in_environment(folder.path(), &[("DUELINE_LOG", value)]);
        server
            .log()
            .iter()
            .any(|line| line.contains("DUELINE_LOG is no filter") && line.contains("info is taken"))
    };
    assert!(complains("info,dueline_server=loud"));
    assert!(!complains("info,dueline_server=debug"));
    assert!(!complains(""));
}

#[test]
fn a_start_after_a_kill_says_so_and_one_after_a_clean_stop_does_not() {
    let folder = tempfile::tempdir().expect("a folder");
    let recovered = |server: &Server| {
        let lines = server.log();
        let is_told = |line: &&String| line.contains("recovered from an unclean stop");
        lines.iter().filter(is_told).count()
    };
    let first = Server::start(folder.path());
    assert_eq!(recovered(&first), 0);
    let mut second = first.kill_and_restart();
    assert_eq!(recovered(&second), 1);
    if cfg!(unix) {
        second.signal("TERM");
        second.wait();
        assert_eq!(recovered(&Server::start(folder.path())), 0);
    }
}

#[test]
fn a_start_that_fails_says_once_why_and_which_flag_helps() {
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().to_str().expect("a path of text");
    let taken = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = taken.local_addr().expect("an address").to_string();
    let serve = ["serve", "--data", data, "--listen", &address];
    let refused = run(&serve).stderr;
    assert!(
        refused.starts_with(&format!("error: cannot listen on {address}: "))
            && refused.contains("--listen")
            && !refused.contains("?:"),
        "{refused}"
    );

    let server = Server::start(folder.path());
    let locked = finish(&mut dueline(&serve)).stderr;
    assert!(
        locked.contains("is in use") && locked.contains("--data"),
        "{locked}"
    );
    drop(server);

    let other = tempfile::tempdir().expect("a folder");
    std::fs::write(other.path().join("dueline.db"), "no database".repeat(1_000)).expect("a file");
    let data = other.path().to_str().expect("a path of text");
    let damaged = run(&["serve", "--data", data, "--listen", "127.0.0.1:0"]).stderr;
    let told = damaged.matches("not a database").count() + damaged.matches("Error code").count();
    assert!(
        damaged.contains("restore it from a backup") && told == 1,
        "{damaged}"
    );
}
