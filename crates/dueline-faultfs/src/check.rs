//! What every image must hold: it opens, it is whole, it is one of the states the script went
//! through, and what is left of the script then runs to its promised end.

use std::path::Path;
use std::sync::Arc;

use dueline::Bytes;
use dueline::rows::{DeadKey, NameKey, class, is_of_class};
use dueline::store::{Partition, WakeStore};
use dueline_sqlite::inspect::inspect;
use dueline_sqlite::{Durability, SqliteStore};
use dueline_testkit::{ManualClock, test_runtime};

use crate::Failure;
use crate::disk::Files;
use crate::folder::UnsyncedFolder;
use crate::history::{behind_crash, fingerprint, judge, witness};
use crate::script::{DATABASE, Recording, options};
use crate::world::{
    Calls, KINDS, Rows, SINGLE, counted, counter_key, engine, is_unfinished, read_all, run, serve,
};

/// How far the clock goes at a time while the rest is run, and how often at most.
const DRAIN_STEP_MS: u64 = 30_000;
const DRAIN_STEPS_MAX: usize = 200;

/// Checks an image and says how many of the script's commits it holds, the newest at most
/// `commits_max`.
///
/// # Errors
/// What is wrong with it.
pub(crate) fn check(
    files: &Files,
    recording: &Recording,
    commits_max: usize,
) -> Result<usize, Failure> {
    let folder = UnsyncedFolder::new(files)?;
    let path = folder.file(DATABASE);
    let clock = ManualClock::new(recording.ended_at_ms);
    let store = SqliteStore::open(&path, options(&clock, Durability::PowerLoss))?;
    let here = store
        .for_blocking_threads()
        .ok_or("the store has no handle for blocking threads")?;
    let here = here.as_ref();
    intact(&path, &clock)?;
    let found = run(here, read_all(here))?;
    let recovered = recording
        .rows
        .iter()
        .take(commits_max + 1)
        .rposition(|rows| *rows == found)
        .ok_or("the rows are none of the states that the script went through")?;
    no_repairs(here)?;
    let twice = again(&path, &clock)?;
    let recoveries = Some((fingerprint(here)?, twice));
    let history = behind_crash(here, &clock, recording.history(recovered), recoveries)?;
    let ticks = store
        .for_blocking_threads()
        .ok_or("the store has no handle for blocking threads")?;
    let witness = Arc::new(witness(&ticks, &history, &clock));
    let engine = engine(witness, test_runtime(&clock))?;
    drain(here, &engine, &clock)?;
    judge(here, &clock, &history)?;
    let left = run(here, read_all(here))?;
    kept(&recording.expected(recovered), &left)?;
    store.close();
    intact(&path, &clock)?;
    Ok(recovered)
}

/// Copies the files as they are while the store is open, and opens the copy, as after a crash right
/// behind the recovery: a fingerprint of what it holds.
fn again(path: &Path, clock: &ManualClock) -> Result<u64, Failure> {
    let folder = path.parent().ok_or("a database lies in a folder")?;
    let mut files = Files::new();
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        // The log's index is shared memory, which no crash leaves.
        if name.starts_with(DATABASE) && !name.ends_with("-shm") {
            files.insert(name, std::fs::read(entry.path())?);
        }
    }
    let copy = UnsyncedFolder::new(&files)?;
    let store = SqliteStore::open(copy.file(DATABASE), options(clock, Durability::PowerLoss))?;
    Ok(fingerprint(&store)?)
}

/// SQLite's own check, and ours: names that point at their rows, wakes that stand where they must.
pub(crate) fn intact(path: &Path, clock: &ManualClock) -> Result<(), Failure> {
    let connection = rusqlite::Connection::open(path)?;
    let verdict: String = connection.query_row("PRAGMA integrity_check", [], |row| row.get(0))?;
    if verdict != "ok" {
        return Err(format!("integrity_check: {verdict}").into());
    }
    drop(connection);
    let now_ms = u64::try_from(dueline::runtime::Clock::wall_ms(clock)).unwrap_or(0);
    let found = inspect(path, now_ms)?;
    let contents = found.contents.ok_or("the rows cannot be read")?;
    if !found.damage.is_empty() {
        return Err(format!("damage: {:?}", found.damage).into());
    }
    if contents.lanes_without_wake.count > 0 {
        return Err(format!("without a wake: {:?}", contents.lanes_without_wake.named).into());
    }
    if contents.names_adrift.count > 0 {
        return Err(format!("names adrift: {:?}", contents.names_adrift.named).into());
    }
    if contents.malformed + contents.quarantined > 0 {
        return Err("a key does not decode".into());
    }
    Ok(())
}

