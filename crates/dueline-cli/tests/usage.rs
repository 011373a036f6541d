//! Goal: whoever types a command wrong, or has no server running, is told what to do, and a script can tell
//! the cases apart. Method: the real binary, its output and its exit code (1 failed, 2 not understood).
#![cfg(test)]

mod support;

use std::net::TcpListener;

use support::{dueline, finish, run};

#[test]
fn help_names_every_noun_and_every_verb_has_help_of_its_own() {
    let help = run(&["--help"]);
    assert_eq!(help.code, Some(0));
    for noun in ["serve", "timer", "dead", "partition", "doctor"] {
        assert!(
            help.stdout.contains(&format!("\n  {noun} ")),
            "{}",
            help.stdout
        );
    }
    let verbs = [
        "timer create",
        "timer get",
        "timer list",
        "timer update",
        "timer cancel",
        "timer fire",
        "dead list",
        "dead requeue",
        "dead purge",
        "partition list",
        "serve",
        "doctor",
    ];
    for verb in verbs {
        let words: Vec<&str> = verb.split(' ').chain(["--help"]).collect();
        let help = run(&words);
        assert_eq!(help.code, Some(0), "{verb}");
        assert!(
            help.stdout.contains(&format!("Usage: dueline {verb}")),
            "{}",
            help.stdout
        );
        let undescribed = help
            .stdout
            .lines()
            .any(|line| line.trim_start().starts_with("<") && !line.contains("  "));
        assert!(
            !undescribed,
            "an argument without a description:\n{}",
            help.stdout
        );
    }
}

#[test]
fn a_command_that_is_not_understood_exits_with_2_and_says_why() {
    let cases: &[(&[&str], &str)] = &[
        (&[], "Usage: dueline"),
        (&["timer"], "Usage: dueline timer"),
        (&["timers", "list"], "unrecognized subcommand 'timers'"),
        (&["timer", "get", "orders"], "<ID>"),
        (
            &["timer", "create", "orders", "a", "--url", "http://x"],
            "--at TIME or --in DELAY",
        ),
        (
            &["timer", "create", "orders", "a", "--in", "1s"],
            "--url URL",
        ),
        (
            &["timer", "create", "orders", "--in", "1s", "--at", "x"],
            "cannot be used with",
        ),
        (&["timer", "create", "orders", "--if-absent"], "<ID>"),
        (
            &["timer", "create", "orders", "a", "--payload", "text"],
            "a text needs quotes of its own",
        ),
        (
            &["timer", "create", "orders", "a", "--header", "x"],
            "`name: value`",
        ),
        (&["timer", "update", "orders", "a"], "nothing to change"),
        (&["timer", "get", "a/b", "c"], "must not hold `/`"),
        (&["timer", "get", "a", ".."], "nor be `.` or `..`"),
        (&["timer", "list", "orders", "--limit", "0"], "--limit"),
        (&["dead", "requeue", "orders"], "--all"),
        (&["dead", "requeue", "orders"], "`dueline dead list`"),
        (
            &["timer", "create", "orders", "a", "--in", "-5m"],
            "`--in 0s` is due at once",
        ),
        (
            &["timer", "create", "orders", "--in", "--url", "http://x"],
            "30m",
        ),
        (
            &["dead", "requeue", "orders", "x", "--all"],
            "cannot be used with",
        ),
        (&["serve", "--grace", "soon"], "10s"),
        (&["serve", "--listen", "7431"], "write it as 127.0.0.1:7431"),
        (
            &["serve", "--listen", "localhost:7000"],
            "write it as 127.0.0.1:7431",
        ),
    ];
    for (arguments, words) in cases {
        let run = run(arguments);
        assert_eq!(run.code, Some(2), "{arguments:?}: {}", run.stderr);
        assert!(
            run.stderr.contains(words),
            "{arguments:?} should say {words:?}: {}",
            run.stderr
        );
        assert_eq!(run.stdout, "", "{arguments:?}");
    }
}

#[test]
fn help_tells_the_defaults_of_a_timer_and_the_variable_of_the_log() {
    let create = run(&["timer", "create", "--help"]).ok();
    for default in [
        "--attempts-max 20",
        "--retry-initial 5s",
        "--retry-max 10m",
        "--deadline 30s",
        "--envelope event",
    ] {
        assert!(create.contains(default), "{default}: {create}");
    }
    let serve = run(&["serve", "--help"]).ok();
    assert!(serve.contains("DUELINE_LOG"), "{serve}");
}

