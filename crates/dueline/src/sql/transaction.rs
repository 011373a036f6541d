use bytes::Bytes;

use super::conn::{SqlConn, SqlParam, exists, first_blob};
use super::lanes::LaneWork;
use super::statements as sql;
use super::sure::Sure;
use super::writer::{Lane, MemoryChange, Writer};
use crate::mutants::{Mutant, planted};
use crate::ordered::OrderedMap;
use crate::rows::{PauseKey, lane_head};
use crate::store::{Group, GroupOutcome, Key, Partition, StoreError, Value, validate_group};

/// The groups of many callers and partitions in one host transaction.
///
/// Guards are checked as they come; what the batches write is staged in one ordered map and written
/// once per key by [`finish`](Self::finish), so a batch that loses has written nothing and needs no
/// savepoint. Dropping a transaction before its commit changes nothing of the writer's memory.
pub struct Transaction<'a> {
    pub(super) conn: &'a dyn SqlConn,
    pub(super) writer: &'a mut Writer,
    /// What will be written; `None` deletes. Reads of guards look here first.
    pub(super) staged: OrderedMap<(i64, Key), Option<Value>>,
    pub(super) lanes: OrderedMap<Lane, LaneWork>,
    pub(super) change: MemoryChange,
    /// Partitions that lost rows and may be empty now.
    pub(super) shrunk: OrderedMap<i64, Bytes>,
    /// The size at the first batch that puts, and the bytes put since.
    pub(super) size_bytes: Option<u64>,
    pub(super) sure: Sure,
    groups: Vec<(GroupOutcome, Vec<Lane>)>,
}

/// What a transaction comes to, if it commits.
#[derive(Debug)]
pub struct Finished {
    /// The outcome of each group, in the order in which they ran.
    pub outcomes: Vec<GroupOutcome>,
    /// What the writer is to remember: hand it to [`Writer::committed`] once the host has committed, and
    /// drop it if it has not.
    pub memory: MemoryChange,
}

impl std::fmt::Debug for Transaction<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Transaction")
            .field("groups", &self.groups.len())
            .finish_non_exhaustive()
    }
}

impl<'a> Transaction<'a> {
    /// A transaction on a connection on which the host has begun one for writing.
    pub fn new(conn: &'a dyn SqlConn, writer: &'a mut Writer) -> Self {
        Self {
            conn,
            writer,
            staged: OrderedMap::new(),
            lanes: OrderedMap::new(),
            change: MemoryChange::default(),
            shrunk: OrderedMap::new(),
            size_bytes: None,
            sure: Sure::default(),
            groups: Vec::new(),
        }
    }

    /// Runs a group behind those before it, whose effects it sees. Its outcome comes with
    /// [`finish`](Self::finish).
    ///
    /// # Errors
    /// What the host's connection returned: the host rolls back, and runs the groups one by one to
    /// find the one at fault. A refused batch is no error here but stops its group.
    pub fn run(&mut self, partition: &Partition, group: &Group) -> Result<(), StoreError> {
        self.run_with(partition, group, &mut |_| Ok(()))
    }

    /// As [`run`](Self::run), with something of the host's that belongs to each batch: it is called with the
    /// batch's index in the group once the batch's guards hold, before the next batch is looked at.
    ///
    /// # Errors
    /// As [`run`](Self::run), and what the host's part returned; the host rolls back.
    pub fn run_with(
        &mut self,
        partition: &Partition,
        group: &Group,
        host: &mut dyn FnMut(usize) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let name = partition.to_bytes();
        let mut id = self.id_of(&name)?;
        let (sound, mut refusal) = validate_group(group);
        let mut outcome = GroupOutcome::default();
        for (index, batch) in group.batches.iter().take(sound).enumerate() {
            match self.run_batch(&name, &mut id, batch)? {
                Ok(done) => {
                    let committed = done.is_committed();
                    if committed {
                        host(index)?;
                    }
                    outcome.outcomes.push(done);
                    if !committed && !planted(Mutant::GroupGoesOnAfterLoss) {
                        refusal = None;
                        break;
                    }
                }
                Err(error) => {
                    refusal = Some(error);
                    break;
                }
            }
        }
        outcome.stopped_by = refusal;
        let mut settled = Vec::new();
        if outcome.stopped_by.is_none() {
            for settle in &group.settles {
                // A partition without an id has neither rows nor wakes: no lane to set, no answer.
                let lane = (id.unwrap_or(0), settle.kind.0);
                if id.is_some() {
                    self.lanes
                        .entry(lane)
                        .or_default()
                        .settle(&settle.served_ms);
                }
                settled.push(lane);
            }
        }
        if let Some(id) = id
            && !settled.is_empty()
        {
            self.shrunk.insert(id, name);
        }
        self.groups.push((outcome, settled));
        Ok(())
    }

