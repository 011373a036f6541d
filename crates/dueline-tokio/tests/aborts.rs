//! Goal: a handler that ends its process ends in the dead class after its attempts, without an
//! operator, and takes no other timer with it.
//! Method: this test binary, started again and again as a process that embeds the driver. Each
//! start's clock is an offset further, past the claims of the process before.
#![cfg(test)]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod rig;

use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use dueline::BoxFuture;
use dueline::runtime::{Clock, Runtime};
use dueline::store::{Batch, ReadStore, ScanRange};
use dueline::timers::{
    DetachedHandler, DueTimer, Engine, Fired, HandlerError, ListQuery, Registration, RetryPolicy,
    Timer, TimerCtx, TimerHandler, TimerState,
};
use dueline_sqlite::{Options, SqliteStore};
use dueline_testkit::block_on;
use dueline_tokio::{Driver, DriverStore, OsEntropy, PreciseSleep, SystemClock};
use rig::{LOGGED, named, registry_of, schedule, until};

const CHILD_PATH: &str = "DUELINE_TEST_ABORTS_PATH";
const CHILD_OFFSET_MS: &str = "DUELINE_TEST_ABORTS_OFFSET_MS";
const CHILD_DETACHED: &str = "DUELINE_TEST_ABORTS_DETACHED";
/// Between two starts: longer than a claim, which is its deadline and 10 s.
const OFFSET_STEP_MS: i64 = 60_000;
const ATTEMPTS_MAX: u16 = 3;
const OTHERS: usize = 20;
const KILLER: &[u8] = b"killer";
const FIRED: &[u8] = b"fired/";

/// The system's clocks, the wall a fixed time ahead.
#[derive(Debug)]
struct Ahead {
    system: SystemClock,
    offset_ms: i64,
}

impl Clock for Ahead {
    fn wall_ms(&self) -> i64 {
        self.system.wall_ms() + self.offset_ms
    }

    fn monotonic(&self) -> Duration {
        self.system.monotonic()
    }
}

/// Leaves a row for the timer, which must not be there yet.
fn once(timer: &DueTimer) -> Result<Fired, HandlerError> {
    let row = [FIRED, timer.reference()].concat();
    let effect = Batch::new().require_absent(row.clone()).put(row, "x");
    Ok(Fired::Done(effect))
}

struct Counts;

impl TimerHandler for Counts {
    fn fire<'a>(
        &'a self,
        _: &'a TimerCtx<'a>,
        timer: &'a DueTimer,
    ) -> BoxFuture<'a, Result<Fired, HandlerError>> {
        if timer.reference() == KILLER {
            std::process::abort();
        }
        Box::pin(async { once(timer) })
    }
}

impl DetachedHandler for Counts {
    type Output = ();

    fn call<'a>(
        &'a self,
        _: &'a TimerCtx<'a>,
        timer: &'a DueTimer,
    ) -> BoxFuture<'a, Result<(), HandlerError>> {
        if timer.reference() == KILLER {
            std::process::abort();
        }
        Box::pin(async { Ok(()) })
    }

    fn settle<'a>(
        &'a self,
        _: &'a TimerCtx<'a>,
        timer: &'a DueTimer,
        (): &'a (),
    ) -> BoxFuture<'a, Result<Fired, HandlerError>> {
        Box::pin(async { once(timer) })
    }
}

fn open(path: &Path, clock: &Arc<dyn Clock>) -> Arc<SqliteStore> {
    Arc::new(SqliteStore::open(path, Options::new(Arc::clone(clock))).unwrap())
}

fn fired(store: &SqliteStore) -> usize {
    let range = ScanRange::new(&b"fired/"[..], &b"fired0"[..], 1_000);
    let page = block_on(store.scan(&named("a"), &range)).unwrap();
    page.rows.len()
}

