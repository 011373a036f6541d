//! Goal: many writers beside a running driver over a real file: every scheduling that was
//! acknowledged fires once, unless a later one took its place, and in order.
//! Method: real threads on one name, and on one due; the effects in the store say what fired.
#![cfg(test)]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod rig;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use dueline::runtime::Runtime;
use dueline::store::{Batch, ReadStore};
use dueline::timers::{
    Engine, Fired, Policy, Registration, ScheduleOutcome, Scheduled, Timer, TimerError,
};
use dueline_sqlite::{Durability, Options, SqliteStore};
use dueline_testkit::{block_on, handler};
use dueline_tokio::{Driver, DriverStore, Handle, system_runtime};
use rig::{LOGGED, Log, left, named, registry_of, run_all};

const THREADS: usize = 8;
const SCHEDULES_PER_THREAD: usize = 500;

fn start(path: &Path, runtime: &Runtime, registration: Registration) -> (Arc<SqliteStore>, Handle) {
    let options = Options::new(Arc::clone(runtime.clock())).durability(Durability::ProcessCrash);
    let sqlite = Arc::new(SqliteStore::open(path, options).unwrap());
    let store = DriverStore::from(Arc::clone(&sqlite));
    let registry = registry_of(LOGGED, registration);
    let engine = Engine::new(store.to_store(), runtime.clone(), registry);
    (sqlite, Driver::builder(engine, store).start().unwrap())
}

fn effect_of(generation: u64) -> String {
    format!("fired/{generation}")
}

/// Schedules one name again and again, as a client that tries again when others were faster.
fn schedule_one_name(handle: &Handle) -> Vec<Scheduled> {
    let mut acknowledged = Vec::new();
    while acknowledged.len() < SCHEDULES_PER_THREAD {
        let timer = Timer::new(LOGGED, "one").named();
        match block_on(
            handle
                .timers()
                .schedule(&named("a"), timer, Policy::Replace),
        ) {
            Ok(scheduled) => acknowledged.push(scheduled),
            Err(TimerError::Contended) => {}
            Err(other) => panic!("{other}"),
        }
    }
    acknowledged
}

#[tokio::test]
async fn threads_that_schedule_one_name_while_it_fires_lose_no_scheduling_to_an_older_run() {
    let folder = tempfile::tempdir().unwrap();
    let runtime = system_runtime().unwrap();
    // Its effect must not be there yet: a generation that fires twice would fail and be seen.
    let once = Registration::inline(handler(|_, timer| {
        let row = effect_of(timer.generation());
        let effect = Batch::new().require_absent(row.clone()).put(row, "x");
        Box::pin(async { Ok(Fired::Done(effect)) })
    }));
    let (sqlite, handle) = start(&folder.path().join("timers.db"), &runtime, once);
    let of_threads: Vec<Vec<Scheduled>> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|_| scope.spawn(|| schedule_one_name(&handle)))
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect()
    });
    run_all(&handle).await;

    let has_fired = |scheduled: &Scheduled| {
        let key = effect_of(scheduled.generation).into();
        block_on(sqlite.get(&named("a"), &key)).unwrap().is_some()
    };
    let all = of_threads.iter().flatten();
    let fired = all.clone().filter(|scheduled| has_fired(scheduled)).count();
    // A scheduling that found no timer begins a chain of replacements; each ends in one fire.
    let chains = all
        .filter(|scheduled| scheduled.outcome == ScheduleOutcome::Created)
        .count();
    let totals = handle.status().totals;
    assert_eq!(fired, chains);
    assert_eq!(
        (totals.fired, totals.failed, totals.dead),
        (chains as u64, 0, 0)
    );
    assert!(chains > 1, "it fired between the schedulings");
    // Whichever was acknowledged last is the last of its thread, and nothing took its place.
    let mut last = of_threads.iter().filter_map(|of_thread| of_thread.last());
    assert!(last.any(has_fired), "the last scheduling has fired");
    assert_eq!(left(&handle, "a", LOGGED).await, 0);
    assert!(handle.shutdown(Duration::from_secs(30)).await.finished);
}

const WRITERS: usize = 4;
const TIMERS_PER_WRITER: usize = 2_500;

#[tokio::test]
async fn ten_thousand_timers_of_one_due_by_four_writers_fire_once_each_in_the_order_of_each_writer()
{
    let folder = tempfile::tempdir().unwrap();
    let runtime = system_runtime().unwrap();
    let log = Arc::new(Log::default());
    let registration = rig::logging(&log).group_max(64);
    let (_sqlite, handle) = start(&folder.path().join("timers.db"), &runtime, registration);
    handle.pause();
    let due_ms = runtime.now_ms();
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            let handle = &handle;
            scope.spawn(move || {
                for number in 0..TIMERS_PER_WRITER {
                    let timer = Timer::new(LOGGED, format!("{writer}:{number:04}")).due_at(due_ms);
                    let timers = handle.timers();
                    block_on(timers.schedule(&named("a"), timer, Policy::Replace)).unwrap();
                }
            });
        }
    });
    handle.resume();
    log.reached(WRITERS * TIMERS_PER_WRITER).await;
    run_all(&handle).await;
    let totals = handle.status().totals;
    assert_eq!((totals.fired, totals.failed), (10_000, 0));
    let lines = log.lines();
    assert_eq!(lines.len(), WRITERS * TIMERS_PER_WRITER, "each ran once");
    for writer in 0..WRITERS {
        let prefix = format!("a/{writer}:");
        let own: Vec<_> = lines
            .iter()
            .filter(|line| line.starts_with(&prefix))
            .collect();
        assert_eq!(own.len(), TIMERS_PER_WRITER);
        assert!(own.is_sorted(), "writer {writer}'s are out of order");
    }
    assert!(handle.shutdown(Duration::from_secs(30)).await.finished);
}
