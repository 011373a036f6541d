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
    /// Whether what is remembered is looked at again before it is used.
    pub(super) is_doubted: bool,
    /// Whether that was wrong in the last transaction, which has failed for it.
    pub(super) was_wrong: bool,
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
            is_doubted: false,
            was_wrong: false,
            next_id: last + 1,
        })
    }

    /// For a host whose commits others may take back, as an application does whose own transaction goes
    /// around them, or whose database has a second writer: what is remembered is only a guess, and a
    /// transaction that uses it makes sure of it. If it is wrong the transaction fails, the host rolls it back,
    /// and [`was_wrong`](Self::was_wrong) tells it to run the same again.
    #[must_use]
    pub fn doubted(mut self) -> Self {
        self.is_doubted = true;
        self
    }

    /// Whether the last transaction failed because something was remembered that is not stored. All is
    /// forgotten now, so that the same transaction goes by what is read. True once.
    pub fn was_wrong(&mut self) -> bool {
        std::mem::take(&mut self.was_wrong)
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
    /// Whether a wake was set, moved or taken away.
    pub fn changes_wakes(&self) -> bool {
        !self.armed.is_empty()
    }
}
