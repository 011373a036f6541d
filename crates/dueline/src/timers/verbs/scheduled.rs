use super::TimerState;
use super::named::NameEntry;

/// What becomes of a timer that a schedule meets under its name. Anonymous timers meet none.
///
/// | the name is | `Replace` | `KeepEarliest` | `IfAbsent` |
/// |---|---|---|---|
/// | absent | created | created | created |
/// | pending | new due and payload | the earlier due, new payload | nothing written |
/// | retrying | same | new payload; next attempt and attempts kept | nothing written |
/// | claimed | same; the run in progress settles nothing | same, at the due asked for | nothing written |
/// | dead | dead row removed, created | dead row removed, created | nothing written |
///
/// Whatever is written has a new generation, so a run that began before it can never settle over
/// it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Policy {
    /// The new scheduling takes the place of the old one.
    #[default]
    Replace,
    /// A kick: there is work, no later than this. Does not shorten a back-off.
    KeepEarliest,
    /// The old scheduling stays, whatever its state.
    IfAbsent,
}

/// What a verb did to a timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScheduleOutcome {
    /// There was no live timer of that name (none at all, or a dead one that is gone now).
    Created,
    /// A new generation has taken the place of a pending, retrying or claimed one.
    Replaced,
    /// The same generation lies at another due: fired now, or requeued.
    Moved,
    /// Nothing was written; the answer describes what is there.
    Kept,
}

/// A timer as it stands after a verb.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scheduled {
    /// Which scheduling it is. Opaque: compare it for equality only.
    pub generation: u64,
    /// When it is looked at next, in milliseconds since 1970: its due; when retrying the next
    /// attempt, when claimed the end of the claim, when dead the time of death.
    pub due_at_ms: u64,
    /// What it is doing.
    pub state: TimerState,
    /// What the verb did.
    pub outcome: ScheduleOutcome,
}

impl Scheduled {
    pub(super) fn kept(entry: &NameEntry) -> Self {
        Self {
            generation: entry.row.generation,
            due_at_ms: entry.row.due_ms,
            state: entry.state(),
            outcome: ScheduleOutcome::Kept,
        }
    }
}
