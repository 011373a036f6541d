//! Firing a backlog: the handler bumps one of 64 counters of its partition.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use dueline::BoxFuture;
use dueline::store::{Batch, NamespaceStore, Partition, WakeStore};
use dueline::timers::{
    DueTimer, Engine, Fired, HandlerError, Policy, Registration, Registry, TickBudget, Timer,
    TimerCtx, TimerHandler, TimerKind, run_due,
};
use dueline_sqlite::{Options, SqliteStore};

use crate::thread::block_on;
use crate::{median, raw};

const BUMP: TimerKind = TimerKind(16);

struct Bump;

impl TimerHandler for Bump {
    fn fire<'a>(
        &'a self,
        ctx: &'a TimerCtx<'a>,
        timer: &'a DueTimer,
    ) -> BoxFuture<'a, Result<Fired, HandlerError>> {
        Box::pin(async move {
            let number = timer.reference().last().copied().unwrap_or(0) % 64;
            let counter = Bytes::copy_from_slice(&[b'c', b'-', number]);
            let seen = ctx.get(&counter).await?;
            let count = seen
                .as_deref()
                .and_then(|bytes| bytes.try_into().ok().map(u64::from_be_bytes))
                .unwrap_or(0);
            let next = Bytes::copy_from_slice(&(count + 1).to_be_bytes());
            Ok(Fired::Done(Batch::new().put(counter, next)))
        })
    }
}

pub(crate) fn run(
    timers: u64,
    rounds: usize,
    groups: &[u16],
) -> Result<(), Box<dyn std::error::Error>> {
    println!("firing {timers} timers of one partition, SQLite FULL, median of {rounds} rounds");
    println!(
        "{:>8} {:>14} {:>14} {:>8}",
        "group", "dueline/s", "plain SQL/s", "ratio"
    );
    for group in groups {
        // A commit a timer is bound by the disk's flush: fewer of them tell as much.
        let count = if *group < 8 {
            timers.min(3_000)
        } else {
            timers
        };
        let (mut ours, mut plain, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..rounds {
            let folder = tempfile::tempdir_in(".")?;
            let our_rate = rate(
                count,
                fire(&folder.path().join("dueline.db"), count, *group)?,
            );
            let plain_time = raw::fire(&folder.path().join("raw.db"), count, u64::from(*group))?;
            let plain_rate = rate(count, plain_time);
            ours.push(our_rate);
            plain.push(plain_rate);
            ratios.push(our_rate / plain_rate);
        }
        println!(
            "{group:>8} {:>14.0} {:>14.0} {:>8.2}",
            median(ours),
            median(plain),
            median(ratios)
        );
    }
    Ok(())
}

fn rate(count: u64, time: Duration) -> f64 {
    count as f64 / time.as_secs_f64()
}

fn fire(path: &Path, timers: u64, group: u16) -> Result<Duration, Box<dyn std::error::Error>> {
    let runtime = dueline_tokio::system_runtime()?;
    let store = SqliteStore::open(path, Options::new(Arc::clone(runtime.clock())))?;
    let here = store
        .for_blocking_threads()
        .ok_or("no handle for blocking threads")?;
    let ticks: Arc<dyn NamespaceStore> = Arc::clone(&here) as Arc<dyn NamespaceStore>;
    let registry = Registry::new().with(BUMP, Registration::inline(Bump).group_max(group))?;
    let engine = Engine::new(ticks, runtime, registry);
    let partition = Partition::new("backlog")?;
    let backlog: Vec<(Timer, Policy)> = (0..timers)
        .map(|number| {
            let reference = number.to_be_bytes().to_vec();
            (
                Timer::new(BUMP, reference)
                    .due_at(number + 1)
                    .payload(vec![7; 100]),
                Policy::Replace,
            )
        })
        .collect();
    for page in backlog.chunks(1_000) {
        let done = block_on(
            here.as_ref(),
            engine.timers().schedule_many(&partition, page.to_vec()),
        );
        for result in done {
            result?;
        }
    }
    let started = Instant::now();
    let mut fired = 0;
    while fired < timers {
        let tick = block_on(
            here.as_ref(),
            run_due(&engine, &partition, TickBudget::native()),
        );
        if tick.report.total.fired == 0 {
            return Err(format!("nothing fired: {:?}", tick.report).into());
        }
        fired += tick.report.total.fired;
    }
    Ok(started.elapsed())
}
