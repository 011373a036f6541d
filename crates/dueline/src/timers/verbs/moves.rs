//! Moves: the same scheduling under another key.

use super::commit::{Commit, Tries};
use super::named::NameEntry;
use super::{ScheduleOutcome, Scheduled, TimerState};
use crate::mutants::{Mutant, planted};
use crate::rows::{NameRow, TimerKey};
use crate::store::{Batch, Key, Partition, Value};
use crate::timers::{TimerError, Timers};

/// A timer on its way to a due, generation kept.
#[derive(Clone, Debug)]
pub(super) struct Move {
    /// The row it leaves: a timer's or a dead one's.
    pub(super) from: Key,
    pub(super) to: TimerKey,
    pub(super) value: Value,
    pub(super) state: TimerState,
    /// Its name, if it has one.
    pub(super) name: Option<NameEntry>,
}

impl Move {
    /// The new key's guard comes last: only if the others held is a collision one.
    pub(super) fn batch(&self) -> Batch {
        let mut batch = Batch::new().require_present(self.from.clone());
        if let Some(entry) = self
            .name
            .as_ref()
            .filter(|_| !planted(Mutant::RequeueLeavesName))
        {
            let row = NameRow {
                state: self.state.stored(),
                due_ms: self.to.due_ms,
                generation: self.to.generation,
            };
            let key = entry.name.encode();
            batch = batch
                .require_equals(key.clone(), entry.value.clone())
                .put(key, row.encode());
        }
        let key = self.to.encode();
        batch = batch
            .require_absent(key.clone())
            .delete(self.from.clone())
            .put(key, self.value.clone());
        // A move makes nothing grow, so a full store need not refuse it.
        batch.uses_reserve = true;
        batch
    }

    /// Whether the guard of this position is that of the new key.
    pub(super) fn is_collision(&self, index: usize) -> bool {
        index == 1 + usize::from(self.name.is_some())
    }

    pub(super) fn scheduled(&self) -> Scheduled {
        Scheduled {
            generation: self.to.generation,
            due_at_ms: self.to.due_ms,
            state: self.state,
            outcome: ScheduleOutcome::Moved,
        }
    }
}

impl Timers {
    /// Commits a move, a millisecond later for every key that is taken; `None` if the timer is no
    /// longer as it was read.
    pub(super) async fn run_move(
        &self,
        partition: &Partition,
        mut planned: Move,
    ) -> Result<Option<Scheduled>, TimerError> {
        let mut tries = Tries::default();
        loop {
            match self.commit(partition, planned.batch()).await? {
                Commit::Written => return Ok(Some(planned.scheduled())),
                Commit::Lost { index, .. } if planned.is_collision(index) => {
                    tries.collided()?;
                    planned.to.due_ms = planned.to.due_ms.saturating_add(1);
                }
                Commit::Lost { .. } => return Ok(None),
            }
        }
    }
}
