//! How late a timer's handler starts, driver and SQLite included, beside the disk's flush.

use std::fs::File;
use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use dueline::BoxFuture;
use dueline::store::{Batch, Partition};
use dueline::timers::{
    DueTimer, Engine, Fired, HandlerError, Policy, Registration, Registry, Timer, TimerCtx,
    TimerHandler, TimerKind,
};
use dueline_sqlite::{Options, SqliteStore};
use dueline_tokio::{Driver, DriverStore, system_runtime};

const NOTE: TimerKind = TimerKind(16);

/// Microseconds between due and handler, one a timer.
type Lateness = Arc<Mutex<Vec<f64>>>;

struct NoteLateness(Lateness);

impl TimerHandler for NoteLateness {
    fn fire<'a>(
        &'a self,
        _ctx: &'a TimerCtx<'a>,
        timer: &'a DueTimer,
    ) -> BoxFuture<'a, Result<Fired, HandlerError>> {
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        let due = Duration::from_millis(timer.due_at_ms());
        let late_us = (now.as_secs_f64() - due.as_secs_f64()) * 1e6;
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(late_us);
        Box::pin(std::future::ready(Ok(Fired::Done(Batch::new()))))
    }
}

pub(crate) fn run(timers: u64, apart_ms: u64) -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir_in(".")?;
    let flush_us = flush(&folder.path().join("flush"))?;
    let lateness = Lateness::default();
    let workers = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()?;
    workers.block_on(async {
        let runtime = system_runtime()?;
        let path = folder.path().join("dueline.db");
        let sqlite = SqliteStore::open(&path, Options::new(Arc::clone(runtime.clock())))?;
        let store = DriverStore::from(Arc::new(sqlite));
        let registry =
            Registry::new().with(NOTE, Registration::inline(NoteLateness(lateness.clone())))?;
        let engine = Engine::new(store.to_store(), runtime.clone(), registry);
        let driver = Driver::builder(engine, store).start()?;
        let partition = Partition::new("late")?;
        let first_ms = runtime.now_ms() + 500;
        let batch = (0..timers).map(|number| {
            let timer = Timer::new(NOTE, number.to_be_bytes().to_vec());
            (timer.due_at(first_ms + number * apart_ms), Policy::Replace)
        });
        for done in driver
            .timers()
            .schedule_many(&partition, batch.collect())
            .await
        {
            done?;
        }
        let end_ms = first_ms + timers * apart_ms + 500;
        let wait_ms = end_ms.saturating_sub(runtime.now_ms());
        runtime.sleep(Duration::from_millis(wait_ms)).await;
        driver.shutdown(Duration::from_secs(5)).await;
        Ok::<(), Box<dyn std::error::Error>>(())
    })?;
    let mut late = std::mem::take(&mut *lateness.lock().unwrap_or_else(PoisonError::into_inner));
    late.sort_by(f64::total_cmp);
    let at = |part: f64| {
        let index = ((late.len() as f64 - 1.0) * part) as usize;
        late.get(index).copied().unwrap_or(f64::NAN)
    };
    println!(
        "{} of {timers} timers fired, {apart_ms} ms apart",
        late.len()
    );
    println!(
        "late by p50 {:.0} us, p99 {:.0} us, at most {:.0} us, at least {:.0} us; a flush of the \
         disk p50 {flush_us:.0} us",
        at(0.5),
        at(0.99),
        at(1.0),
        at(0.0)
    );
    Ok(())
}

/// The median time of a flush of one written block.
fn flush(path: &std::path::Path) -> Result<f64, Box<dyn std::error::Error>> {
    let mut file = File::create(path)?;
    let mut times = Vec::new();
    for _ in 0..200 {
        let started = Instant::now();
        std::io::Seek::rewind(&mut file)?;
        file.write_all(&[1; 4_096])?;
        file.sync_data()?;
        times.push(started.elapsed().as_secs_f64() * 1e6);
    }
    Ok(crate::median(times))
}
