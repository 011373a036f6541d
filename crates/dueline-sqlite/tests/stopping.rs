//! Stops: by `close`, by dropping the last handle, by a kill. What was acknowledged is there
//! afterwards, and the next opening knows whether the stop was clean. A killed process is this test
//! binary started again.
#![cfg(test)]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test fails by panicking, and its child process speaks on its standard output"
)]

mod support;

use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};

use dueline::store::{Batch, StoreErrorKind, WakeStore};
use dueline_sqlite::{OpenError, SqliteStore};
use support::{Home, KIND, apply, block_on, block_on_parking, get, partition, timer};

const CHILD_PATH: &str = "DUELINE_TEST_CHILD_PATH";

#[test]
fn a_killed_process_leaves_its_commits_and_the_mark_of_an_unclean_stop() {
    let home = Home::new();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child_that_is_killed", "--nocapture"])
        .env(CHILD_PATH, home.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = Vec::new();
    child.stdout.take().unwrap().read_to_end(&mut said).unwrap();
    assert!(!child.wait().unwrap().success());
    let said = String::from_utf8_lossy(&said);
    let acknowledged: Vec<&str> = said
        .lines()
        .filter_map(|line| line.strip_prefix("acknowledged "))
        .collect();
    assert_eq!(acknowledged.len(), 20, "{said}");

    home.clock.set(9_000);
    let store = home.open();
    assert_eq!(store.unclean_opened_at_ms(), Some(9_000));
    for key in acknowledged {
        assert!(
            get(&store, &partition("a"), key).is_some(),
            "{key} was acknowledged"
        );
    }
    store.close();
    assert_eq!(home.open().unclean_opened_at_ms(), None);
}

/// Does nothing unless another test starts it as a process of its own.
#[test]
fn child_that_is_killed() {
    let Some(path) = std::env::var_os(CHILD_PATH) else {
        return;
    };
    let store = SqliteStore::open(path, Home::new().options()).unwrap();
    for index in 0..20 {
        let key = format!("row-{index}");
        apply(&store, &partition("a"), Batch::new().put(key.clone(), "x"));
        println!("acknowledged {key}");
    }
    std::process::abort();
}

#[test]
fn kills_at_any_moment_lose_nothing_that_was_acknowledged() {
    let home = Home::new();
    let mut acknowledged = Vec::new();
    for round in 0..4 {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "child_that_writes_for_ever", "--nocapture"])
            .env(CHILD_PATH, home.path())
            .env("DUELINE_TEST_CHILD_ROUND", round.to_string())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        for _ in 0..30 + 37 * round {
            acknowledged.push(lines.next().unwrap().unwrap());
        }
        child.kill().unwrap();
        acknowledged.extend(lines.map_while(Result::ok));
        child.wait().unwrap();

        let store = home.open();
        assert_eq!(store.unclean_opened_at_ms(), Some(1_000));
        let rows = acknowledged
            .iter()
            .filter_map(|line| line.strip_prefix("acknowledged "));
        let mut seen = 0;
        for (name, key) in rows.filter_map(|row| row.split_once(' ')) {
            seen += 1;
            assert!(get(&store, &partition(name), key).is_some(), "{name} {key}");
        }
        assert!(seen > 20, "{seen}");
        let audit = block_on(store.audit_wakes(None, 100)).unwrap();
        assert_eq!((audit.repairs, audit.next), (vec![], None));
        store.close();
        let check: String = home
            .stranger()
            .query_row("PRAGMA integrity_check", [], |row| row.get(0))
            .unwrap();
        assert_eq!(check, "ok");
    }
}

/// Does nothing unless another test starts it as a process of its own.
#[test]
fn child_that_writes_for_ever() {
    let (Some(path), Ok(round)) = (
        std::env::var_os(CHILD_PATH),
        std::env::var("DUELINE_TEST_CHILD_ROUND"),
    ) else {
        return;
    };
    let store = SqliteStore::open(path, Home::new().options()).unwrap();
    std::thread::scope(|scope| {
        for thread in 0_u64..4 {
            let (store, round) = (&store, &round);
            scope.spawn(move || {
                let blocking = store.for_blocking_threads().unwrap();
                let name = format!("p{thread}");
                for index in 0_u64.. {
                    let key = format!("row-{round}-{index}");
                    let batch = Batch::new()
                        .require_absent(key.clone())
                        .put(key.clone(), vec![7; 300])
                        .put(timer(KIND, 5_000 - index.min(4_000), index), "x")
                        .delete(timer(
                            KIND,
                            5_001 - index.min(4_000),
                            index.saturating_sub(1),
                        ));
                    if thread % 2 == 0 {
                        apply(store, &partition(&name), batch);
                    } else {
                        let name = partition(&name);
                        let done = block_on_parking(&*blocking, blocking.apply(&name, batch));
                        assert!(done.unwrap().is_committed());
                    }
                    println!("acknowledged {name} {key}");
                }
            });
        }
    });
}

#[test]
fn dropping_the_last_handle_is_a_clean_stop() {
    let home = Home::new();
    let store = home.open();
    let blocking = store.for_blocking_threads().unwrap();
    apply(&store, &partition("a"), Batch::new().put("row", "x"));
    drop(store);
    assert!(
        matches!(home.refused(), OpenError::Locked { .. }),
        "a handle is left"
    );
    drop(blocking);
    assert_eq!(home.open().unclean_opened_at_ms(), None);
}

#[test]
fn a_closed_store_is_unavailable_through_every_handle() {
    let home = Home::new();
    let store = home.open();
    let blocking = store.for_blocking_threads().unwrap();
    assert_eq!(get(&*blocking, &partition("a"), "row"), None);
    store.close();
    store.close();
    let a = partition("a");
    for handle in [&store as &dyn WakeStore, &*blocking] {
        let batch = Batch::new().put("row", "x");
        let apply = block_on(handle.apply(&a, batch)).unwrap_err();
        let read = block_on(handle.get(&a, &"row".into())).unwrap_err();
        let audit = block_on(handle.audit_wakes(None, 1)).unwrap_err();
        let probe = block_on(handle.probe()).unwrap_err();
        for error in [apply, read, audit, probe] {
            assert_eq!(error.kind(), StoreErrorKind::Unavailable, "{error}");
            assert!(error.to_string().contains("closed"), "{error}");
        }
    }
}
