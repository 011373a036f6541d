//! What a tick leaves behind, in words that both engines share.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use bytes::Bytes;

/// Which timer: scripts give every timer a reference of its own.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Id {
    /// The kind's number.
    pub kind: u8,
    /// The reference.
    pub reference: Bytes,
}

impl Id {
    /// The timer of this kind and reference.
    pub fn new(kind: u8, reference: impl Into<Bytes>) -> Self {
        Self {
            kind,
            reference: reference.into(),
        }
    }
}

impl fmt::Debug for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.kind, self.reference.escape_ascii())
    }
}

/// A timer as it lies in the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// When it is due, in milliseconds since 1970.
    pub due_ms: u64,
    /// The due as it was asked for.
    pub original_ms: u64,
    /// Failed attempts.
    pub attempt: u16,
    /// The caller's bytes.
    pub payload: Bytes,
}

/// One call of a handler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// Which timer.
    pub id: Id,
    /// The due that the handler was told.
    pub told_ms: u64,
    /// The business time of the run.
    pub now_ms: u64,
}

/// The counts of a report that mean the same on both sides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Committed: done or scheduled again.
    pub fired: u64,
    /// Failed.
    pub failed: u64,
    /// Lost to another writer.
    pub raced: u64,
    /// Left by a cap or a budget.
    pub deferred: u64,
    /// Could not be written (ours alone).
    pub held: u64,
    /// Committed or not, settled from the row (ours alone).
    pub doubtful: u64,
    /// Malformed rows set aside (ours alone).
    pub set_aside: u64,
    /// The budget ended the tick.
    pub stopped: bool,
}

/// Everything a tick left behind.
#[derive(Clone, Debug, Default)]
pub struct After {
    /// The timers left.
    pub rows: BTreeMap<Id, Row>,
    /// Rows of the timer class that do not decode, with the due in their key.
    pub malformed: BTreeMap<Bytes, u64>,
    /// Malformed rows set aside by this tick.
    pub set_aside: BTreeSet<Bytes>,
    /// Timers in the dead class: none, since every policy is for ever.
    pub dead: u64,
    /// Effects that committed in this tick, by the timer whose they are.
    pub effects: BTreeSet<Id>,
    /// The same in the order of their commits.
    pub log: Vec<Id>,
    /// What the shared counter of the partition shows.
    pub counter: u64,
    /// The calls of handlers, in order.
    pub runs: Vec<Run>,
    /// The report.
    pub counts: Counts,
    /// The business time when the tick ended.
    pub ended_ms: u64,
    /// The latest business time there ever was.
    pub latest_ms: u64,
    /// Kinds not looked at, because their wake was set at a time from which the wall clock has stepped back
    /// (ours alone).
    pub asleep: BTreeSet<u8>,
    /// When the partition is to be looked at again.
    pub wake_ms: Option<u64>,
}

impl After {
    /// The first run of a timer.
    pub fn first_run(&self, id: &Id) -> Option<&Run> {
        self.runs.iter().find(|run| run.id == *id)
    }

    /// How often a timer ran.
    pub fn runs_of(&self, id: &Id) -> usize {
        self.runs.iter().filter(|run| run.id == *id).count()
    }
}

impl After {
    /// Notes a row that an act left: an effect, or the log of effects.
    pub(crate) fn note_effect_row(&mut self, key: &[u8], value: &[u8], effect: &[u8], log: &[u8]) {
        if let Some((kind, reference)) = key.strip_prefix(effect).and_then(|id| id.split_first()) {
            let id = Id::new(*kind, Bytes::copy_from_slice(reference));
            self.effects.insert(id);
        } else if key == log {
            self.log = value
                .split(|byte| *byte == b'\n')
                .filter_map(|line| line.split_first())
                .map(|(kind, reference)| Id::new(*kind, Bytes::copy_from_slice(reference)))
                .collect();
        }
    }
}

/// The tag and the due of a malformed row: the due in eight bytes, then the tag.
pub(crate) fn malformed_parts(body: &[u8]) -> (Bytes, u64) {
    let (due, tag) = body.split_at_checked(8).unwrap_or_default();
    let due_ms = due.try_into().map_or(0, u64::from_be_bytes);
    (Bytes::copy_from_slice(tag), due_ms)
}