/// Runs the timers of the file until all but the killer have fired and it is dead, or it kills.
///
/// Does nothing unless another test starts it as a process of its own.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn child_with_a_handler_that_aborts() {
    let Some(path) = std::env::var_os(CHILD_PATH) else {
        return;
    };
    let offset_ms = std::env::var(CHILD_OFFSET_MS).unwrap().parse().unwrap();
    let system = SystemClock::new();
    let sleep = PreciseSleep::start(Arc::new(system)).unwrap();
    let clock: Arc<dyn Clock> = Arc::new(Ahead { system, offset_ms });
    let entropy = Arc::new(OsEntropy::new().unwrap());
    let runtime = Runtime::new(Arc::clone(&clock), Arc::new(sleep), entropy);
    let registration = if std::env::var_os(CHILD_DETACHED).is_some() {
        Registration::detached(Counts).concurrency(4)
    } else {
        Registration::inline(Counts).group_max(8)
    };
    let retry = RetryPolicy {
        attempts_max: Some(ATTEMPTS_MAX),
        // A call that is cut twice backs off: long enough to part it from what was under way with it.
        initial_ms: 1_000,
        jitter_percent: 100,
        ..RetryPolicy::default()
    };
    let sqlite = open(Path::new(&path), &clock);
    let store = DriverStore::from(Arc::clone(&sqlite));
    let registry = registry_of(LOGGED, registration.retry(retry).deadline_ms(5_000));
    let engine = Engine::new(store.to_store(), runtime.clone(), registry);
    let handle = Driver::builder(engine, store).start().unwrap();
    if offset_ms == 0 {
        handle.pause();
        // All due together, the killer in their middle.
        for number in 0..OTHERS {
            if number == OTHERS / 2 {
                schedule(handle.timers(), "a", Timer::new(LOGGED, KILLER).named()).await;
            }
            let other = Timer::new(LOGGED, format!("t{number:02}")).named();
            schedule(handle.timers(), "a", other).await;
        }
        handle.resume();
    }
    let (a, killer) = (named("a"), KILLER.into());
    let killer_is_dead = || {
        let killer = handle.timers().get(&a, LOGGED, &killer);
        let killer = tokio::task::block_in_place(|| block_on(killer)).unwrap();
        killer.unwrap().state == TimerState::Dead
    };
    until(&runtime, "a dead killer and its peers", || {
        fired(&sqlite) == OTHERS && killer_is_dead()
    })
    .await;
    handle.shutdown(Duration::from_secs(30)).await;
    drop(handle);
    sqlite.close();
}

/// Starts processes until one lives; how many have died.
fn aborts(path: &Path, detached: bool) -> u16 {
    for start in 0..=ATTEMPTS_MAX + 1 {
        let offset_ms = i64::from(start) * OFFSET_STEP_MS;
        let mut child = Command::new(std::env::current_exe().unwrap());
        child
            .args(["--exact", "child_with_a_handler_that_aborts"])
            .env(CHILD_PATH, path)
            .env(CHILD_OFFSET_MS, offset_ms.to_string());
        if detached {
            child.env(CHILD_DETACHED, "1");
        }
        let ended = child.output().unwrap();
        if ended.status.success() {
            return start;
        }
        const SIGABRT: i32 = 6;
        let said = String::from_utf8_lossy(&ended.stdout);
        let errors = String::from_utf8_lossy(&ended.stderr);
        assert_eq!(
            ended.status.signal(),
            Some(SIGABRT),
            "{start}: {said}{errors}"
        );
    }
    panic!("the timer still kills its process after {ATTEMPTS_MAX} attempts");
}

/// What the processes have left.
fn assert_only_the_killer_is_dead(path: &Path) {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    let store = open(path, &clock);
    assert_eq!(fired(&store), OTHERS, "each fired once");
    let runtime = dueline_tokio::system_runtime().unwrap();
    let timers = dueline::timers::Timers::new(store, runtime);
    let left = block_on(timers.list(&named("a"), &ListQuery::new(LOGGED))).unwrap();
    assert_eq!(left.timers.len(), 1, "{left:?}");
    let killer = &left.timers[0];
    assert_eq!(killer.reference, KILLER);
    assert_eq!(
        (killer.state, killer.attempt),
        (TimerState::Dead, ATTEMPTS_MAX)
    );
}

#[test]
fn an_inline_handler_that_aborts_its_process_is_dead_after_its_attempts_and_the_others_have_fired()
{
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("timers.db");
    // The first run follows a clean stop and is not claimed, so nothing has counted it.
    assert_eq!(aborts(&path, false), ATTEMPTS_MAX + 1);
    assert_only_the_killer_is_dead(&path);
}

#[test]
fn a_call_that_aborts_its_process_is_dead_after_its_attempts_and_the_others_have_fired() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("timers.db");
    assert_eq!(aborts(&path, true), ATTEMPTS_MAX);
    assert_only_the_killer_is_dead(&path);
}
