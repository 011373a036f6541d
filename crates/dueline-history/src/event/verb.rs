use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::Octets;

/// A client asks for something at the level of the engine: the `invoke` of a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verb {
    /// The client's number for it, unique in the history.
    pub request: u64,
    /// The partition.
    pub partition: Octets,
    /// The kind of the timer.
    pub kind: u8,
    /// The caller's identity of the timer.
    pub reference: Octets,
    /// What is asked for.
    pub verb: VerbName,
    /// What becomes of a timer that is there, for a schedule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<Policy>,
    /// Whether the reference is a name.
    #[serde(default)]
    pub named: bool,
    /// The due asked for, in milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due_ms: Option<u64>,
}

/// What a client asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(
    missing_docs,
    reason = "the names of the verbs of `dueline::timers::Timers`"
)]
pub enum VerbName {
    Schedule,
    Cancel,
    Reschedule,
    Change,
    FireNow,
    Get,
    Pause,
    Resume,
    Requeue,
    Purge,
    /// A write of the client's own, which is no timer's verb.
    Write,
}

/// What becomes of a timer that a schedule meets under its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "the policies of `dueline::timers::Policy`")]
pub enum Policy {
    Replace,
    KeepEarliest,
    IfAbsent,
}

impl From<dueline::timers::Policy> for Policy {
    fn from(policy: dueline::timers::Policy) -> Self {
        match policy {
            dueline::timers::Policy::Replace => Self::Replace,
            dueline::timers::Policy::KeepEarliest => Self::KeepEarliest,
            dueline::timers::Policy::IfAbsent => Self::IfAbsent,
        }
    }
}

/// The answer of a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Told {
    /// It was done.
    Ok {
        /// What it did.
        outcome: Outcome,
        /// The generation that stands there now, or stood there until it was removed; 0 if there is
        /// none.
        generation: u64,
    },
    /// It was not done and will not be.
    Fail {
        /// Why.
        why: Cow<'static, str>,
    },
    /// It was done, or it was not, or it will be.
    Unknown,
}

/// What a request that was done did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// A timer was created: there was no live one of that name.
    Created,
    /// A new generation has taken the place of a timer.
    Replaced,
    /// The same generation lies elsewhere: fired now, or requeued.
    Moved,
    /// The timer, or the dead one, was removed.
    Removed,
    /// A lane was paused or resumed, or a row of the client's own written.
    Written,
    /// Nothing was written: the timer that is there stays.
    Kept,
    /// Nothing was written: the timer was read.
    Found,
    /// Nothing was written: there is no such timer.
    NotFound,
}

impl Outcome {
    /// Whether exactly one commit belongs to it; else none does.
    pub fn is_write(self) -> bool {
        match self {
            Self::Created | Self::Replaced | Self::Moved | Self::Removed | Self::Written => true,
            Self::Kept | Self::Found | Self::NotFound => false,
        }
    }
}

impl From<dueline::timers::ScheduleOutcome> for Outcome {
    fn from(outcome: dueline::timers::ScheduleOutcome) -> Self {
        match outcome {
            dueline::timers::ScheduleOutcome::Created => Self::Created,
            dueline::timers::ScheduleOutcome::Replaced => Self::Replaced,
            dueline::timers::ScheduleOutcome::Moved => Self::Moved,
            dueline::timers::ScheduleOutcome::Kept => Self::Kept,
        }
    }
}