/// The audit of a running driver finds nothing to mend.
pub(crate) fn no_repairs(store: &dyn WakeStore) -> Result<(), Failure> {
    let mut after = None;
    loop {
        let page = run(store, store.audit_wakes(after.as_ref(), 1_000))?;
        if !page.repairs.is_empty() {
            return Err(format!("the audit had to set {:?}", page.repairs).into());
        }
        after = page.next;
        if after.is_none() {
            return Ok(());
        }
    }
}

/// Resumes what is paused, and runs what is due, by the wakes alone, until nothing is pending.
pub(crate) fn drain(
    store: &dyn WakeStore,
    engine: &dueline::timers::Engine,
    clock: &ManualClock,
) -> Result<(), Failure> {
    let page = run(store, store.partitions(None, 1_000))?;
    for partition in &page.partitions {
        run(store, engine.timers().resume(partition, SINGLE))?;
    }
    for _ in 0..DRAIN_STEPS_MAX {
        // Some ticks leave work that is due at once; a look without any ends the moment.
        for _ in 0..DRAIN_STEPS_MAX {
            if run(store, serve(store, engine, Calls::Settle))? == 0 {
                break;
            }
        }
        let rows = run(store, read_all(store))?;
        if !rows.keys().any(|(_, key)| is_unfinished(key)) {
            return Ok(());
        }
        clock.advance_ms(DRAIN_STEP_MS);
    }
    Err("timers are left that no wake brings".into())
}

/// What may become of a timer: each pair is a number of effects and of dead rows.
#[derive(Clone, Debug)]
pub(crate) struct Expected {
    pub(crate) partition: Partition,
    pub(crate) reference: Bytes,
    pub(crate) allowed: Vec<(u64, usize)>,
}

/// Every timer came to what was expected of it, and nothing else happened.
pub(crate) fn kept(expected: &[Expected], left: &Rows) -> Result<(), Failure> {
    let mut accounted = 0;
    for timer in expected {
        let key = (timer.partition.to_bytes(), counter_key(&timer.reference));
        let effects = counted(left.get(&key));
        let dead = dead_rows(left, &timer.partition.to_bytes(), &timer.reference);
        // A dead timer keeps its name.
        let names = dead.min(name_rows(
            left,
            &timer.partition.to_bytes(),
            &timer.reference,
        ));
        accounted += usize::from(left.contains_key(&key)) + dead + names;
        if !timer.allowed.contains(&(effects, dead)) {
            return Err(format!(
                "{} of {}: {effects} effects and {dead} dead rows, not one of {:?}",
                timer.reference.escape_ascii(),
                timer.partition,
                timer.allowed
            )
            .into());
        }
    }
    if accounted != left.len() {
        let others = left.len().abs_diff(accounted);
        return Err(format!("{others} rows are nobody's").into());
    }
    Ok(())
}

fn dead_rows(rows: &Rows, partition: &Bytes, reference: &Bytes) -> usize {
    rows.keys()
        .filter(|(home, key)| home == partition && is_of_class(key, class::DEAD))
        .filter_map(|(_, key)| DeadKey::decode(key).ok())
        .filter(|dead| KINDS.contains(&dead.kind) && dead.reference == *reference)
        .count()
}

fn name_rows(rows: &Rows, partition: &Bytes, reference: &Bytes) -> usize {
    rows.keys()
        .filter(|(home, key)| home == partition && is_of_class(key, class::NAME))
        .filter_map(|(_, key)| NameKey::decode(key).ok())
        .filter(|name| name.reference == *reference)
        .count()
}
