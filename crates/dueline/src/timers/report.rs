use super::TimerKind;
use crate::ordered::OrderedMap;
use crate::store::{StoreError, StoreErrorKind};

/// What a tick did to the timers of one kind. The counts exclude each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Done: effects and removal committed.
    pub fired: u64,
    /// Scheduled again by their handler.
    pub rescheduled: u64,
    /// Claimed for a detached call.
    pub claimed: u64,
    /// Failed and moved to a later attempt.
    pub failed: u64,
    /// Moved to the dead class.
    pub dead: u64,
    /// Changed or removed by somebody else before the commit; nothing of the run took effect.
    pub raced: u64,
    /// The commit's outcome was not known; the row was read again and settled from what it said.
    pub unknown_outcome: u64,
    /// Could not be written or moved now: the lane is closed for this tick.
    pub held: u64,
    /// Read, and left for a later tick by a budget, a cap or a missing slot. A lane may hold more
    /// that were not read: what a tick cannot run it does not read.
    pub deferred: u64,
}

impl Counts {
    /// Adds another tick's counts.
    pub fn add(&mut self, other: &Self) {
        self.fired += other.fired;
        self.rescheduled += other.rescheduled;
        self.claimed += other.claimed;
        self.failed += other.failed;
        self.dead += other.dead;
        self.raced += other.raced;
        self.unknown_outcome += other.unknown_outcome;
        self.held += other.held;
        self.deferred += other.deferred;
    }

    /// Timers whose state changed for good or for later.
    pub fn progressed(&self) -> u64 {
        self.fired + self.rescheduled + self.claimed + self.failed + self.dead
    }
}

/// What one tick did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunReport {
    /// Counts over all kinds.
    pub total: Counts,
    /// The same counts per kind, ascending.
    pub per_kind: OrderedMap<TimerKind, Counts>,
    /// Malformed rows set aside.
    pub quarantined: u64,
    /// Lanes of kinds without a handler here; never written.
    pub unknown_lanes: u64,
    /// Lanes that are paused.
    pub paused_lanes: u64,
    /// Rows read from the store to find what is due; charged to the budget.
    pub scanned: u64,
    /// Whether the budget ended the tick while due timers were left.
    pub stopped_on_budget: bool,
    /// Whether the store refused a write or a read: the driver holds the partition back.
    pub held_back: bool,
    /// Whether the store refused a write for want of room: room may come at any moment, so the driver
    /// does not hold the partition back for long.
    pub store_full: bool,
    /// When the partition should be looked at again, in milliseconds since 1970: a report, not the
    /// wake. `None` if nothing is pending for the lanes that were looked at.
    pub next_wake_ms: Option<u64>,
    /// The worst lateness of a timer that ran, in milliseconds.
    pub worst_lateness_ms: u64,
}

impl RunReport {
    pub(crate) fn hold_back(&mut self, error: &StoreError) {
        self.held_back = true;
        self.store_full |= error.kind() == StoreErrorKind::Full;
    }

    pub(crate) fn count(&mut self, kind: TimerKind, change: impl Fn(&mut Counts)) {
        change(&mut self.total);
        change(self.per_kind.entry(kind).or_default());
    }
}
