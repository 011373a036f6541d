use std::time::Duration;

use super::TimerKind;
use crate::mutants::{Mutant, planted};
use crate::ordered::OrderedMap;

/// How much one tick may do. Every limit works at its smallest value; 0 counts as 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TickBudget {
    /// Most timers fired, moves of failed ones included.
    pub max_fired: u32,
    /// Most runs of one kind. A registration can lower it for its kind.
    pub max_per_kind: u32,
    /// Most rows read. Finding the lanes is charged but never keeps a lane from its first fire.
    pub max_scanned: u32,
    /// Most monotonic time, in milliseconds, looked at before a fire or a commit starts.
    pub max_elapsed_ms: u64,
}

impl Default for TickBudget {
    /// For an object: 128 fires, 32 a kind, 512 rows, 30 s.
    fn default() -> Self {
        Self {
            max_fired: 128,
            max_per_kind: 32,
            max_scanned: 512,
            max_elapsed_ms: 30_000,
        }
    }
}

impl TickBudget {
    /// For a native process: 1,024 fires, as many a kind, 4,096 rows, 1 s.
    pub fn native() -> Self {
        Self {
            max_fired: 1_024,
            max_per_kind: 1_024,
            max_scanned: 4_096,
            max_elapsed_ms: 1_000,
        }
    }

    /// No limit but those of the machine.
    pub fn unlimited() -> Self {
        Self {
            max_fired: u32::MAX,
            max_per_kind: u32::MAX,
            max_scanned: u32::MAX,
            max_elapsed_ms: u64::MAX,
        }
    }
}

/// What is left of a budget, shared by all partitions of one physical tick.
#[derive(Clone, Debug)]
pub struct TickState {
    budget: TickBudget,
    started: Duration,
    fired: u32,
    scanned: u32,
    per_kind: OrderedMap<TimerKind, u32>,
}

impl TickState {
    /// A full budget, counting from this moment of the monotonic clock.
    pub fn new(budget: TickBudget, started: Duration) -> Self {
        let budget = TickBudget {
            max_fired: budget.max_fired.max(1),
            max_per_kind: budget.max_per_kind.max(1),
            max_scanned: budget.max_scanned.max(1),
            max_elapsed_ms: budget.max_elapsed_ms.max(1),
        };
        Self {
            budget,
            started,
            fired: 0,
            scanned: 0,
            per_kind: OrderedMap::new(),
        }
    }

    /// The limits this state counts against; every 0 has become 1.
    pub fn budget(&self) -> &TickBudget {
        &self.budget
    }

    /// How many fires are left.
    pub fn fires_left(&self) -> u32 {
        if planted(Mutant::BudgetIgnored) {
            return u32::MAX;
        }
        self.budget.max_fired.saturating_sub(self.fired)
    }

    /// How many rows may still be read.
    pub fn scans_left(&self) -> u32 {
        self.budget.max_scanned.saturating_sub(self.scanned)
    }

    /// How much time is left.
    pub fn time_left(&self, now: Duration) -> Duration {
        Duration::from_millis(self.budget.max_elapsed_ms)
            .saturating_sub(now.saturating_sub(self.started))
    }

    /// Whether nothing more may be started.
    pub fn is_exhausted(&self, now: Duration) -> bool {
        self.fires_left() == 0 || self.time_left(now).is_zero()
    }

    /// Charges rows that were read.
    pub(crate) fn charge_scan(&mut self, rows: usize) {
        self.scanned = self
            .scanned
            .saturating_add(u32::try_from(rows).unwrap_or(u32::MAX));
    }

    /// How many runs this kind has left; a registration can lower the cap, never raise it.
    pub(crate) fn kind_left(&self, kind: TimerKind, per_tick_max: Option<u32>) -> u32 {
        let most = per_tick_max
            .unwrap_or(u32::MAX)
            .max(1)
            .min(self.budget.max_per_kind);
        most.saturating_sub(self.per_kind.get(&kind).copied().unwrap_or(0))
    }

    /// Gives back a run that was taken and did not come about.
    pub(crate) fn give_back(&mut self, kind: TimerKind) {
        self.fired = self.fired.saturating_sub(1);
        if let Some(runs) = self.per_kind.get_mut(&kind) {
            *runs = runs.saturating_sub(1);
        }
    }

    /// Takes one run of this kind, if both the kind and the tick have one left.
    pub(crate) fn claim(&mut self, kind: TimerKind, per_tick_max: Option<u32>) -> bool {
        if self.fires_left() == 0 || self.kind_left(kind, per_tick_max) == 0 {
            return false;
        }
        self.fired = self.fired.saturating_add(1);
        let runs = self.per_kind.entry(kind).or_insert(0);
        *runs = runs.saturating_add(1);
        true
    }
}
