//! Goal: a write lock that another process holds makes the driver wait, not lose: clear errors and
//! partitions held back meanwhile, and afterwards everything fires once, no attempt charged.
//! Method: this test binary, started again, takes the lock and keeps it until it is told to let go.
#![cfg(test)]
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test fails by panicking, and its child process speaks on its standard output"
)]

mod rig;

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use dueline::runtime::Runtime;
use dueline::store::{Batch, StoreErrorKind};
use dueline::timers::{Engine, Fired, Policy, Registration, Timer, TimerError};
use dueline_sqlite::{Options, SqliteStore};
use dueline_testkit::handler;
use dueline_tokio::{Driver, DriverStore, Handle, system_runtime};
use rig::{CALLING, Caller, Door, LOGGED, Log, left, named, registry_of, schedule, until};

const CHILD_PATH: &str = "DUELINE_TEST_LOCKS_PATH";
const PARTITIONS: [&str; 4] = ["a", "b", "c", "d"];

/// Another process that holds the write lock.
struct Stranger(Child);

impl Stranger {
    /// Returns once the lock is held.
    fn lock(path: &Path) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "child_that_holds_the_write_lock", "--nocapture"])
            .env(CHILD_PATH, path)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.as_mut().unwrap()).lines();
        assert!(lines.any(|line| line.unwrap().ends_with("locked")));
        Self(child)
    }

    fn let_go(mut self) {
        self.0.stdin.take().unwrap().write_all(b"go\n").unwrap();
        assert!(self.0.wait().unwrap().success());
    }
}

/// Does nothing unless another test starts it as a process of its own.
#[test]
fn child_that_holds_the_write_lock() {
    let Some(path) = std::env::var_os(CHILD_PATH) else {
        return;
    };
    let connection = rusqlite::Connection::open(path).unwrap();
    connection.busy_timeout(Duration::from_secs(60)).unwrap();
    connection.execute_batch("BEGIN IMMEDIATE").unwrap();
    println!("\nlocked");
    // The end of the other process, too, is a word to let go.
    let _ = std::io::stdin().read(&mut [0; 1]).unwrap();
    connection.execute_batch("ROLLBACK").unwrap();
}

/// Writes one row for each timer, which must not be there yet, and logs the attempt.
fn once(log: &Arc<Log>) -> Registration {
    let log = Arc::clone(log);
    Registration::inline(handler(move |_, timer| {
        log.push(format!("attempt {}", timer.attempt()));
        let row = format!("fired/{}", timer.generation());
        let effect = Batch::new().require_absent(row.clone()).put(row, "x");
        Box::pin(async { Ok(Fired::Done(effect)) })
    }))
    .group_max(4)
}

fn start(path: &Path, runtime: &Runtime, runs: &Arc<Log>, calls: &Arc<Log>) -> Handle {
    let options = Options::new(Arc::clone(runtime.clock()));
    let options = options.busy_timeout(Duration::from_millis(300));
    let store = DriverStore::from(Arc::new(SqliteStore::open(path, options).unwrap()));
    let door = Door::closed();
    door.open();
    let log = Arc::clone(calls);
    let caller = Registration::detached(Caller { log, door });
    let registry = registry_of(LOGGED, once(runs)).with(CALLING, caller);
    let engine = Engine::new(store.to_store(), runtime.clone(), registry.unwrap());
    let driver = Driver::builder(engine, store).without_audit();
    driver.start().unwrap()
}

#[tokio::test]
async fn a_write_lock_of_another_process_holds_timers_back_and_they_fire_once_when_it_is_let_go() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("timers.db");
    let runtime = system_runtime().unwrap();
    let (runs, calls) = (Arc::new(Log::default()), Arc::new(Log::default()));
    let handle = start(&path, &runtime, &runs, &calls);
    handle.pause();
    for name in PARTITIONS {
        for number in 0..5 {
            let timer = Timer::new(LOGGED, format!("t{number}"));
            schedule(handle.timers(), name, timer.named()).await;
        }
        schedule(handle.timers(), name, Timer::new(CALLING, "call").named()).await;
    }
    let stranger = Stranger::lock(&path);
    handle.resume();
    until(&runtime, "every partition to be held back", || {
        handle.status().partitions_held_back == PARTITIONS.len()
    })
    .await;
    let (a, timer) = (named("a"), Timer::new(LOGGED, "late"));
    let refused = handle.timers().schedule(&a, timer, Policy::Replace);
    let TimerError::Store(error) = refused.await.unwrap_err() else {
        panic!("not the store's own answer");
    };
    assert_eq!(error.kind(), StoreErrorKind::Unavailable);
    assert!(error.to_string().contains("busy"), "{error}");
    assert_eq!(left(&handle, "a", LOGGED).await, 5, "reads go on");
    let status = handle.status();
    assert_eq!((status.totals.fired, status.totals.failed), (0, 0));
    assert_eq!(calls.len(), 0, "no call without its claim");

    stranger.let_go();
    until(&runtime, "everything to fire", || {
        handle.status().totals.fired >= 24
    })
    .await;
    rig::run_all(&handle).await;
    let totals = handle.status().totals;
    assert_eq!((totals.fired, totals.failed, totals.dead), (24, 0, 0));
    assert_eq!(calls.len(), 4);
    assert!(runs.lines().iter().all(|line| line == "attempt 1"));
    for name in PARTITIONS {
        for kind in [LOGGED, CALLING] {
            assert_eq!(left(&handle, name, kind).await, 0);
        }
    }
    assert!(handle.shutdown(Duration::from_secs(30)).await.finished);
}
