use super::conn::{SqlConn, SqlParam, first_int};
use super::recent::Recent;
use super::{SizeLimit, statements as sql};
use crate::ordered::OrderedMap;
use crate::store::StoreError;

/// A lane: the partition's id and the kind.
pub(super) type Lane = (i64, u8);

const IDS_KNOWN: usize = 32_768;
const LANES_KNOWN: usize = 65_536;

/// What the one writer of a database remembers between transactions: the ids of partitions, and
/// for lanes used lately the wake that is known to be stored. Bounded; it is only ever changed by
/// what has committed, and forgetting any of it costs a read or a spurious wake, never a loss.
#[derive(Debug)]
pub struct Writer {
    pub(super) ids: Recent<bytes::Bytes, i64>,
    pub(super) armed: Recent<Lane, i64>,
    pub(super) size_limit: Option<SizeLimit>,
    next_id: i64,
}

impl Writer {
    /// A writer that knows nothing yet, for a database of the current schema.
    ///
    /// # Errors
    /// As the host maps them.
    pub fn new(conn: &dyn SqlConn, size_limit: Option<SizeLimit>) -> Result<Self, StoreError> {
        let last = first_int(conn, sql::PART_LAST_ID, &[])?.unwrap_or(0);
        Ok(Self {
            ids: Recent::new(IDS_KNOWN),
            armed: Recent::new(LANES_KNOWN),
            size_limit,
            next_id: last + 1,
        })
    }

    /// Takes over what a committed transaction changed.
    pub fn committed(&mut self, change: MemoryChange) {
        for (name, id) in change.ids {
            match id {
                Some(id) => self.ids.insert(name, id),
                None => self.ids.remove(&name),
            }
        }
        for (lane, at) in change.armed {
            match at {
                Some(at) => self.armed.insert(lane, at),
                None => self.armed.remove(&lane),
            }
        }
    }

    /// Forgets everything, after a commit whose outcome is in doubt.
    pub fn forget(&mut self) {
        self.ids.clear();
        self.armed.clear();
    }

    /// An id that no partition has had while this writer lives.
    pub(super) fn take_id(&mut self) -> i64 {
        let id = self.next_id;
        self.next_id += 1;
        id
    }

    /// The id of a partition as committed, from memory or the database.
    pub(super) fn id_of(
        &mut self,
        conn: &dyn SqlConn,
        name: &bytes::Bytes,
    ) -> Result<Option<i64>, StoreError> {
        if let Some(id) = self.ids.get(name) {
            return Ok(Some(id));
        }
        let id = first_int(conn, sql::PART_ID, &[SqlParam::Blob(name)])?;
        if let Some(id) = id {
            self.ids.insert(name.clone(), id);
        }
        Ok(id)
    }
}

/// What a transaction changed of the writer's memory; taken over once it has committed.
#[derive(Debug, Default)]
#[must_use]
pub struct MemoryChange {
    pub(super) ids: OrderedMap<bytes::Bytes, Option<i64>>,
    pub(super) armed: OrderedMap<Lane, Option<i64>>,
}

impl MemoryChange {
    /// Whether a partition came or went, so that ids read before are to be read again.
    pub fn changes_partitions(&self) -> bool {
        !self.ids.is_empty()
    }
}
