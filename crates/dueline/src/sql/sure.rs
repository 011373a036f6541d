//! What a transaction of a doubted writer makes sure of before it uses what is remembered: that the partition
//! still has its id, and that the wake of a lane still lies where it was set. One statement says the first, and
//! mostly the second with it; a guard that finds its row says it for nothing.

use bytes::Bytes;

use super::conn::{SqlParam, exists, first_int};
use super::lanes::wake_params;
use super::statements as sql;
use super::transaction::Transaction;
use super::writer::Lane;
use crate::mutants::{Mutant, planted};
use crate::rows::lane_head;
use crate::store::{Batch, Precondition, StoreError, Write};

/// The partitions and lanes that were looked at, or written, by the transaction itself.
#[derive(Debug, Default)]
pub(super) struct Sure {
    partitions: Vec<i64>,
    lanes: Vec<Lane>,
}

impl Sure {
    pub(super) fn partition(&mut self, id: i64) {
        if !self.partitions.contains(&id) {
            self.partitions.push(id);
        }
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
        if self.is_sure(id) || batch.preconditions.iter().any(needs_a_row) {
            return Ok(part);
        }
        for write in &batch.writes {
            let Write::Put(key, _) = write else { continue };
            if let Some(head) = lane_head(key)
                && self.stands((id, head.kind.0))?
            {
                self.sure.partition(id);
                return Ok(part);
            }
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

    fn is_sure(&self, part: i64) -> bool {
        let is_trusted = !self.writer.is_doubted || planted(Mutant::WriterNeverDoubts);
        is_trusted || self.sure.partitions.contains(&part)
    }

    /// Whether the wake that is remembered of a lane is there. If it is not, it is forgotten.
    fn stands(&mut self, lane: Lane) -> Result<bool, StoreError> {
        let Some(at) = self.writer.armed.get(&lane) else {
            return Ok(false);
        };
        let is_trusted = !self.writer.is_doubted || planted(Mutant::WriterNeverDoubts);
        if is_trusted || self.sure.lanes.contains(&lane) {
            return Ok(true);
        }
        if exists(self.conn, sql::WAKE_AT, &wake_params(lane, at))? {
            self.sure.lanes.push(lane);
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
