//! What a transaction of a doubted writer makes sure of when it uses what is remembered: that the partition
//! still has its id, and that the wake of a lane still lies where it was set. A timer's row is written only beside
//! that wake, which says both without a statement of its own; a guard that finds its row says the first; else
//! one statement does.

use bytes::Bytes;

use super::conn::{SqlParam, exists, first_int};
use super::lanes::wake_params;
use super::statements as sql;
use super::transaction::Transaction;
use super::writer::Lane;
use crate::mutants::{Mutant, planted};
use crate::rows::lane_head;
use crate::store::{Batch, Key, Precondition, StoreError, Value, Write};

/// What a transaction goes by.
#[derive(Debug, Default)]
pub(super) struct Sure {
    /// Partitions and lanes that were looked at, or written, by the transaction itself.
    partitions: Vec<i64>,
    lanes: Vec<Lane>,
    /// Lanes whose wakes are to be shown by the first row that is written there.
    assumed: Vec<Lane>,
}

impl Sure {
    pub(super) fn partition(&mut self, id: i64) {
        if !self.partitions.contains(&id) {
            self.partitions.push(id);
        }
    }

    fn lane(&mut self, lane: Lane) {
        self.assumed.retain(|assumed| *assumed != lane);
        self.lanes.push(lane);
        self.partition(lane.0);
    }
}

impl Transaction<'_> {
    /// The id of the partition of a batch, of which nothing has been written yet.
    pub(super) fn make_sure(
        &mut self,
        name: &Bytes,
        part: Option<i64>,
        batch: &Batch,
    ) -> Result<Option<i64>, StoreError> {
        let Some(id) = part else { return Ok(None) };
        if self.trusts_memory() {
            return Ok(part);
        }
        let mut shows_itself = batch.preconditions.iter().any(needs_a_row);
        for write in &batch.writes {
            let Write::Put(key, _) = write else { continue };
            let Some(head) = lane_head(key) else { continue };
            shows_itself |= self.assume((id, head.kind.0));
        }
        if shows_itself || self.is_sure(id) {
            return Ok(part);
        }
        let stored = first_int(self.conn, sql::PART_ID, &[SqlParam::Blob(name)])?;
        if stored != part {
            self.writer.ids.remove(name);
        }
        if let Some(stored) = stored {
            self.sure.partition(stored);
        }
        Ok(stored)
    }

    /// Leaves it to the first row of the lane to show its wake. Whether one is remembered.
    fn assume(&mut self, lane: Lane) -> bool {
        if self.writer.armed.get(&lane).is_none() {
            return false;
        }
        if !self.sure.lanes.contains(&lane) && !self.sure.assumed.contains(&lane) {
            self.sure.assumed.push(lane);
        }
        true
    }

    /// Writes a row; if the wake of its lane is to be shown, then only beside that.
    pub(super) fn write(
        &mut self,
        write: &sql::RowWrite,
        part: i64,
        key: &Key,
        value: &Value,
    ) -> Result<u64, StoreError> {
        let (row, value) = (SqlParam::Blob(key), SqlParam::Blob(value));
        let lane = lane_head(key).map(|head| (part, head.kind.0));
        let assumed = lane.filter(|lane| self.sure.assumed.contains(lane));
        let known = assumed.and_then(|lane| Some((lane, self.writer.armed.get(&lane)?)));
        let Some((lane, at)) = known else {
            let row = [SqlParam::Int(part), row, value];
            return self.conn.execute(write.plain, &row);
        };
        let [kind, at, part] = wake_params(lane, at);
        let written = self
            .conn
            .execute(write.beside, &[part, row, value, kind, at])?;
        if written == 0 {
            self.show(lane)?;
        } else {
            self.sure.lane(lane);
        }
        Ok(written)
    }

    /// Looks at the wakes that no row has shown.
    pub(super) fn show_the_rest(&mut self) -> Result<(), StoreError> {
        for lane in self.sure.assumed.clone() {
            self.show(lane)?;
        }
        Ok(())
    }

    /// Looks at a wake that was assumed. The transaction has failed if it is not there.
    fn show(&mut self, lane: Lane) -> Result<(), StoreError> {
        if self.stands(lane)? {
            return Ok(());
        }
        self.writer.forget();
        self.writer.was_wrong = true;
        Err(StoreError::unavailable("what was remembered is not stored"))
    }

    /// A batch was lost under an id that nothing has shown to be right: the next one reads it.
    pub(super) fn doubt(&mut self, name: &Bytes, part: Option<i64>) {
        if part.is_some_and(|id| !self.is_sure(id)) {
            self.writer.ids.remove(name);
        }
    }

    /// The wake that is remembered of a lane and, as far as it is to stand for another, is there.
    pub(super) fn known_wake(
        &mut self,
        lane: Lane,
        stands_for: Option<i64>,
    ) -> Result<Option<i64>, StoreError> {
        let known = self.writer.armed.get(&lane);
        match (known, stands_for) {
            (Some(at), Some(wanted)) if at <= wanted && !self.stands(lane)? => Ok(None),
            _ => Ok(known),
        }
    }

    fn trusts_memory(&self) -> bool {
        !self.writer.is_doubted || planted(Mutant::WriterNeverDoubts)
    }

    fn is_sure(&self, part: i64) -> bool {
        self.trusts_memory() || self.sure.partitions.contains(&part)
    }

    /// Whether the wake that is remembered of a lane is there. If it is not, it is forgotten.
    fn stands(&mut self, lane: Lane) -> Result<bool, StoreError> {
        let Some(at) = self.writer.armed.get(&lane) else {
            return Ok(false);
        };
        if self.trusts_memory() || self.sure.lanes.contains(&lane) {
            return Ok(true);
        }
        if exists(self.conn, sql::WAKE_AT, &wake_params(lane, at))? {
            self.sure.lane(lane);
            return Ok(true);
        }
        self.writer.armed.remove(&lane);
        Ok(false)
    }
}

/// Whether the batch is lost where the row is missing: under a wrong id it commits nothing.
fn needs_a_row(guard: &Precondition) -> bool {
    matches!(guard, Precondition::Present(_) | Precondition::Equals(..))
}
