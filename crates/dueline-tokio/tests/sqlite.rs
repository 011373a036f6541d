//! The driver over a real file, real clocks and real threads.
//!
//! Method: timers due within a moment, and waiting until each has run; the store then says that
//! nothing is left.
#![cfg(test)]
#![allow(
    clippy::expect_used,
    reason = "a test that cannot begin fails by panicking"
)]

mod rig;

use std::future::Future;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::task::{Context, Waker};
use std::time::Duration;

use dueline::runtime::Runtime;
use dueline::store::Batch;
use dueline::timers::{Engine, Fired, Policy, Registration, Timer, TimerKind};
use dueline_sqlite::{Options, SqliteStore};
use dueline_testkit::handler;
use dueline_tokio::{Driver, DriverStore, Handle, system_runtime};
use rig::{Door, LOGGED, Log, logging, named, registry_of, run_all, schedule};

fn start(path: &Path, runtime: &Runtime, registration: Registration) -> (Arc<SqliteStore>, Handle) {
    let options = Options::new(Arc::clone(runtime.clock())).busy_timeout(Duration::from_secs(60));
    let sqlite = Arc::new(SqliteStore::open(path, options).expect("opens"));
    let store = DriverStore::from(Arc::clone(&sqlite));
    let registry = registry_of(LOGGED, registration);
    let engine = Engine::new(store.to_store(), runtime.clone(), registry);
    let handle = Driver::builder(engine, store).start().expect("starts");
    (sqlite, handle)
}

#[tokio::test]
async fn timers_of_many_partitions_fire_once_each_and_never_early() {
    let folder = tempfile::tempdir().expect("a folder");
    let runtime = system_runtime().expect("a host");
    let log = Arc::new(Log::default());
    let of_handler = Arc::clone(&log);
    let checked = Registration::inline(handler(move |ctx, timer| {
        assert!(ctx.now_ms() >= timer.due_at_ms(), "early");
        of_handler.push(rig::name(ctx.partition(), timer.reference()));
        Box::pin(async { Ok(Fired::Done(Batch::new())) })
    }))
    .group_max(16);
    let (sqlite, handle) = start(&folder.path().join("timers.db"), &runtime, checked);
    let now_ms = runtime.now_ms();
    for number in 0..500_u64 {
        let timer = Timer::new(LOGGED, format!("t{number:03}")).due_at(now_ms + number);
        schedule(handle.timers(), &format!("p{}", number % 50), timer).await;
    }
    log.reached(500).await;
    run_all(&handle).await;
    let mut fired = log.lines();
    fired.sort();
    fired.dedup();
    assert_eq!((fired.len(), log.len()), (500, 500));
    assert_eq!(handle.status().totals.fired, 500);
    assert!(handle.shutdown(Duration::from_secs(10)).await.finished);
    sqlite.close();
}

