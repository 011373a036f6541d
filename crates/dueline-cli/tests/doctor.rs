//! Goal: doctor tells a healthy directory from one that needs somebody, says what to do, and changes nothing
//! unless it is told to. Method: a server makes a directory, a stranger damages it, doctor looks.
#![cfg(test)]

mod support;

use std::path::Path;

use rusqlite::Connection;
use serde_json::Value;
use support::receiver::Receiver;
use support::server::Server;
use support::{Run, run};

/// A directory with one timer, due in an hour; its server was stopped or killed.
fn directory(stopped_cleanly: bool) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let receiver = Receiver::start();
    let mut server = Server::start(folder.path());
    let create = [
        "timer",
        "create",
        "orders",
        "a",
        "--in",
        "1h",
        "--url",
        &receiver.url,
    ];
    server.run(&create).ok();
    if stopped_cleanly {
        server.signal("TERM");
        server.wait();
    } else {
        server.kill();
    }
    folder
}

fn doctor(folder: &Path, flags: &[&str]) -> Run {
    let mut arguments = vec!["doctor", "--data", folder.to_str().expect("a path of text")];
    arguments.extend(flags);
    run(&arguments)
}

/// The finding of one check.
fn finding(folder: &Path, check: &str) -> (Option<i32>, String, String) {
    let run = doctor(folder, &["--output", "json"]);
    let report: Value = serde_json::from_str(&run.stdout).expect("a report");
    let findings = report["findings"].as_array().expect("findings");
    let found = findings
        .iter()
        .find(|finding| finding["check"] == check)
        .expect("the check");
    let text = |name: &str| found[name].as_str().expect("a text").to_owned();
    (run.code, text("level"), text("detail"))
}

fn stranger(folder: &Path, sql: &str) {
    let connection = Connection::open(folder.join("dueline.db")).expect("the database");
    connection.execute(sql, []).expect("the statement");
}

#[test]
fn a_directory_in_use_one_stopped_and_one_killed_are_healthy_and_told_apart() {
    let stopped = directory(true);
    assert_eq!(
        finding(stopped.path(), "server").2,
        "not running; stopped cleanly"
    );
    let killed = directory(false);
    let (code, level, detail) = finding(killed.path(), "server");
    assert_eq!((code, level.as_str()), (Some(0), "note"));
    assert!(detail.contains("did not stop cleanly"), "{detail}");
    let _server = Server::start(stopped.path());
    assert_eq!(
        finding(stopped.path(), "server").2,
        "a server is using the directory"
    );
    assert_eq!(finding(stopped.path(), "timers").2, "1 in 1 partition");
}

#[test]
fn a_missing_wake_is_a_problem_until_it_is_repaired() {
    let folder = directory(true);
    stranger(folder.path(), "DELETE FROM wake");
    let (code, level, detail) = finding(folder.path(), "wakes");
    assert_eq!((code, level.as_str()), (Some(1), "problem"));
    assert!(
        detail.starts_with("1 missing or late") && detail.contains("orders kind"),
        "{detail}"
    );
    assert_eq!(
        finding(folder.path(), "wakes").0,
        Some(1),
        "a look repairs nothing"
    );
    let repaired = doctor(folder.path(), &["--repair"]).ok();
    assert!(
        repaired.contains("1 were missing and are set"),
        "{repaired}"
    );
    assert_eq!(finding(folder.path(), "wakes").0, Some(0));
}

#[test]
fn a_repair_while_a_server_runs_is_refused() {
    let folder = directory(true);
    let _server = Server::start(folder.path());
    let refused = doctor(folder.path(), &["--repair"]);
    assert_eq!(refused.code, Some(1));
    assert!(refused.stderr.contains("is in use"), "{}", refused.stderr);
}

#[test]
fn a_newer_schema_and_a_kind_of_another_program_are_named() {
    let folder = directory(true);
    stranger(
        folder.path(),
        "INSERT INTO kv (part, key, value) SELECT id, x'77002000000190000000000000000000000001', \
         x'010000000000019000000000' FROM part",
    );
    stranger(
        folder.path(),
        "INSERT INTO wake (kind, at, part) SELECT 32, 1, id FROM part",
    );
    let (code, level, detail) = finding(folder.path(), "kinds");
    assert_eq!((code, level.as_str()), (Some(0), "note"));
    assert!(detail.contains("kind 32: 1 timer"), "{detail}");
    stranger(folder.path(), "UPDATE meta SET schema = 99");
    let (code, level, detail) = finding(folder.path(), "schema");
    assert_eq!((code, level.as_str()), (Some(1), "problem"));
    assert!(detail.contains("use the newer binary"), "{detail}");
}

#[test]
fn a_damaged_file_is_a_problem_that_says_to_restore_a_backup() {
    let folder = directory(true);
    let path = folder.path().join("dueline.db");
    std::fs::write(&path, vec![b'x'; 8_192]).expect("the file");
    for log in ["dueline.db-wal", "dueline.db-shm"] {
        std::fs::write(folder.path().join(log), []).expect("the log");
    }
    let run = doctor(folder.path(), &[]);
    assert_eq!(run.code, Some(1));
    assert!(
        run.stderr.contains("restore it from a backup"),
        "{}",
        run.stderr
    );
}

#[test]
fn a_directory_that_is_not_there_or_empty_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let empty = doctor(folder.path(), &[]);
    assert_eq!(empty.code, Some(1));
    assert!(
        empty.stderr.contains("there is no database"),
        "{}",
        empty.stderr
    );
    let missing = doctor(&folder.path().join("missing"), &[]);
    assert!(
        missing.stderr.contains("there is no directory"),
        "{}",
        missing.stderr
    );
    assert!(
        !folder.path().join("dueline.db").exists(),
        "a look makes no file"
    );
}

#[test]
fn a_log_and_a_database_that_lie_alone_are_problems() {
    let folder = directory(false);
    let database = folder.path().join("dueline.db");
    let log = folder.path().join("dueline.db-wal");
    let (kept_database, kept_log) = (
        std::fs::read(&database).expect("a database"),
        std::fs::read(&log).expect("a log"),
    );

    std::fs::remove_file(&log).expect("a log");
    let (code, level, detail) = finding(folder.path(), "size");
    assert_eq!((code, level.as_str()), (Some(1), "problem"));
    assert!(detail.contains("the log is gone"), "{detail}");

    std::fs::remove_file(&database).expect("a database");
    std::fs::write(&log, &kept_log).expect("the log again");
    let path = folder.path().to_str().expect("a path of text");
    for run in [
        doctor(folder.path(), &[]),
        run(&["serve", "--data", path, "--listen", "127.0.0.1:0"]),
    ] {
        assert_eq!(run.code, Some(1), "{}", run.stderr);
        assert!(
            run.stderr.contains("put the database back"),
            "{}",
            run.stderr
        );
    }

    std::fs::write(&database, kept_database).expect("the database again");
    let (code, _, detail) = finding(folder.path(), "timers");
    assert_eq!(code, Some(0));
    assert!(detail.starts_with("1 in 1 partition"), "{detail}");
}
