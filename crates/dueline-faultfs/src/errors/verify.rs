//! What must hold of the images of a moment, and of the store once the fault is gone.

use std::ops::Range;
use std::sync::Arc;

use dueline::store::WakeStore;
use dueline_sqlite::{Durability, SqliteStore};
use dueline_testkit::{ManualClock, test_runtime};

use crate::Failure;
use crate::check::{Expected, drain, intact, kept, no_repairs};
use crate::disk::Files;
use crate::folder::{UnsyncedFolder, WatchedFolder};
use crate::history::{from_rows, judge, witness};
use crate::random::Random;
use crate::script::{DATABASE, options};
use crate::world::{Rows, engine, read_all, run};

/// Checks what a killed process leaves now, and what power cuts do. `seen` is what was read last, if
/// nothing was sent since. Image 0 is the killed process's.
pub(crate) fn images(
    folder: &WatchedFolder,
    clock: &ManualClock,
    seen: Option<&Rows>,
    expected: &[Expected],
    numbers: Range<u64>,
    seed: u64,
) -> Result<u64, Failure> {
    for number in numbers.clone() {
        let mut random = Random::new(seed.wrapping_mul(1_000).wrapping_add(number));
        let disk = folder.watched().disk(&mut random);
        let files = match number {
            0 => disk.live(),
            1 => disk.crashed(&mut random, 50),
            2 => disk.durable(),
            _ => disk.crashed(&mut random, 85),
        };
        image(&files, clock, seen, expected)
            .map_err(|error| format!("image {number}, seed {seed}: {error}"))?;
    }
    Ok(numbers.end - numbers.start)
}

fn image(
    files: &Files,
    clock: &ManualClock,
    seen: Option<&Rows>,
    expected: &[Expected],
) -> Result<(), Failure> {
    let folder = UnsyncedFolder::new(files)?;
    let path = folder.file(DATABASE);
    // A clock of its own: the run goes on from where it was.
    let clock = ManualClock::new(dueline::runtime::Clock::wall_ms(clock));
    let store = SqliteStore::open(&path, options(&clock, Durability::PowerLoss))?;
    if let Some(seen) = seen {
        let found = run(&store, read_all(&store))?;
        if found != *seen {
            return Err(contradiction(seen, &found));
        }
    }
    intact(&path, &clock)?;
    to_the_end(&store, &clock, expected)
}

pub(crate) fn contradiction(seen: &Rows, found: &Rows) -> Failure {
    let gone = seen.iter().filter(|row| !found.contains_key(row.0)).count();
    let new = found.iter().filter(|row| !seen.contains_key(row.0)).count();
    let changed = seen
        .iter()
        .filter(|(key, value)| found.get(*key).is_some_and(|found| found != *value))
        .count();
    format!("contradicts what was read: {gone} rows gone, {new} new, {changed} changed").into()
}

/// Nothing to repair, and everything runs to its end.
pub(crate) fn to_the_end(
    store: &SqliteStore,
    clock: &ManualClock,
    expected: &[Expected],
) -> Result<(), Failure> {
    let here = store
        .for_blocking_threads()
        .ok_or("the store has no handle for blocking threads")?;
    no_repairs(here.as_ref())?;
    let history = from_rows(here.as_ref(), clock)?;
    let witness = Arc::new(witness(&here, &history, clock));
    let engine = engine(witness, test_runtime(clock))?;
    drain(here.as_ref(), &engine, clock)?;
    judge(here.as_ref(), clock, &history)?;
    kept(expected, &run(here.as_ref(), read_all(here.as_ref()))?)
}