#[tokio::test]
async fn a_restart_finds_what_is_due_in_the_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("timers.db");
    let (runtime, log) = (system_runtime().expect("a host"), Arc::new(Log::default()));
    let (sqlite, handle) = start(&path, &runtime, logging(&log));
    let in_a_moment = runtime.now_ms() + 50;
    handle.pause();
    schedule(
        handle.timers(),
        "a",
        Timer::new(LOGGED, "kept").due_at(in_a_moment),
    )
    .await;
    handle.shutdown(Duration::from_secs(10)).await;
    drop(handle);
    sqlite.close();
    drop(sqlite);

    let (_sqlite, _handle) = start(&path, &runtime, logging(&log));
    log.reached(1).await;
    assert!(runtime.now_ms() >= in_a_moment);
    assert_eq!(log.lines(), ["a/kept"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_that_are_cancelled_half_way_wake_the_driver_if_they_commit() {
    let folder = tempfile::tempdir().expect("a folder");
    let (runtime, log) = (system_runtime().expect("a host"), Arc::new(Log::default()));
    let (_sqlite, handle) = start(&folder.path().join("timers.db"), &runtime, logging(&log));
    run_all(&handle).await;
    let partition = named("a");
    for number in 0..20 {
        let timer = Timer::new(LOGGED, format!("t{number}"));
        let mut request = Box::pin(handle.timers().schedule(&partition, timer, Policy::Replace));
        let mut context = Context::from_waker(Waker::noop());
        assert!(
            request.as_mut().poll(&mut context).is_pending(),
            "it queues for the writer"
        );
        drop(request);
        log.reached(number + 1).await;
    }
}

#[tokio::test]
async fn the_commits_of_many_partitions_that_are_due_together_share_transactions() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("timers.db");
    let (runtime, log) = (system_runtime().expect("a host"), Arc::new(Log::default()));
    let (sqlite, handle) = start(&path, &runtime, logging(&log));
    handle.pause();
    for number in 0..256 {
        schedule(
            handle.timers(),
            &format!("p{number}"),
            Timer::new(LOGGED, ""),
        )
        .await;
    }
    let before = sqlite.counters();
    // No commit gets through until every handler has run, however the threads are scheduled.
    let other = rusqlite::Connection::open(&path).expect("opens");
    other.execute_batch("BEGIN IMMEDIATE").expect("is free");
    handle.resume();
    log.reached(256).await;
    other.execute_batch("ROLLBACK").expect("lets go");
    run_all(&handle).await;
    let after = sqlite.counters();
    let (applies, commits) = (
        after.applies - before.applies,
        after.commits - before.commits,
    );
    assert!(applies >= 256, "{applies}");
    assert!(
        commits <= 64,
        "{commits} transactions for {applies} commits asked for"
    );
}

#[tokio::test]
async fn a_tick_that_begins_behind_a_pause_sees_it_whatever_its_thread_has_read_before() {
    let folder = tempfile::tempdir().expect("a folder");
    let (runtime, log) = (system_runtime().expect("a host"), Arc::new(Log::default()));
    let (entered, mut has_entered) = tokio::sync::mpsc::channel(1);
    let (go, gone) = std::sync::mpsc::channel::<()>();
    let (gone, door) = (Mutex::new(gone), Door::closed());
    let behind = door.clone();
    // It keeps the only thread, whose tick has read by then, and goes on to wait.
    let keeps_thread = Registration::inline(handler(move |_, _| {
        let behind = behind.clone();
        entered.try_send(()).expect("the test waits");
        gone.lock()
            .expect("one call")
            .recv()
            .expect("the test goes on");
        Box::pin(async move {
            behind.pass().await;
            Ok(Fired::Done(Batch::new()))
        })
    }));
    let keeping = TimerKind(17);
    let registry = registry_of(LOGGED, logging(&log));
    let registry = registry.with(keeping, keeps_thread).expect("another kind");
    let options = Options::new(Arc::clone(runtime.clock()));
    let path = folder.path().join("timers.db");
    let store = DriverStore::from(Arc::new(SqliteStore::open(path, options).expect("opens")));
    let engine = Engine::new(store.to_store(), runtime.clone(), registry);
    let driver = Driver::builder(engine, store).tick_threads(1);
    let handle = driver.without_audit().start().expect("starts");
    handle.pause();
    schedule(handle.timers(), "a", Timer::new(keeping, "keeps")).await;
    schedule(handle.timers(), "b", Timer::new(LOGGED, "paused")).await;
    handle.resume();
    has_entered.recv().await.expect("the first tick runs");

    let paused = handle.pause_kind(&named("b"), LOGGED).await;
    assert!(paused.expect("it is paused"));
    go.send(()).expect("the handler waits");
    while handle.status().ticks == 0 {
        tokio::task::yield_now().await;
    }
    door.open();
    run_all(&handle).await;
    assert_eq!(handle.status().totals.fired, 1);
    assert_eq!(log.len(), 0, "the pause was there before the tick began");
}
