//! Running a guarded batch, and how often a verb starts over.

use crate::mutants::{Mutant, planted};
use crate::store::{Batch, BatchOutcome, Partition, StoreError, StoreErrorKind, Value};
use crate::timers::{TimerError, Timers};

/// How often a verb finds its timer changed by others before it gives up.
const CHANGES_MAX: u32 = 8;
/// How often a verb finds the key it has drawn taken. Writers of one process never do; two
/// processes must draw the same 18 random bits in one millisecond for one due and reference.
const COLLISIONS_MAX: u32 = 64;

/// Counts the lost guards of one verb.
#[derive(Debug, Default)]
pub(crate) struct Tries {
    changes: u32,
    collisions: u32,
}

impl Tries {
    /// Others changed the timer: start over, eight times at most.
    pub(crate) fn changed(&mut self) -> Result<(), TimerError> {
        self.changes += 1;
        if self.changes >= CHANGES_MAX {
            return Err(TimerError::Contended);
        }
        Ok(())
    }

    /// The new key was taken: draw again.
    pub(super) fn collided(&mut self) -> Result<(), TimerError> {
        self.collisions += 1;
        if self.collisions >= COLLISIONS_MAX {
            return Err(TimerError::Contended);
        }
        Ok(())
    }
}

/// The end of a commit that reached the store.
#[derive(Debug)]
pub(super) enum Commit {
    Written,
    Lost {
        index: usize,
        observed: Option<Value>,
    },
}

impl Commit {
    pub(super) fn of(outcome: BatchOutcome) -> Result<Self, StoreError> {
        match outcome {
            BatchOutcome::Committed => Ok(Self::Written),
            BatchOutcome::PreconditionFailed { index, observed } => {
                Ok(Self::Lost { index, observed })
            }
            BatchOutcome::DeadlinePassed { .. } | BatchOutcome::TooEarly { .. } => Err(
                StoreError::unavailable("the store applied a time bound to a batch that has none"),
            ),
        }
    }
}

impl Timers {
    pub(super) async fn commit(
        &self,
        partition: &Partition,
        batch: Batch,
    ) -> Result<Commit, TimerError> {
        let outcome = match self.store().apply(partition, batch).await {
            Err(error)
                if planted(Mutant::UnknownVerbIsWritten)
                    && error.kind() == StoreErrorKind::Unknown =>
            {
                return Ok(Commit::Written);
            }
            outcome => outcome?,
        };
        Ok(Commit::of(outcome)?)
    }
}
