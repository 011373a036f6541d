use bytes::Bytes;

use super::TimerState;
use super::commit::{Commit, Tries};
use super::named::{NameEntry, name_key};
use crate::mutants::{Mutant, planted};
use crate::rows::NameKey;
use crate::store::{Batch, Partition};
use crate::timers::{TimerError, TimerKind, Timers};

/// A timer that a cancel has removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cancelled {
    /// What it was doing. A call of a claimed one may still arrive; what it settles is dropped.
    pub state: TimerState,
    /// Which scheduling it was.
    pub generation: u64,
}

/// Removes a name and the row that it points at, as it was read.
fn removal(entry: &NameEntry) -> Batch {
    let key = entry.name.encode();
    let batch = Batch::new()
        .require_equals(key.clone(), entry.value.clone())
        .delete(key);
    if planted(Mutant::CancelLeavesRow) {
        return batch;
    }
    batch.delete(entry.target())
}

/// As [`removal`]; of a name without a timer it requires that there is none.
pub(super) fn removal_of(name: &NameKey, seen: Option<&NameEntry>) -> Batch {
    match seen {
        Some(entry) => removal(entry),
        None => Batch::new().require_absent(name.encode()),
    }
}

impl Timers {
    /// Removes the timer of this name, whatever its state, dead included. `None` if there is none.
    ///
    /// Once acknowledged it is final: nothing of this scheduling commits any more. Works on a full
    /// store.
    ///
    /// # Errors
    /// `GenerationMismatch` if `if_match` names another generation; `Invalid` for kind 0 or a
    /// reference over 512 bytes; `Contended`; what the store says. After `Unknown`, cancel again.
    pub async fn cancel(
        &self,
        partition: &Partition,
        kind: TimerKind,
        reference: &Bytes,
        if_match: Option<u64>,
    ) -> Result<Option<Cancelled>, TimerError> {
        let name = name_key(kind, reference)?;
        self.cancel_where(partition, &name, |entry| entry.require_generation(if_match))
            .await
    }

    /// Removes the timer of this name unless a run of it is claimed, so that no call of it is under
    /// way afterwards. A claim that has ended does not count: its call was dropped before.
    ///
    /// # Errors
    /// `Claimed` while a claim lasts; else as [`cancel`](Self::cancel).
    pub async fn cancel_unless_claimed(
        &self,
        partition: &Partition,
        kind: TimerKind,
        reference: &Bytes,
        if_match: Option<u64>,
    ) -> Result<Option<Cancelled>, TimerError> {
        let name = name_key(kind, reference)?;
        self.cancel_where(partition, &name, |entry| {
            entry.require_generation(if_match)?;
            let ends_at_ms = entry.row.due_ms;
            if entry.state() == TimerState::Claimed && self.runtime().now_ms() < ends_at_ms {
                return Err(TimerError::Claimed { ends_at_ms });
            }
            Ok(())
        })
        .await
    }

    /// Plans a cancel: reads the name, and returns the batch to append. It removes the timer, whatever its
    /// state, dead included; where there is none it requires that there is none still.
    ///
    /// # Errors
    /// `Invalid` for kind 0 or a reference over 512 bytes, and what the store says.
    pub async fn plan_cancel(
        &self,
        partition: &Partition,
        kind: TimerKind,
        reference: &Bytes,
    ) -> Result<Batch, TimerError> {
        let name = name_key(kind, reference)?;
        let seen = self.read_name(partition, &name).await?;
        Ok(removal_of(&name, seen.as_ref()))
    }

    async fn cancel_where(
        &self,
        partition: &Partition,
        name: &NameKey,
        check: impl Fn(&NameEntry) -> Result<(), TimerError>,
    ) -> Result<Option<Cancelled>, TimerError> {
        let mut seen = self.read_name(partition, name).await?;
        let mut tries = Tries::default();
        loop {
            let Some(entry) = seen else {
                return Ok(None);
            };
            check(&entry)?;
            match self.commit(partition, removal(&entry)).await? {
                Commit::Written => {
                    return Ok(Some(Cancelled {
                        state: entry.state(),
                        generation: entry.row.generation,
                    }));
                }
                Commit::Lost { observed, .. } => {
                    tries.changed()?;
                    seen = observed
                        .map(|value| NameEntry::decode(name, value))
                        .transpose()?;
                }
            }
        }
    }
}
