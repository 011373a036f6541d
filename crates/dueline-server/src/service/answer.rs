use serde::{Deserialize, Serialize};

use super::shown::TimerJson;

/// What a request did to a timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Outcome {
    /// There was no live timer by that id.
    Created,
    /// Another scheduling has taken the place of the one before.
    Replaced,
    /// The timer was as asked already.
    Unchanged,
    /// The same scheduling lies at another time.
    Moved,
}

/// A timer as a request left it.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) outcome: Outcome,
    pub(crate) timer: TimerJson,
}
