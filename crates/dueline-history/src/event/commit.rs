use dueline::store::{Batch, Partition, Wake, Write};
use serde::{Deserialize, Serialize};

use crate::Octets;

/// A batch that became durable, in the order in which the batches of its partition did: what all
/// rules about rows are derived from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Commit {
    /// Who asked for it.
    pub source: Source,
    /// The process, if it was one with an engine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<u16>,
    /// The request of a user that it is the write of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<u64>,
    /// The epoch of the owner that asked for it; 0 for a user and where there are none.
    #[serde(default)]
    pub epoch: u64,
    /// The turn it was asked for in, as in [`Tick`](crate::Tick); 0 outside of one.
    #[serde(default)]
    pub turn: u64,
    /// The partition.
    pub partition: Octets,
    /// The store's clock at the commit, in milliseconds since 1970.
    pub store_ms: u64,
    /// How many preconditions it had.
    #[serde(default)]
    pub preconditions: u32,
    /// What it wrote, in its order; `None` is a delete.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rows: Vec<(Octets, Option<Octets>)>,
    /// The timers that took effect in it, as their handlers saw them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub effects: Vec<EffectMark>,
    /// The timers that a handler's batch in it removes on purpose.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cuts: Vec<Occurrence>,
    /// Every wake of the partition as the commit left it, if the store keeps wakes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub wakes: Vec<LaneWake>,
    /// Whether the next commit of the partition became durable together with it: then that one tells
    /// the wakes of both.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub has_more: bool,
    /// Whether whoever asked for it had been told before that its outcome is not known.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub landed_late: bool,
    /// When a commit that landed late was asked for, by the clock of the history.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked_ms: Option<u64>,
}

impl Commit {
    /// The commit of this batch, with what it says of itself: rows and preconditions.
    pub fn of_batch(partition: &Partition, batch: &Batch) -> Self {
        let rows = batch.writes.iter().map(|write| match write {
            Write::Put(key, value) => (key.into(), Some(value.into())),
            Write::Delete(key) => (key.into(), None),
        });
        Self {
            partition: partition.into(),
            preconditions: u32::try_from(batch.preconditions.len()).unwrap_or(u32::MAX),
            rows: rows.collect(),
            ..Self::default()
        }
    }
}

/// Who asks for a commit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// A tick, a settle, a release.
    #[default]
    Engine,
    /// A verb of scheduling, or a write of the test.
    User,
    /// The store itself: a settled wake, a repair of its audit.
    Store,
}

/// One scheduling of one timer.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Occurrence {
    /// The kind of the timer.
    pub kind: u8,
    /// The caller's identity of the timer.
    pub reference: Octets,
    /// The generation drawn for the scheduling.
    pub generation: u64,
}

/// A timer that took effect.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EffectMark {
    /// Which.
    #[serde(flatten)]
    pub occurrence: Occurrence,
    /// The attempt, as its handler saw it; 0 if that is not known.
    #[serde(default)]
    pub attempt: u16,
    /// The due as it was asked for, in milliseconds since 1970.
    pub due_ms: u64,
    /// The due that its handler asked for next, if it scheduled the timer again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_due_ms: Option<u64>,
}

/// A stored wake of a lane.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaneWake {
    /// The kind of the lane.
    pub kind: u8,
    /// When, in milliseconds since 1970.
    pub at_ms: u64,
}

impl From<&Wake> for LaneWake {
    fn from(wake: &Wake) -> Self {
        Self {
            kind: wake.kind.0,
            at_ms: wake.at_ms,
        }
    }
}

/// All rows and wakes of a partition, read from its store.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scan {
    /// The partition.
    pub partition: Octets,
    /// Whether everything had its time: no timer that can run is due any more.
    #[serde(default)]
    pub at_rest: bool,
    /// Its rows in the order of their keys.
    pub rows: Vec<(Octets, Octets)>,
    /// Its wakes, if the store keeps any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub wakes: Vec<LaneWake>,
}
