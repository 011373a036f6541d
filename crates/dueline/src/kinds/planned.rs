use crate::store::{Batch, BatchOutcome, NamespaceStore, Partition, StoreError};
use crate::timers::TimerError;

/// A change of a built-in kind that is planned and not committed yet.
///
/// Append [`batch`](Self::batch) to one of your own and apply that once: both commit or neither does. If
/// a guard is lost that is not one of yours, plan again. Several plans may share a batch unless two of them
/// write the same row: every store refuses that as `Invalid`. To commit it alone there is
/// [`apply`](Self::apply).
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "nothing happens until the batch is committed"]
pub struct Planned<T> {
    /// Guards of what was read, and the writes; empty if there is nothing to change.
    pub batch: Batch,
    /// What it comes to once the batch has committed.
    pub outcome: T,
}

impl<T> Planned<T> {
    /// A change that writes nothing.
    pub(crate) fn nothing(outcome: T) -> Self {
        Self {
            batch: Batch::new(),
            outcome,
        }
    }

    /// Whether a lost guard was one of this plan's. `offset` is how many preconditions stood before the
    /// plan's in the batch that was applied; `index` is that of
    /// [`PreconditionFailed`](BatchOutcome::PreconditionFailed).
    pub fn owns_guard(&self, offset: usize, index: usize) -> bool {
        index
            .checked_sub(offset)
            .is_some_and(|own| own < self.batch.preconditions.len())
    }

    /// Commits the batch by itself. `None` if a guard was lost: nothing is written, plan again.
    ///
    /// # Errors
    /// What the store says. After `Unknown` the batch is there in full or not at all: plan again, which
    /// shows what became of it.
    pub async fn apply(
        self,
        store: &dyn NamespaceStore,
        partition: &Partition,
    ) -> Result<Option<T>, TimerError> {
        match self.commit(store, partition).await? {
            Tried::Committed(outcome) => Ok(Some(outcome)),
            Tried::Lost => Ok(None),
            Tried::Late(_) => Err(clocks_apart()),
        }
    }

    /// Commits the batch by itself, for plans that hold by the store's clock.
    pub(crate) async fn commit(
        self,
        store: &dyn NamespaceStore,
        partition: &Partition,
    ) -> Result<Tried<T>, TimerError> {
        if self.batch.writes.is_empty() {
            return Ok(Tried::Committed(self.outcome));
        }
        Ok(match store.apply(partition, self.batch).await? {
            BatchOutcome::Committed => Tried::Committed(self.outcome),
            BatchOutcome::PreconditionFailed { .. } => Tried::Lost,
            BatchOutcome::DeadlinePassed { .. } | BatchOutcome::TooEarly { .. } => {
                Tried::Late(self.outcome)
            }
        })
    }
}

/// What a commit came to.
pub(crate) enum Tried<T> {
    Committed(T),
    /// Another writer was there: plan again.
    Lost,
    /// Nothing is written: by the store's clock a time bound does not hold.
    Late(T),
}

pub(crate) fn clocks_apart() -> TimerError {
    StoreError::unavailable(
        "the store's clock is not this process's: a time bound of the batch was lost",
    )
    .into()
}

/// Plans and commits until no guard is lost, eight times at most. What a plan came to that was late by the
/// store's clock is `$late`'s to say; without it that is an error.
macro_rules! until_committed {
    ($timers:expr, $partition:expr, $plan:expr) => {
        $crate::kinds::planned::until_committed!($timers, $partition, $plan, |_| {
            Err($crate::kinds::planned::clocks_apart())
        })
    };
    ($timers:expr, $partition:expr, $plan:expr, $late:expr) => {{
        let mut tries = $crate::timers::Tries::default();
        loop {
            let planned = $plan.await?;
            match planned.commit(&**$timers.store(), $partition).await? {
                $crate::kinds::planned::Tried::Committed(outcome) => break Ok(outcome),
                $crate::kinds::planned::Tried::Late(outcome) => break $late(outcome),
                $crate::kinds::planned::Tried::Lost => tries.changed()?,
            }
        }
    }};
}
pub(crate) use until_committed;
