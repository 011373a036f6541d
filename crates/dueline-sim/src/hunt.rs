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

use dueline_sim::{KIND_MARKS, KINDS_FROM, MARKS, OBJECT_MARKS, OBJECTS, Plan, Verdict, judge};

/// After so many failing seeds there is enough to look at.
const FAILING_MAX: usize = 10;
/// Histories in which every place must have been reached.
const MARKS_WITHIN: u64 = 1_000;
const OBJECT_MARKS_WITHIN: u64 = 3_000;
const KIND_MARKS_WITHIN: u64 = 1_000;

/// Of so many seeds of a hunt one plays an object, and one a scenario of a built-in kind.
const TURNS: u64 = 4;

/// Which seeds are run.
#[derive(Clone, Copy)]
enum Order {
    /// One after the other.
    InARow,
    /// The same, but some play an object, and some a built-in kind.
    Mixed,
}

/// What the worlds of one sort came by.
#[derive(Default)]
struct Worlds {
    done: u64,
    marks: BTreeMap<&'static str, u64>,
}

#[derive(Default)]
struct Found {
    failing: BTreeMap<u64, Vec<String>>,
    nodes: Worlds,
    objects: Worlds,
    kinds: Worlds,
    events: u64,
}

impl Found {
    fn take(&mut self, seed: u64, verdict: Verdict) {
        self.events += verdict.events.len() as u64;
        let worlds = match seed {
            KINDS_FROM.. => &mut self.kinds,
            OBJECTS.. => &mut self.objects,
            _ => &mut self.nodes,
        };
        worlds.done += 1;
        for (mark, times) in verdict.marks {
            *worlds.marks.entry(mark).or_insert(0) += times;
        }
        if !verdict.broken.is_empty() {
            self.failing.insert(seed, verdict.broken);
        }
    }
}

impl Worlds {
    /// Prints the places that were reached; says which of these were not, if enough worlds were played.
    fn unreached(&self, places: &[&'static str], within: u64) -> Vec<&'static str> {
        for (mark, times) in &self.marks {
            println!("{times:>12}  {mark}");
        }
        let is_unreached = |mark: &&str| self.done >= within && !self.marks.contains_key(mark);
        places.iter().copied().filter(is_unreached).collect()
    }
}

/// Runs so many seeds from this one on.
pub(crate) fn seeds(first: u64, count: u64, threads: usize) -> ExitCode {
    work((first, Order::InARow), count, None, threads)
}

/// Runs seeds for so long, from one that depends on the time.
pub(crate) fn hunt(time: Duration, threads: usize) -> ExitCode {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let first = since.map_or(0, |since| since.as_secs()) << 24;
    work((first, Order::Mixed), u64::MAX, Some(time), threads)
}

fn work(
    (first, order): (u64, Order),
    count: u64,
    time: Option<Duration>,
    threads: usize,
) -> ExitCode {
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
                    let seed = match order {
                        Order::Mixed if place % TURNS == 0 => OBJECTS | (first + place),
                        Order::Mixed if place % TURNS == 1 => KINDS_FROM | (first + place),
                        Order::Mixed | Order::InARow => first.wrapping_add(place),
                    };
                    let verdict = judge(&Plan::of(seed));
                    let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
                    found.take(seed, verdict);
                    stop.fetch_or(found.failing.len() >= FAILING_MAX, Ordering::Relaxed);
                }
            });
        }
    });
    let found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
    report(&found, began.elapsed(), threads)
}

fn report(found: &Found, took: Duration, threads: usize) -> ExitCode {
    let mut unreached = found.nodes.unreached(MARKS, MARKS_WITHIN);
    unreached.extend(found.objects.unreached(OBJECT_MARKS, OBJECT_MARKS_WITHIN));
    unreached.extend(found.kinds.unreached(KIND_MARKS, KIND_MARKS_WITHIN));
    for (seed, broken) in &found.failing {
        println!("seed {seed}: {}", broken.join(&format!("\nseed {seed}: ")));
    }
    if !unreached.is_empty() {
        println!("never reached: {}", unreached.join("; "));
    }
    let done = found.nodes.done + found.objects.done + found.kinds.done;
    let rate = done as f64 / took.as_secs_f64().max(0.001);
    println!(
        "{done} seeds, {} of objects, {} of kinds, {} failing, {} events, {:.1} s, {rate:.0} seeds/s, {:.0} a thread",
        found.objects.done,
        found.kinds.done,
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