    /// Writes what was staged, sets the wakes, and drops partitions that are now empty.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub fn finish(mut self) -> Result<Finished, StoreError> {
        for ((part, key), value) in std::mem::take(&mut self.staged) {
            match value {
                Some(value) => self.write(&sql::PUT, part, &key, &value)?,
                None => {
                    let row = [SqlParam::Int(part), SqlParam::Blob(&key)];
                    self.conn.execute(sql::ROW_DELETE, &row)?
                }
            };
        }
        self.show_the_rest()?;
        let answers = self.set_wakes()?;
        self.drop_empty_partitions()?;
        let outcomes = self
            .groups
            .into_iter()
            .map(|(mut outcome, settled)| {
                outcome.next_wakes_ms = settled
                    .iter()
                    .map(|lane| answers.get(lane).copied().flatten())
                    .collect();
                outcome
            })
            .collect();
        Ok(Finished {
            outcomes,
            memory: self.change,
        })
    }

    /// The value of a row as the transaction sees it.
    pub(super) fn read(&self, part: Option<i64>, key: &Key) -> Result<Option<Value>, StoreError> {
        let Some(part) = part else { return Ok(None) };
        if let Some(value) = self.staged_value(part, key) {
            return Ok(value.clone());
        }
        first_blob(
            self.conn,
            sql::ROW_GET,
            &[SqlParam::Int(part), SqlParam::Blob(key)],
        )
    }

    /// Whether a row is there as the transaction sees it.
    pub(super) fn present(&self, part: Option<i64>, key: &Key) -> Result<bool, StoreError> {
        let Some(part) = part else { return Ok(false) };
        if let Some(value) = self.staged_value(part, key) {
            return Ok(value.is_some());
        }
        exists(
            self.conn,
            sql::ROW_PRESENT,
            &[SqlParam::Int(part), SqlParam::Blob(key)],
        )
    }

    pub(super) fn staged_value(&self, part: i64, key: &Key) -> Option<&Option<Value>> {
        if self.staged.is_empty() {
            return None;
        }
        self.staged.get(&(part, key.clone()))
    }

    /// Notes what a write that stands means for wakes and for the partition's life.
    pub(super) fn note(&mut self, name: &Bytes, part: i64, key: &Key, value: Option<&Value>) {
        if let Some(value) = value {
            if let Some(head) = lane_head(key) {
                self.lanes
                    .entry((part, head.kind.0))
                    .or_default()
                    .arm(head.due_ms);
            }
            if let Some(size) = &mut self.size_bytes {
                *size = size.saturating_add((key.len() + value.len()) as u64);
            }
            return;
        }
        if let Ok(pause) = PauseKey::decode(key)
            && !planted(Mutant::ResumeSetsNoWake)
        {
            self.lanes
                .entry((part, pause.kind.0))
                .or_default()
                .settle(&[]);
        }
        self.shrunk.entry(part).or_insert_with(|| name.clone());
    }

    /// The id of a partition as the transaction sees it.
    fn id_of(&mut self, name: &Bytes) -> Result<Option<i64>, StoreError> {
        if let Some(id) = self.change.ids.get(name) {
            return Ok(*id);
        }
        let is_guess = self.writer.is_doubted && self.writer.ids.get(name).is_some();
        let id = self.writer.id_of(self.conn, name)?;
        if let (Some(id), false) = (id, is_guess) {
            self.sure.partition(id);
        }
        Ok(id)
    }

    /// Gives a partition its row.
    pub(super) fn create_partition(&mut self, name: &Bytes) -> Result<i64, StoreError> {
        let id = self.writer.take_id();
        self.conn
            .execute(sql::PART_INSERT, &[SqlParam::Int(id), SqlParam::Blob(name)])?;
        self.change.ids.insert(name.clone(), Some(id));
        self.sure.partition(id);
        Ok(id)
    }

    /// Removes the rows of partitions that hold neither rows nor, as far as is known, wakes.
    fn drop_empty_partitions(&mut self) -> Result<(), StoreError> {
        for (id, name) in std::mem::take(&mut self.shrunk) {
            if self.has_known_wake(id) || exists(self.conn, sql::ROW_ANY, &[SqlParam::Int(id)])? {
                continue;
            }
            self.conn.execute(sql::PART_DELETE, &[SqlParam::Int(id)])?;
            self.change.ids.insert(name, None);
        }
        Ok(())
    }
}
