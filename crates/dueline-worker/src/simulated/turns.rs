//! Turns: what is written between two waits, which becomes durable together and in order.

use dueline::store::{Batch, Partition, StoreError, Wake};

use super::database::Database;

/// One turn that wrote something.
#[derive(Clone, Debug, Default)]
pub struct TurnRecord {
    /// Whose turn it was, as [`SimulatedStorage::set_actor`](super::SimulatedStorage::set_actor) said.
    pub actor: u8,
    /// The wall clock, in milliseconds since 1970.
    pub now_ms: u64,
    /// The batches that were committed, in their order.
    pub commits: Vec<(Partition, Batch)>,
    /// The stored wakes at its end, of all kinds.
    pub wakes: Vec<Wake>,
    /// The stored alarm at its end.
    pub alarm_ms: Option<u64>,
}

#[derive(Debug)]
struct Unsynced {
    alarm_before: Option<u64>,
    record: TurnRecord,
}

/// The turns behind the last durable one. Each is a savepoint within those before it.
#[derive(Debug, Default)]
pub(super) struct Turns {
    open: Option<Unsynced>,
    ended: Vec<Unsynced>,
}

impl Turns {
    /// Begins a turn with its first write.
    pub(super) fn begin(
        &mut self,
        database: &Database,
        alarm_ms: Option<u64>,
        actor: u8,
    ) -> Result<(), StoreError> {
        if self.open.is_some() {
            return Ok(());
        }
        database.control(&format!("SAVEPOINT turn_{}", self.ended.len()))?;
        self.open = Some(Unsynced {
            alarm_before: alarm_ms,
            record: TurnRecord {
                actor,
                ..TurnRecord::default()
            },
        });
        Ok(())
    }

    pub(super) fn note_commits(&mut self, partition: &Partition, batches: &[Batch]) {
        if let Some(open) = &mut self.open {
            let commits = batches
                .iter()
                .map(|batch| (partition.clone(), batch.clone()));
            open.record.commits.extend(commits);
        }
    }

    pub(super) fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// Ends the open turn: it is committed, and durable once it is synced.
    pub(super) fn end(&mut self, finish: impl FnOnce(&mut TurnRecord)) {
        if let Some(mut open) = self.open.take() {
            finish(&mut open.record);
            self.ended.push(open);
        }
    }

    /// How many turns have ended and are not durable.
    pub(super) fn unsynced(&self) -> usize {
        self.ended.len()
    }

    /// Whether every turn that is not durable left the alarm as it is in the last durable one.
    pub(super) fn keep_alarm(&self, durable_ms: Option<u64>) -> bool {
        self.ended
            .iter()
            .all(|turn| turn.record.alarm_ms == durable_ms)
    }

    /// All that have ended are durable.
    pub(super) fn sync(&mut self, database: &Database) -> Result<Vec<TurnRecord>, StoreError> {
        if self.ended.is_empty() {
            return Ok(Vec::new());
        }
        database.control("RELEASE turn_0")?;
        Ok(self.ended.drain(..).map(|turn| turn.record).collect())
    }

    /// Loses the open turn and the last ones that ended, all but this many. Returns the records of those
    /// that are durable now, and the alarm as it was before those that are lost.
    pub(super) fn lose_all_but(
        &mut self,
        database: &Database,
        kept: usize,
        alarm_ms: Option<u64>,
    ) -> Result<(Vec<TurnRecord>, Option<u64>), StoreError> {
        let mut alarm_ms = alarm_ms;
        let kept = kept.min(self.ended.len());
        let open = self.open.take();
        if open.is_some() || kept < self.ended.len() {
            database.control(&format!("ROLLBACK TO turn_{kept}"))?;
            database.control(&format!("RELEASE turn_{kept}"))?;
        }
        if let Some(open) = open {
            alarm_ms = open.alarm_before;
        }
        if let Some(first_lost) = self.ended.get(kept) {
            alarm_ms = first_lost.alarm_before;
        }
        self.ended.truncate(kept);
        let durable = self.sync(database)?;
        Ok((durable, alarm_ms))
    }
}
