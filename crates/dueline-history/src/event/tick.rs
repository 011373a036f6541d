use dueline::timers::{Counts, RunReport, TickBudget, TimerKind};
use serde::{Deserialize, Serialize};

use super::rules::Budget;
use crate::Octets;

/// One tick of one partition, when it has ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tick {
    /// The process.
    pub node: u16,
    /// The physical tick, whose partitions share one budget: a number from 1 that no other turn of
    /// the history has.
    pub turn: u64,
    /// The partition.
    pub partition: Octets,
    /// The node's wall clock at its begin, in milliseconds since 1970.
    pub began_ms: u64,
    /// How long it took by a clock that is never set, in milliseconds.
    pub elapsed_ms: u64,
    /// What the turn may do.
    pub budget: Budget,
    /// What became of its timers, by kind, ascending.
    pub kinds: Vec<KindCounts>,
    /// Malformed rows set aside.
    #[serde(default)]
    pub quarantined: u64,
    /// Rows read.
    pub scanned: u64,
    /// Whether the budget ended it while due timers were left.
    pub stopped_on_budget: bool,
    /// Whether the store refused a read or a write.
    #[serde(default)]
    pub held_back: bool,
    /// When the partition is to be looked at again, as the report says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_wake_ms: Option<u64>,
}

impl Tick {
    /// A tick from its report.
    pub fn of(
        (node, turn): (u16, u64),
        partition: Octets,
        (began_ms, elapsed_ms): (u64, u64),
        budget: &TickBudget,
        report: &RunReport,
    ) -> Self {
        Self {
            node,
            turn,
            partition,
            began_ms,
            elapsed_ms,
            budget: budget.into(),
            kinds: report.per_kind.iter().map(KindCounts::from).collect(),
            quarantined: report.quarantined,
            scanned: report.scanned,
            stopped_on_budget: report.stopped_on_budget,
            held_back: report.held_back,
            next_wake_ms: report.next_wake_ms,
        }
    }
}

/// What became of the timers of one kind, as in [`Counts`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[allow(
    missing_docs,
    reason = "the fields of `Counts`, which tells what they are"
)]
pub struct KindCounts {
    pub kind: u8,
    pub fired: u64,
    pub rescheduled: u64,
    pub claimed: u64,
    pub failed: u64,
    pub dead: u64,
    pub raced: u64,
    pub unknown_outcome: u64,
    pub held: u64,
    pub deferred: u64,
}

impl KindCounts {
    /// Timers whose state changed for good or for later.
    pub fn progressed(&self) -> u64 {
        self.fired + self.rescheduled + self.claimed + self.failed + self.dead
    }
}

impl From<(&TimerKind, &Counts)> for KindCounts {
    fn from((kind, counts): (&TimerKind, &Counts)) -> Self {
        Self {
            kind: kind.0,
            fired: counts.fired,
            rescheduled: counts.rescheduled,
            claimed: counts.claimed,
            failed: counts.failed,
            dead: counts.dead,
            raced: counts.raced,
            unknown_outcome: counts.unknown_outcome,
            held: counts.held,
            deferred: counts.deferred,
        }
    }
}

/// One run of a handler, or one call that went out, when it has ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    /// The process.
    pub node: u16,
    /// The turn, as in [`Tick`]; 0 outside of one.
    #[serde(default)]
    pub turn: u64,
    /// The partition.
    pub partition: Octets,
    /// The kind of the timer.
    pub kind: u8,
    /// The caller's identity of the timer.
    pub reference: Octets,
    /// The generation drawn for the scheduling.
    pub generation: u64,
    /// The attempt, as the handler saw it.
    pub attempt: u16,
    /// The due as it was asked for, in milliseconds since 1970.
    pub due_ms: u64,
    /// The node's wall clock when it began, in milliseconds since 1970.
    pub now_ms: u64,
    /// How it ended.
    pub ended: Ended,
}

/// How a run of a handler ended. What became of the timer is in the commits alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ended {
    /// With effects, and no more of the timer; of a call: it was answered.
    Done,
    /// With effects, and the timer at another due.
    Reschedule,
    /// It asked to be run again, after this delay in milliseconds if it named one.
    Retry {
        /// The delay.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        after_ms: Option<u64>,
    },
    /// It gave the timer up.
    Dead,
    /// With an error.
    Error,
    /// With an error that is not the timer's fault and counts no attempt.
    Uncharged,
    /// It could not read the payload.
    Undecodable,
    /// With a panic.
    Panic,
    /// Its deadline came first.
    Deadline,
    /// It was dropped: its process stopped.
    Cut,
}
