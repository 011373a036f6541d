use dueline::timers::Counts;

/// What the platform says with an alarm.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AlarmInfo {
    /// How often this alarm has been tried before, as far as the platform counts it.
    pub retry_count: u32,
    /// Whether an earlier try of this alarm failed, or was cut.
    pub is_retry: bool,
    /// The time for which the alarm was set, in milliseconds since 1970, if the platform says it. The
    /// next alarm is not set at that time. Without a word of it the next is set at none of the last four
    /// that this instance has set or read, and 11 ms ahead if there are none; so a timer may be that much
    /// late.
    pub scheduled_at_ms: Option<u64>,
}

/// What one alarm did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AlarmReport {
    /// Rounds over what was due; more than one behind a backlog and while calls were under way.
    pub ticks: u32,
    /// Turns of partitions.
    pub turns: u64,
    /// What became of the timers in the ticks.
    pub total: Counts,
    /// What became of the claimed ones when their calls had ended.
    pub settled: Counts,
    /// Malformed rows set aside.
    pub quarantined: u64,
    /// Turns that the store refused; their partitions are held back for a while.
    pub refused: u64,
    /// Whether a budget left due timers for the next alarm.
    pub stopped_on_budget: bool,
    /// The worst lateness of a timer that ran, in milliseconds.
    pub worst_lateness_ms: u64,
    /// Where the alarm is set now, in milliseconds since 1970; `None` if nothing is pending.
    pub next_alarm_ms: Option<u64>,
}

/// What a look at the alarm came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Restored {
    /// It is set early enough, or nothing is pending.
    Sound,
    /// The alarm is being served; its handler sets the next.
    Serving,
    /// It was missing, too late or lost, and is set now.
    Set {
        /// Where, in milliseconds since 1970.
        at_ms: u64,
    },
}
