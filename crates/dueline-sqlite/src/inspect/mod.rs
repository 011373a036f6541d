//! Looking a database over without changing it, whether or not a server is using it.

mod open;
mod repair;
mod wakes;
mod walk;

use std::collections::BTreeMap;
use std::path::Path;

use dueline::rows::NameKey;
use dueline::store::{Partition, WakeRepair};
use dueline::timers::TimerKind;

use crate::error::OpenError;
use crate::options::Options;

/// How many places of one sort are named; the rest is counted.
pub const PLACES_NAMED_MAX: usize = 20;

/// What [`inspect`] found.
#[derive(Clone, Debug)]
pub struct Inspection {
    /// Size of the database file, in bytes.
    pub file_bytes: u64,
    /// Size of the log beside it, in bytes; 0 if there is none.
    pub log_bytes: u64,
    /// When the database or its log was last written, in milliseconds since 1970.
    pub written_at_ms: Option<u64>,
    /// Whether a process has the database open for writing.
    pub in_use: bool,
    /// The schema of the file.
    pub schema: i64,
    /// The newest schema this binary knows.
    pub schema_known: i64,
    /// Whether the last writer did not close the file, or is at work in it.
    pub unclean: bool,
    /// Whether the last writer did not close the file, nobody is at work in it, and its log is gone:
    /// unless another program has opened and closed the file since, its newest commits are lost.
    pub log_missing: bool,
    /// What SQLite found damaged, in its own words, at most [`PLACES_NAMED_MAX`] lines.
    pub damage: Vec<String>,
    /// What the file holds; `None` if its schema is newer than this binary, or it could not be read
    /// to its end.
    pub contents: Option<Contents>,
}

/// What a database holds.
#[derive(Clone, Debug, Default)]
pub struct Contents {
    /// Partitions with rows or wakes.
    pub partitions: u64,
    /// Counts of each kind that has timers, dead timers or a pause.
    pub kinds: BTreeMap<TimerKind, KindContents>,
    /// Rows set aside because their key did not decode.
    pub quarantined: u64,
    /// Keys of the timer class that do not decode and are not set aside yet.
    pub malformed: u64,
    /// Stored wakes, of all kinds.
    pub wakes: u64,
    /// The time of the newest scheduling, in milliseconds since 1970, read off its generation.
    pub newest_scheduling_ms: Option<u64>,
    /// Lanes whose wake is missing or late. Each is a bug.
    pub lanes_without_wake: Places<LaneWithoutWake>,
    /// Names that point at no row. Each is a bug.
    pub names_adrift: Places<NameAdrift>,
}

/// Counts of one kind over all partitions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KindContents {
    /// Timers: pending, retrying and claimed.
    pub timers: u64,
    /// Timers whose due lies in the past.
    pub overdue: u64,
    /// Timers in the dead class, of all kinds.
    pub dead: u64,
    /// Partitions in which the kind is paused.
    pub paused: u64,
}

/// Places of one sort: all are counted, the first few are named.
#[derive(Clone, Debug)]
pub struct Places<T> {
    /// How many there are.
    pub count: u64,
    /// The first of them, at most [`PLACES_NAMED_MAX`].
    pub named: Vec<T>,
}

impl<T> Default for Places<T> {
    fn default() -> Self {
        Self {
            count: 0,
            named: Vec::new(),
        }
    }
}

impl<T> Places<T> {
    pub(crate) fn add(&mut self, place: impl FnOnce() -> T) {
        self.count += 1;
        if self.named.len() < PLACES_NAMED_MAX {
            self.named.push(place());
        }
    }
}

/// A lane that would sleep over its first timer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaneWithoutWake {
    /// The partition it lies in.
    pub partition: Partition,
    /// The kind of the lane.
    pub kind: TimerKind,
    /// The due of its first row, in milliseconds since 1970.
    pub due_ms: u64,
    /// The earliest wake it has, later than that; `None` if it has none.
    pub wake_ms: Option<u64>,
}

/// A name whose timer is not where it says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameAdrift {
    /// The partition it lies in.
    pub partition: Partition,
    /// The kind and reference of the name.
    pub name: NameKey,
}

/// Looks a database over: its file, its schema, SQLite's own check, its rows, and its wakes against
/// its timers, all in one read transaction. Changes nothing; works while a process writes to it,
/// and may then make its log grow. Blocks for as long as it takes to read the database. A lane is
/// taken to be without a wake if none stands at or before `max(now_ms, its first due)`.
///
/// # Errors
/// [`OpenError`] if the file cannot be opened or is no database of ours. Damage inside is no error:
/// it is reported.
pub fn inspect(path: impl AsRef<Path>, now_ms: u64) -> Result<Inspection, OpenError> {
    open::inspect(path.as_ref(), now_ms)
}

/// Sets the wakes that are missing or late, as the audit of a running driver does. For a database
/// that nobody uses; the mark of an unclean stop stays as it is. Blocks.
///
/// # Errors
/// [`OpenError`]: `Locked` while a process uses it; nothing is changed then.
pub fn repair_wakes(
    path: impl AsRef<Path>,
    options: &Options,
) -> Result<Places<WakeRepair>, OpenError> {
    repair::repair_wakes(path.as_ref(), options)
}
