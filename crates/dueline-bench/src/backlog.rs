//! A backlog under a small budget: every tick keeps it, memory does not grow, a write in between
//! waits for one tick at most, and everything drains in order.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use dueline::BoxFuture;
use dueline::store::{Batch, NamespaceStore, Partition, WakeStore};
use dueline::timers::{
    DueTimer, Engine, Fired, HandlerError, Policy, Registration, Registry, TickBudget, Timer,
    TimerCtx, TimerHandler, TimerKind, run_due,
};
use dueline_sqlite::{Options, SqliteStore};

use crate::memory;
use crate::thread::block_on;

const STEP: TimerKind = TimerKind(16);

/// How many ran, and whether each ran behind the one scheduled before it.
#[derive(Debug, Default)]
struct Seen {
    fired: u64,
    in_order: bool,
}

struct Step(Arc<Mutex<Seen>>);

impl TimerHandler for Step {
    fn fire<'a>(
        &'a self,
        _ctx: &'a TimerCtx<'a>,
        timer: &'a DueTimer,
    ) -> BoxFuture<'a, Result<Fired, HandlerError>> {
        let number = timer
            .reference()
            .as_ref()
            .try_into()
            .map(u64::from_be_bytes);
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        seen.in_order &= number.is_ok_and(|number| number == seen.fired);
        seen.fired += 1;
        Box::pin(std::future::ready(Ok(Fired::Done(Batch::new()))))
    }
}

pub(crate) fn run(
    timers: u64,
    fires_max: u32,
    elapsed_max_ms: u64,
) -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir_in(".")?;
    let runtime = dueline_tokio::system_runtime()?;
    let options = Options::new(Arc::clone(runtime.clock()));
    let store = SqliteStore::open(folder.path().join("dueline.db"), options)?;
    let here = store
        .for_blocking_threads()
        .ok_or("no handle for blocking threads")?;
    let ticks: Arc<dyn NamespaceStore> = Arc::clone(&here) as Arc<dyn NamespaceStore>;
    let seen = Arc::new(Mutex::new(Seen {
        fired: 0,
        in_order: true,
    }));
    let step = Registration::inline(Step(Arc::clone(&seen))).group_max(64);
    let engine = Engine::new(ticks, runtime, Registry::new().with(STEP, step)?);
    let partition = Partition::new("backlog")?;
    for first in (0..timers).step_by(1_000) {
        // One due for all: the order is that of scheduling.
        let page = (first..timers.min(first + 1_000)).map(|number| {
            (
                Timer::new(STEP, number.to_be_bytes().to_vec()).due_at(1),
                Policy::Replace,
            )
        });
        let page = engine.timers().schedule_many(&partition, page.collect());
        for done in block_on(here.as_ref(), page) {
            done?;
        }
    }
    let start_mib = memory::mib("self", "VmRSS")?;
    let budget = TickBudget {
        max_fired: fires_max,
        max_per_kind: fires_max,
        max_scanned: u32::MAX,
        max_elapsed_ms: elapsed_max_ms,
    };
    let (mut longest_tick, mut longest_write) = (Duration::ZERO, Duration::ZERO);
    let (mut most_fired, mut rounds, mut left) = (0, 0u64, timers);
    let draining = Instant::now();
    while left > 0 {
        let started = Instant::now();
        let tick = block_on(here.as_ref(), run_due(&engine, &partition, budget));
        longest_tick = longest_tick.max(started.elapsed());
        most_fired = most_fired.max(tick.report.total.fired);
        if tick.report.total.fired == 0 {
            return Err(format!("nothing fired: {:?}", tick.report).into());
        }
        left -= tick.report.total.fired;
        rounds += 1;
        let started = Instant::now();
        let put = Batch::new().put("foreground", rounds.to_be_bytes().to_vec());
        let _ = block_on(here.as_ref(), here.apply(&partition, put))?;
        longest_write = longest_write.max(started.elapsed());
    }
    let seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
    println!(
        "{} timers drained in {rounds} ticks and {:.1} s, in order: {}",
        seen.fired,
        draining.elapsed().as_secs_f64(),
        seen.in_order
    );
    println!(
        "a tick fired at most {most_fired} and took at most {:.1} ms, a write between ticks {:.1} ms",
        longest_tick.as_secs_f64() * 1e3,
        longest_write.as_secs_f64() * 1e3
    );
    println!(
        "resident {start_mib} MiB at the start of the drain, at most {} MiB since the process began",
        memory::mib("self", "VmHWM")?
    );
    Ok(())
}
