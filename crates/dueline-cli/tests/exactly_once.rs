//! Goal: effects in the batch happen exactly once, whenever the process dies. Method: 1,000 timers each add 1
//! to a counter row of their partition; the process that fires them is this test's own binary, started
//! again and killed (SIGKILL) while it starts, recovers and commits. In the end the counter says 1,000,
//! no timer is left, and none stands claimed or dead.
#![cfg(test)]

mod support;

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use bytes::Bytes;
use dueline::BoxFuture;
use dueline::store::{Batch, NamespaceStore, Partition};
use dueline::timers::{
    DueTimer, Engine, Fired, HandlerError, Policy, Registration, Registry, Timer, TimerCtx,
    TimerHandler, TimerKind, Timers,
};
use dueline_sqlite::inspect::inspect;
use dueline_sqlite::{Options, SqliteStore};
use dueline_tokio::{Driver, DriverStore, system_runtime};
use rusqlite::{Connection, OptionalExtension};
use support::{now_ms, wait_for};

const KIND: TimerKind = TimerKind(16);
const TIMERS: u64 = 1_000;
const COUNTER: &str = "counter";
/// Says to the child where its database is.
const CHILD: &str = "EXACTLY_ONCE_CHILD_DATABASE";

struct AddOne;

impl TimerHandler for AddOne {
    fn fire<'a>(
        &'a self,
        ctx: &'a TimerCtx<'a>,
        _: &'a DueTimer,
    ) -> BoxFuture<'a, Result<Fired, HandlerError>> {
        Box::pin(async move {
            let seen = ctx.get(&Bytes::from_static(COUNTER.as_bytes())).await?;
            let count = match &seen {
                Some(text) => std::str::from_utf8(text)?.parse::<u64>()?,
                None => 0,
            };
            let batch = Batch::new().require_unchanged(COUNTER, seen);
            Ok(Fired::Done(batch.put(COUNTER, (count + 1).to_string())))
        })
    }
}

fn partition() -> Partition {
    Partition::new("tenant").expect("a name")
}

/// Not a test of its own: the process that fires, until it is killed.
#[test]
fn child() {
    let Some(database) = std::env::var_os(CHILD) else {
        return;
    };
    let async_runtime = tokio::runtime::Runtime::new().expect("a runtime");
    async_runtime.block_on(async {
        let runtime = system_runtime().expect("a runtime");
        let options = Options::new(Arc::clone(runtime.clock()));
        let store = SqliteStore::open(PathBuf::from(database), options).expect("the store");
        let store = DriverStore::from(Arc::new(store));
        // A short deadline, so that what was claimed when the process died comes back soon.
        let add_one = Registration::inline(AddOne).group_max(16).deadline_ms(200);
        let registry = Registry::new()
            .with(KIND, add_one)
            .expect("a kind of the application");
        let engine = Engine::new(store.to_store(), runtime, registry);
        let _driver = Driver::builder(engine, store).start().expect("the driver");
        std::future::pending::<()>().await;
    });
}

fn start_child(database: &Path) -> Child {
    Command::new(std::env::current_exe().expect("this test"))
        .args(["--exact", "child", "--nocapture"])
        .env(CHILD, database)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("this test starts")
}

fn kill(mut child: Child) {
    child.kill().expect("the process is ours");
    child.wait().expect("the process is ours");
}

/// The counter as it stands in the file.
fn counter(database: &Path) -> u64 {
    let connection = Connection::open(database).expect("the database");
    let value: Option<Vec<u8>> = connection
        .query_row(
            "SELECT value FROM kv WHERE key = CAST('counter' AS BLOB)",
            [],
            |row| row.get(0),
        )
        .optional()
        .expect("the counter");
    value.map_or(0, |text| {
        String::from_utf8(text)
            .expect("text")
            .parse()
            .expect("a number")
    })
}

/// Schedules the timers, due over two seconds.
fn seed(database: &Path) {
    let runtime = system_runtime().expect("a runtime");
    let options = Options::new(Arc::clone(runtime.clock()));
    let sqlite = SqliteStore::open(database, options).expect("the store");
    let store: Arc<dyn NamespaceStore> = Arc::new(sqlite.clone());
    let due_ms = now_ms() + 200;
    let timers = (0..TIMERS)
        .map(|n| {
            (
                Timer::new(KIND, format!("t{n}")).due_at(due_ms + 2 * n),
                Policy::Replace,
            )
        })
        .collect();
    let async_runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let scheduled =
        async_runtime.block_on(Timers::new(store, runtime).schedule_many(&partition(), timers));
    assert!(scheduled.iter().all(Result::is_ok));
    sqlite.close();
}

#[test]
fn a_thousand_increments_survive_nineteen_kills() {
    let folder = tempfile::tempdir().expect("a folder");
    let database = folder.path().join("counter.db");
    seed(&database);
    // While it starts and recovers: after 0, 7, 14, ... milliseconds, whatever it is doing then.
    for step in 0..10 {
        let child = start_child(&database);
        let started_ms = now_ms();
        wait_for("the moment of a kill", || {
            (now_ms() >= started_ms + 7 * step).then_some(())
        });
        kill(child);
    }
    // While it commits: when the counter has passed each mark.
    for mark in (100..1_000).step_by(100) {
        let child = start_child(&database);
        wait_for("increments", || (counter(&database) >= mark).then_some(()));
        kill(child);
    }
    let child = start_child(&database);
    wait_for("the last increments", || {
        (counter(&database) >= TIMERS).then_some(())
    });
    wait_for("an empty lane", || {
        let found = inspect(&database, now_ms())
            .expect("a look")
            .contents
            .expect("contents");
        found
            .kinds
            .values()
            .all(|kind| kind.timers == 0)
            .then_some(())
    });
    kill(child);
    assert_eq!(counter(&database), TIMERS);
    let contents = inspect(&database, now_ms())
        .expect("a look")
        .contents
        .expect("contents");
    assert!(
        contents.kinds.is_empty(),
        "something is left: {:?}",
        contents.kinds
    );
    assert_eq!((contents.quarantined, contents.names_adrift.count), (0, 0));
}
