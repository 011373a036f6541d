//! Many seeds, on all cores.
#![allow(
    clippy::disallowed_methods,
    reason = "how long a hunt takes is told in real time; the simulations see none of it"
)]

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use dueline_sim::{MARKS, OBJECT_MARKS, OBJECTS, Plan, judge};

/// After so many failing seeds there is enough to look at.
const FAILING_MAX: usize = 10;
/// Histories in which every place must have been reached.
const MARKS_WITHIN: u64 = 1_000;
const OBJECT_MARKS_WITHIN: u64 = 3_000;

#[derive(Default)]
struct Found {
    failing: BTreeMap<u64, Vec<String>>,
    marks: BTreeMap<&'static str, u64>,
    events: u64,
}

/// Runs so many seeds from this one on.
pub(crate) fn seeds(first: u64, count: u64, threads: usize) -> ExitCode {
    work(first, count, None, threads)
}

/// Runs seeds for so long, from one that depends on the time.
pub(crate) fn hunt(time: Duration, threads: usize) -> ExitCode {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let first = since.map_or(0, |since| since.as_secs()) << 24;
    work(first, u64::MAX, Some(time), threads)
}

fn work(first: u64, count: u64, time: Option<Duration>, threads: usize) -> ExitCode {
    let threads = match threads {
        0 => thread::available_parallelism().map_or(1, NonZeroUsize::get),
        threads => threads,
    };
    let began = Instant::now();
    let (next, stop) = (AtomicU64::new(0), AtomicBool::new(false));
    let found = Mutex::new(Found::default());
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed)
                    && time.is_none_or(|time| began.elapsed() < time)
                {
                    let place = next.fetch_add(1, Ordering::Relaxed);
                    if place >= count {
                        return;
                    }
                    let seed = first.wrapping_add(place);
                    let verdict = judge(&Plan::of(seed));
                    let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
                    found.events += verdict.events.len() as u64;
                    for (mark, times) in verdict.marks {
                        *found.marks.entry(mark).or_insert(0) += times;
                    }
                    if !verdict.broken.is_empty() {
                        found.failing.insert(seed, verdict.broken);
                        stop.fetch_or(found.failing.len() >= FAILING_MAX, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    let done = next.load(Ordering::Relaxed).min(count);
    let found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
    report(&found, first, done, (began.elapsed(), threads))
}

fn report(found: &Found, first: u64, done: u64, (took, threads): (Duration, usize)) -> ExitCode {
    for (mark, times) in &found.marks {
        println!("{times:>12}  {mark}");
    }
    for (seed, broken) in &found.failing {
        println!("seed {seed}: {}", broken.join(&format!("\nseed {seed}: ")));
    }
    let (marks, within) = if first >= OBJECTS {
        (OBJECT_MARKS, OBJECT_MARKS_WITHIN)
    } else {
        (MARKS, MARKS_WITHIN)
    };
    let unreached: Vec<&str> = marks
        .iter()
        .copied()
        .filter(|mark| done >= within && !found.marks.contains_key(mark))
        .collect();
    if !unreached.is_empty() {
        println!("never reached: {}", unreached.join("; "));
    }
    let rate = done as f64 / took.as_secs_f64().max(0.001);
    println!(
        "{done} seeds, {} failing, {} events, {:.1} s, {rate:.0} seeds/s, {:.0} a thread",
        found.failing.len(),
        found.events,
        took.as_secs_f64(),
        rate / threads as f64,
    );
    if found.failing.is_empty() && unreached.is_empty() {
        ExitCode::SUCCESS
    } else {
        println!("`sim run --seed N` runs one again, `sim shrink --seed N` cuts it down");
        ExitCode::FAILURE
    }
}
