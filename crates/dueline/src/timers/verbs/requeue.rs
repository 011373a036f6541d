use super::commit::{Commit, Tries};
use super::moves::Move;
use super::named::{NameEntry, corrupt};
use super::{DeadId, Scheduled, TimerState};
use crate::mutants::{Mutant, planted};
use crate::rows::{DeadKey, DeadReason, DeadRow, NameKey, TimerKey, TimerRow};
use crate::store::{Batch, Partition, Value};
use crate::timers::{TimerError, Timers};

/// A dead row and the name that points at it, if one does.
#[derive(Debug)]
pub(super) struct DeadRead {
    pub(super) key: DeadKey,
    pub(super) value: Value,
    pub(super) name: Option<NameEntry>,
}

impl DeadRead {
    pub(super) fn named(entry: NameEntry, value: Value) -> Self {
        Self {
            key: DeadKey {
                kind: entry.name.kind,
                dead_at_ms: entry.row.due_ms,
                generation: entry.row.generation,
                reference: entry.name.reference.clone(),
            },
            value,
            name: Some(entry),
        }
    }

    /// The row, with the name's value if that name points at it.
    pub(super) fn new(
        key: DeadKey,
        value: Value,
        name_value: Option<Value>,
    ) -> Result<Self, TimerError> {
        let name = name_of(&key);
        let entry = match name_value {
            Some(value) => {
                let entry = NameEntry::decode(&name, value)?;
                (entry.target() == key.encode()).then_some(entry)
            }
            None => None,
        };
        Ok(Self {
            key,
            value,
            name: entry,
        })
    }
}

pub(super) fn name_of(key: &DeadKey) -> NameKey {
    NameKey {
        kind: key.kind,
        reference: key.reference.clone(),
    }
}

/// The move of a dead timer back into its lane, due now: attempts at 0, the due as asked and the
/// last failure kept. A row whose header did not decode comes back byte for byte.
pub(super) fn plan(dead: DeadRead, now_ms: u64) -> Result<Move, TimerError> {
    let row = DeadRow::decode(&dead.value).map_err(|error| corrupt("a dead timer's row", error))?;
    let (value, state) = if row.reason == DeadReason::UndecodableHeader {
        // The name says what the header would say to a binary that can read it.
        let state = TimerRow::decode(&row.payload).map_or(TimerState::Pending, |found| {
            TimerState::of_row(&found.header)
        });
        (row.payload, state)
    } else {
        let mut header = row.header;
        if !planted(Mutant::RequeueKeepsAttempts) {
            header.attempt = 0;
        }
        header.flags.claimed = false;
        header.flags.named = dead.name.is_some();
        let payload = row.payload;
        (TimerRow { header, payload }.encode(), TimerState::Pending)
    };
    Ok(Move {
        from: dead.key.encode(),
        to: TimerKey {
            kind: dead.key.kind,
            due_ms: now_ms,
            generation: dead.key.generation,
            reference: dead.key.reference,
        },
        value,
        state,
        name: dead.name,
    })
}

impl Timers {
    /// Gives a dead timer another life: pending and due now, attempts at 0. Generation, occurrence
    /// id, payload, the due as asked and the last failure stay. `None` if it is no longer dead.
    ///
    /// # Errors
    /// `Invalid` for an id that names no dead timer, `Corrupt` if its row does not decode,
    /// `Contended`, and what the store says.
    pub async fn requeue(
        &self,
        partition: &Partition,
        id: &DeadId,
    ) -> Result<Option<Scheduled>, TimerError> {
        let mut tries = Tries::default();
        loop {
            let Some(dead) = self.read_dead(partition, id).await? else {
                return Ok(None);
            };
            let planned = plan(dead, self.runtime().now_ms())?;
            if let Some(scheduled) = self.run_move(partition, planned).await? {
                return Ok(Some(scheduled));
            }
            tries.changed()?;
        }
    }

    /// Removes a dead timer for good, its name too. Returns whether it was there. Works on a full
    /// store.
    ///
    /// # Errors
    /// `Invalid` for an id that names no dead timer, `Contended`, and what the store says.
    pub async fn purge(&self, partition: &Partition, id: &DeadId) -> Result<bool, TimerError> {
        let mut tries = Tries::default();
        loop {
            let Some(dead) = self.read_dead(partition, id).await? else {
                return Ok(false);
            };
            let mut batch = Batch::new()
                .require_present(id.key().clone())
                .delete(id.key().clone());
            if let Some(entry) = dead.name.filter(|_| !planted(Mutant::PurgeLeavesName)) {
                let name = entry.name.encode();
                batch = batch.require_equals(name.clone(), entry.value).delete(name);
            }
            match self.commit(partition, batch).await? {
                Commit::Written => return Ok(true),
                Commit::Lost { .. } => tries.changed()?,
            }
        }
    }

    /// A dead row and its name in one read.
    async fn read_dead(
        &self,
        partition: &Partition,
        id: &DeadId,
    ) -> Result<Option<DeadRead>, TimerError> {
        let key = id.decode()?;
        let keys = [id.key().clone(), name_of(&key).encode()];
        let mut values = self.store().get_many(partition, &keys).await?.into_iter();
        match (values.next().flatten(), values.next().flatten()) {
            (Some(value), name_value) => DeadRead::new(key, value, name_value).map(Some),
            (None, _) => Ok(None),
        }
    }
}
