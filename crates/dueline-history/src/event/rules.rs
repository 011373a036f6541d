use serde::{Deserialize, Serialize};

/// What an engine's history is held to beside what is true of every history. What is `None` or empty
/// is not checked.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct EngineRules {
    /// How far a clock of a store may be off the true time, in milliseconds (I3).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skew_ms: Option<u64>,
    /// How late a timer may be served while owners are healthy, in milliseconds (I8).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lateness_ms: Option<u64>,
    /// The largest budget that a turn is given (I9).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget: Option<Budget>,
    /// How much longer than its budget a turn may take, in milliseconds: what was begun in time may
    /// end, so one run and one commit (I9).
    pub overrun_ms: u64,
    /// How many ticks of other partitions may come before that of a partition with a timer that is
    /// due (I10).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turns_max: Option<u64>,
    /// Kinds whose timers of one tick take effect in the order of their keys (I11).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub kinds_in_order: Vec<u8>,
    /// Kinds that recur at a fixed distance (I12).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub recurring: Vec<Recurring>,
    /// How kinds retry (I13).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub retries: Vec<Retries>,
    /// Whether the store keeps wakes: then every commit tells all of its partition (I7).
    pub wakes_kept: bool,
}

/// How much one turn may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Budget {
    /// Most runs.
    pub fired: u64,
    /// Most runs of one kind.
    pub per_kind: u64,
    /// Most rows read, but for what finds the lanes.
    pub scanned: u64,
    /// Most time, in milliseconds.
    pub elapsed_ms: u64,
}

impl From<&dueline::timers::TickBudget> for Budget {
    fn from(budget: &dueline::timers::TickBudget) -> Self {
        Self {
            fired: budget.max_fired.max(1).into(),
            per_kind: budget.max_per_kind.max(1).into(),
            scanned: budget.max_scanned.max(1).into(),
            elapsed_ms: budget.max_elapsed_ms.max(1),
        }
    }
}

/// A kind whose handler schedules its timer again at a fixed distance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recurring {
    /// The kind.
    pub kind: u8,
    /// From one due to the next, in milliseconds.
    pub every_ms: u64,
    /// Whether occurrences may be left out when they are late: the next due is then any multiple
    /// behind the last.
    pub may_skip: bool,
}

/// How a kind retries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Retries {
    /// The kind.
    pub kind: u8,
    /// The delay after the first failure, in milliseconds.
    pub initial_ms: u64,
    /// The longest delay before jitter, in milliseconds.
    pub max_ms: u64,
    /// The most that jitter adds, in percent.
    pub jitter_percent: u8,
    /// After how many failed attempts the timer is dead; `None` retries for ever.
    pub attempts_max: Option<u16>,
}

impl Retries {
    /// The policy of a kind.
    pub fn of(kind: dueline::timers::TimerKind, policy: &dueline::timers::RetryPolicy) -> Self {
        Self {
            kind: kind.0,
            initial_ms: policy.initial_ms,
            max_ms: policy.max_ms,
            jitter_percent: policy.jitter_percent,
            attempts_max: policy.attempts_max,
        }
    }
}
