//! What the tests of the SQLite store share: a manual clock, a tiny executor, a folder.
#![allow(dead_code, reason = "each test file uses its own part of it")]

pub(crate) mod parking;

use std::future::Future;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::Duration;

use dueline::Bytes;
use dueline::rows::{PauseKey, TimerKey};
use dueline::runtime::Clock;
use dueline::store::{Batch, BatchOutcome, Key, NamespaceStore, Partition, Value, WakeStore};
use dueline::timers::{KindSet, TimerKind};
use dueline_sqlite::{OpenError, Options, SqliteStore};

#[derive(Debug, Default)]
pub(crate) struct ManualClock(AtomicI64);

impl ManualClock {
    pub(crate) fn set(&self, now_ms: i64) {
        self.0.store(now_ms, Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn wall_ms(&self) -> i64 {
        self.0.load(Ordering::SeqCst)
    }

    fn monotonic(&self) -> Duration {
        Duration::ZERO
    }
}

/// A folder with a database in it, and the clock of the stores on it.
pub(crate) struct Home {
    pub(crate) folder: tempfile::TempDir,
    pub(crate) clock: Arc<ManualClock>,
}

impl Home {
    pub(crate) fn new() -> Self {
        let clock = Arc::new(ManualClock::default());
        clock.set(1_000);
        Self {
            folder: tempfile::tempdir().unwrap(),
            clock,
        }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().join("timers.db")
    }

    pub(crate) fn options(&self) -> Options {
        Options::new(Arc::clone(&self.clock) as Arc<dyn Clock>)
            .busy_timeout(Duration::from_millis(50))
    }

    pub(crate) fn open(&self) -> SqliteStore {
        SqliteStore::open(self.path(), self.options()).unwrap()
    }

    /// The error that opening ends in.
    pub(crate) fn refused(&self) -> OpenError {
        SqliteStore::open(self.path(), self.options()).unwrap_err()
    }

    /// A connection of another program to the same file.
    pub(crate) fn stranger(&self) -> rusqlite::Connection {
        rusqlite::Connection::open(self.path()).unwrap()
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Runs a future on this thread.
pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut context = Context::from_waker(&waker);
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(value) => return value,
            Poll::Pending => std::thread::park(),
        }
    }
}

/// Runs a future on this thread as the native driver does: `before_park` before each wait.
pub(crate) fn block_on_parking<T>(store: &dyn WakeStore, future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut context = Context::from_waker(&waker);
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(value) => return value,
            Poll::Pending => {
                store.before_park();
                std::thread::park();
            }
        }
    }
}

/// Polls a future once, with a waker nobody listens to.
pub(crate) fn poll_once<F: Future + Unpin>(future: &mut F) -> Poll<F::Output> {
    std::pin::Pin::new(future).poll(&mut Context::from_waker(Waker::noop()))
}

pub(crate) fn partition(name: &str) -> Partition {
    Partition::new(name.to_owned()).unwrap()
}

pub(crate) const KIND: TimerKind = TimerKind(16);

pub(crate) fn timer(kind: TimerKind, due_ms: u64, generation: u64) -> Key {
    TimerKey {
        kind,
        due_ms,
        generation,
        reference: Bytes::from_static(b"ref"),
    }
    .encode()
}

pub(crate) fn pause(kind: TimerKind) -> Key {
    PauseKey { kind }.encode()
}

pub(crate) fn apply(store: &dyn NamespaceStore, partition: &Partition, batch: Batch) {
    let outcome = block_on(store.apply(partition, batch)).unwrap();
    assert_eq!(outcome, BatchOutcome::Committed);
}

pub(crate) fn get(store: &dyn NamespaceStore, partition: &Partition, key: &str) -> Option<Value> {
    block_on(store.get(partition, &Key::from(key.to_owned()))).unwrap()
}

/// Every wake of every kind, as (time, partition, kind).
pub(crate) fn wakes(store: &dyn WakeStore) -> Vec<(u64, String, u8)> {
    let page = block_on(store.due_wakes(&KindSet::all(), u64::MAX, None, 10_000)).unwrap();
    assert!(page.next.is_none());
    page.wakes
        .into_iter()
        .map(|wake| (wake.at_ms, wake.partition.to_string(), wake.kind.0))
        .collect()
}

/// Starts a test of this binary as a process of its own, behind a shell script that runs in a mount
/// namespace of its own with the folder as `$FOLDER`. Whoever is no superuser gets a user namespace
/// too; where the system forbids even that, the test fails rather than say nothing.
pub(crate) fn in_namespace(script: &str, test: &str, folder: &std::path::Path) {
    let script = format!("{script} || exit 77; exec \"$0\" --exact {test} --nocapture");
    let child = std::process::Command::new("unshare")
        .args(["--user", "--map-root-user", "--mount", "sh", "-c", &script])
        .arg(std::env::current_exe().unwrap())
        .env("FOLDER", folder)
        .output()
        .expect("unshare, of util-linux, makes the mount that this test needs");
    let said = String::from_utf8_lossy(&child.stdout);
    let errors = String::from_utf8_lossy(&child.stderr);
    assert!(
        child.status.code() != Some(77) && !errors.starts_with("unshare:"),
        "this test mounts a file system in a namespace of its own, which was refused: {errors}"
    );
    assert!(child.status.success(), "{said}\n{errors}");
    assert!(said.contains("1 passed"), "{said}");
}
