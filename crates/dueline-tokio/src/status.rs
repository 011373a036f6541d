use std::time::Duration;

use dueline::timers::Counts;

/// What the driver is doing and has done, as of its last look round (at most about a second ago).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Status {
    /// Whether [`pause`](crate::Handle::pause) is in force.
    pub paused: bool,
    /// Whether it is shutting down or has been shut down.
    pub stopping: bool,
    /// Partitions being ticked at this moment.
    pub ticks_running: usize,
    /// Detached calls under way.
    pub calls_running: usize,
    /// Partitions waiting for their turn.
    pub partitions_queued: usize,
    /// Partitions held back because the store refused something.
    pub partitions_held_back: usize,
    /// Since when the store has refused the partition that it has refused longest, in milliseconds
    /// since 1970; `None` if it refuses none.
    pub refused_since_ms: Option<u64>,
    /// Stored wakes kept in memory. Bounded, however many timers are pending.
    pub wakes_in_memory: usize,
    /// Wakes in memory that are due and wait.
    pub wakes_overdue: usize,
    /// When it will look next, in milliseconds since 1970; `None` if nothing it knows of is pending.
    pub next_wake_ms: Option<u64>,
    /// What became of the timers that ran, since the start.
    pub totals: Counts,
    /// Ticks, since the start.
    pub ticks: u64,
    /// Malformed rows set aside, since the start.
    pub quarantined: u64,
    /// Ticks that panicked, since the start. Panics of handlers are caught before and count as
    /// failed runs.
    pub ticks_panicked: u64,
    /// How late the worst timer of the latest tick ran, in milliseconds.
    pub last_lateness_ms: u64,
    /// How late the worst timer since the start ran, in milliseconds.
    pub worst_lateness_ms: u64,
    /// Reads of wakes that the store refused, since the start.
    pub reads_refused: u64,
    /// Wakes the audit had to set, since the start. Each is a bug of the store.
    pub wakes_repaired: u64,
    /// Complete walks of the audit, since the start.
    pub audits_completed: u64,
    /// Dead timers brought back because their payload decodes now, since the start.
    pub requeued: u64,
    /// Steps of the wall clock noticed, since the start: a suspended machine, or a clock that was set.
    pub clock_jumps: u64,
    /// The latest such step, in milliseconds; negative if the clock went back.
    pub last_clock_jump_ms: i64,
    /// Ticks that did not end in time, since the start: a handler that never yields, or a store that
    /// never answers.
    pub ticks_overrun: u64,
}

/// How a drain ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DrainReport {
    /// Whether everything that was due has run. `false`: the deadline came first, or the driver
    /// stopped.
    pub idle: bool,
    /// Partitions that stay due because the store refused them: they are held back.
    pub partitions_held_back: usize,
}

/// How a shutdown ended. Nothing is lost in any case: what did not finish is still stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ShutdownReport {
    /// Whether everything that ran has finished within the grace period.
    pub finished: bool,
    /// Calls that were cut and given back: their timers are due at once, no attempt charged.
    pub released: u64,
    /// Calls that were cut and could not be given back: their timers run again when the claim ends.
    pub unreleased: u64,
    /// Threads that had not ended, because a handler does not yield.
    pub threads_stuck: usize,
    /// Whether a second call, or the end of the handle, cut the shutdown short.
    pub aborted: bool,
}

/// Longest sleep before the wall clock is read again.
pub(crate) const NAP_MAX: Duration = Duration::from_secs(1);
