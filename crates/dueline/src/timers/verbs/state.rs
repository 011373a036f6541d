use std::fmt;

use crate::rows::{Header, NameState};

/// What a timer is doing, as stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TimerState {
    /// Waiting for its due.
    Pending,
    /// Failed at least once and waiting for its next attempt.
    Retrying,
    /// Claimed for a run: its call may be under way until the claim ends.
    Claimed,
    /// In the dead class, until it is requeued, purged or scheduled anew.
    Dead,
}

impl TimerState {
    /// Every state, in the order of a timer's life.
    pub const ALL: [Self; 4] = [Self::Pending, Self::Retrying, Self::Claimed, Self::Dead];

    /// A word for people and machines: `pending`, `retrying`, `claimed`, `dead`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Retrying => "retrying",
            Self::Claimed => "claimed",
            Self::Dead => "dead",
        }
    }

    /// The state that the header of a timer row stands for.
    pub(crate) fn of_row(header: &Header) -> Self {
        NameState::of(header).into()
    }

    pub(crate) fn stored(self) -> NameState {
        match self {
            Self::Pending => NameState::Pending,
            Self::Retrying => NameState::Retrying,
            Self::Claimed => NameState::Claimed,
            Self::Dead => NameState::Dead,
        }
    }

    fn bit(self) -> u8 {
        match self {
            Self::Pending => 1,
            Self::Retrying => 1 << 1,
            Self::Claimed => 1 << 2,
            Self::Dead => 1 << 3,
        }
    }
}

impl From<NameState> for TimerState {
    fn from(state: NameState) -> Self {
        match state {
            NameState::Pending => Self::Pending,
            NameState::Retrying => Self::Retrying,
            NameState::Claimed => Self::Claimed,
            NameState::Dead => Self::Dead,
        }
    }
}

impl fmt::Display for TimerState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A set of states.
///
/// ```
/// use dueline::timers::{TimerState, TimerStates};
///
/// let waiting: TimerStates = [TimerState::Pending, TimerState::Retrying].into_iter().collect();
/// assert!(waiting.contains(TimerState::Retrying));
/// assert!(!waiting.contains(TimerState::Dead));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimerStates(u8);

impl TimerStates {
    /// The set of all states, dead included.
    pub fn all() -> Self {
        TimerState::ALL.into_iter().collect()
    }

    /// Every state but dead.
    pub fn live() -> Self {
        TimerState::ALL
            .into_iter()
            .filter(|state| *state != TimerState::Dead)
            .collect()
    }

    /// Whether a state is in the set.
    pub fn contains(self, state: TimerState) -> bool {
        self.0 & state.bit() != 0
    }

    /// Whether no state is in the set.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub(super) fn bits(self) -> u8 {
        self.0
    }
}

impl FromIterator<TimerState> for TimerStates {
    fn from_iter<I: IntoIterator<Item = TimerState>>(states: I) -> Self {
        Self(states.into_iter().fold(0, |bits, state| bits | state.bit()))
    }
}

impl From<TimerState> for TimerStates {
    fn from(state: TimerState) -> Self {
        Self(state.bit())
    }
}