#[test]
fn a_wrong_value_in_the_environment_is_told_with_its_variable() {
    let cases = [
        (
            "DUELINE_ALLOW_PRIVATE_TARGETS",
            "--allow-private-targets",
            "maybe",
        ),
        ("DUELINE_LISTEN", "--listen", "localhost:7431"),
        ("DUELINE_GRACE", "--grace", "soon"),
        ("DUELINE_DURABILITY", "--durability", "none"),
    ];
    for (variable, flag, value) in cases {
        let run = finish(dueline(&["serve"]).env(variable, value));
        assert_eq!(run.code, Some(2), "{variable}");
        for words in [variable, flag, value] {
            assert!(run.stderr.contains(words), "{words}: {}", run.stderr);
        }
    }
    let typed = finish(dueline(&["serve", "--grace=soon"]).env("DUELINE_GRACE", "1s"));
    assert!(!typed.stderr.contains("DUELINE_GRACE"), "{}", typed.stderr);
}

/// An address on which nobody listens: it was ours until a moment ago.
fn silent_address() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    format!("http://{}", listener.local_addr().expect("an address"))
}

#[test]
fn without_a_server_the_command_says_how_to_start_one() {
    let server = silent_address();
    let run = run(&["timer", "list", "orders", "--server", &server]);
    assert_eq!(run.code, Some(1));
    assert!(
        run.stderr
            .starts_with(&format!("error: no server answers at {server}")),
        "{}",
        run.stderr
    );
    assert!(run.stderr.contains("dueline serve"), "{}", run.stderr);
}

#[test]
fn the_server_is_taken_from_the_environment_and_the_flag_wins() {
    let (from_environment, from_flag) = (silent_address(), silent_address());
    let by_environment =
        finish(dueline(&["partition", "list"]).env("DUELINE_SERVER", &from_environment));
    assert!(
        by_environment.stderr.contains(&from_environment),
        "{}",
        by_environment.stderr
    );
    let by_flag = finish(
        dueline(&["partition", "list", "--server", &from_flag])
            .env("DUELINE_SERVER", &from_environment),
    );
    assert!(by_flag.stderr.contains(&from_flag), "{}", by_flag.stderr);
}

#[test]
fn an_address_that_is_none_is_refused_with_an_example() {
    for address in [
        "localhost:7431",
        "ftp://127.0.0.1",
        "127.0.0.1",
        "http://127.0.0.1/?x",
    ] {
        let run = run(&["partition", "list", "--server", address]);
        assert_eq!(run.code, Some(1), "{address}");
        assert!(
            run.stderr.contains("write it like http://127.0.0.1:7431"),
            "{}",
            run.stderr
        );
    }
}

#[test]
fn programs_get_a_failure_as_json_on_the_standard_error() {
    let run = run(&[
        "partition",
        "list",
        "--output",
        "json",
        "--server",
        &silent_address(),
    ]);
    assert_eq!((run.code, run.stdout.as_str()), (Some(1), ""));
    assert!(
        run.stderr.trim_end().starts_with('{') && run.stderr.contains("no server answers"),
        "{}",
        run.stderr
    );
}

#[test]
fn a_payload_file_that_cannot_be_used_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let missing = folder.path().join("missing.json");
    let broken = folder.path().join("broken.json");
    std::fs::write(&broken, "{").expect("a file");
    for (path, words) in [
        (&missing, "cannot be read"),
        (&broken, "does not hold JSON"),
    ] {
        let path = path.to_str().expect("a path of text");
        let run = run(&["timer", "update", "orders", "a", "--payload-file", path]);
        assert_eq!(run.code, Some(1));
        assert!(
            run.stderr.contains(path) && run.stderr.contains(words),
            "{}",
            run.stderr
        );
    }
}

#[test]
fn a_machine_without_root_certificates_speaks_plain_http_and_is_told_what_https_needs() {
    let run_at = |server: &str| {
        let mut command = dueline(&["partition", "list", "--server", server]);
        let nothing = "/nonexistent";
        finish(
            command
                .env("SSL_CERT_FILE", nothing)
                .env("SSL_CERT_DIR", nothing),
        )
    };
    let plain = run_at(&silent_address());
    assert!(
        plain.stderr.contains("no server answers at"),
        "{}",
        plain.stderr
    );
    if cfg!(target_os = "linux") {
        let encrypted = run_at("https://127.0.0.1:1");
        assert!(
            encrypted.stderr.contains("root certificates"),
            "{}",
            encrypted.stderr
        );
    }
}
