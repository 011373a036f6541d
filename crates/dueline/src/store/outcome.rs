use super::{StoreError, Value};

/// What became of one batch. A lost precondition is an outcome, never an error.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub enum BatchOutcome {
    /// Everything is written, and durable as the store documents.
    Committed,
    /// Nothing is written: this precondition did not hold.
    PreconditionFailed {
        /// Its position in the list, every precondition counted.
        index: usize,
        /// For `Absent` the value found, for `Equals` the value there is, if any; for `Present` none.
        observed: Option<Value>,
    },
    /// Nothing is written: a `NotAfter` had passed.
    DeadlinePassed {
        /// The backend's clock, in milliseconds since 1970; `u64::MAX` if it is unreadable.
        backend_now_ms: u64,
    },
    /// Nothing is written: a `NotBefore` was still to come.
    TooEarly {
        /// The backend's clock, in milliseconds since 1970; 0 if it is unreadable.
        backend_now_ms: u64,
    },
}

impl BatchOutcome {
    /// Whether the batch is written.
    pub fn is_committed(&self) -> bool {
        matches!(self, Self::Committed)
    }
}

/// What became of a group of batches.
///
/// The batches run in order and stop at the first that does not commit. Those behind the one that
/// stopped the group were not looked at, unless `stopped_by` is `Unknown`, which covers them too.
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct GroupOutcome {
    /// The outcomes known, in order: all but the last are `Committed`.
    pub outcomes: Vec<BatchOutcome>,
    /// The error of the batch after the last known outcome, or, if all outcomes are known, of the
    /// settles. `Unknown` covers that batch and everything behind it.
    pub stopped_by: Option<StoreError>,
    /// The wake that each settle of the group left, in the order of the settles; `None` for a lane
    /// without a row to run. Empty if the settles did not run.
    pub next_wakes_ms: Vec<Option<u64>>,
}

impl GroupOutcome {
    /// A group of which nothing was written, or nothing is known.
    pub fn stopped(error: StoreError) -> Self {
        Self {
            stopped_by: Some(error),
            ..Self::default()
        }
    }

    /// How many batches at the front are written.
    pub fn committed(&self) -> usize {
        self.outcomes
            .iter()
            .take_while(|outcome| outcome.is_committed())
            .count()
    }
}
