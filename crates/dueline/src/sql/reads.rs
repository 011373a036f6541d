use std::cell::RefCell;
use std::ops::ControlFlow;

use super::conn::{SqlConn, SqlParam, first_blob, first_int, owned};
use super::statements as sql;
use crate::limits::SCAN_PAGE_ROWS_MAX;
use crate::store::{
    Cursor, Key, Partition, PartitionStats, ScanPage, ScanRange, StoreError, Value, validate_key,
    validate_ranges,
};

/// Bytes of keys and values after which a page of a scan ends, whatever limit was asked for.
const SCAN_PAGE_BYTES_MAX: usize = 8 * 1_024 * 1_024;

/// The partition read last and its id, valid within one snapshot: a tick reads one partition many
/// times. Clear it whenever the snapshot ends.
#[derive(Debug, Default)]
pub struct PartitionMemo(RefCell<Option<(Partition, Option<i64>)>>);

impl PartitionMemo {
    /// Forgets what the ended snapshot showed.
    pub fn clear(&self) {
        self.0.replace(None);
    }
}

/// The reads of one snapshot.
#[derive(Clone, Copy)]
pub struct Reads<'a> {
    pub(super) conn: &'a dyn SqlConn,
    /// Without one each statement finds the partition by its name.
    memo: Option<&'a PartitionMemo>,
}

impl std::fmt::Debug for Reads<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reads")
            .field("memo", &self.memo)
            .finish_non_exhaustive()
    }
}

impl<'a> Reads<'a> {
    /// Reads on a connection that is in a read transaction, whose memo goes with that transaction.
    pub fn new(conn: &'a dyn SqlConn, memo: &'a PartitionMemo) -> Self {
        let memo = Some(memo);
        Self { conn, memo }
    }

    /// Reads of which nothing is remembered, one statement each: for a host whose tables others may change
    /// or take back between two of them.
    pub fn by_name(conn: &'a dyn SqlConn) -> Self {
        Self { conn, memo: None }
    }

    /// As [`ReadStore::get`](crate::store::ReadStore::get).
    ///
    /// # Errors
    /// `Invalid` for an oversized key; else as the host maps them.
    pub fn get(&self, partition: &Partition, key: &Key) -> Result<Option<Value>, StoreError> {
        validate_key(key)?;
        match self.rows_of(partition, &sql::GET_OF)? {
            Some((statement, part)) => {
                first_blob(self.conn, statement, &[part, SqlParam::Blob(key)])
            }
            None => Ok(None),
        }
    }

    /// As [`ReadStore::get_many`](crate::store::ReadStore::get_many).
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn get_many(
        &self,
        partition: &Partition,
        keys: &[Key],
    ) -> Result<Vec<Option<Value>>, StoreError> {
        let memo = PartitionMemo::default();
        let reads = self.of_one_call(keys.len(), &memo);
        keys.iter().map(|key| reads.get(partition, key)).collect()
    }

    /// As [`ReadStore::scan`](crate::store::ReadStore::scan).
    ///
    /// # Errors
    /// `Invalid` for a limit of 0 or a cursor outside the range; else as the host maps them.
    pub fn scan(&self, partition: &Partition, range: &ScanRange) -> Result<ScanPage, StoreError> {
        validate_ranges(std::slice::from_ref(range))?;
        self.scan_valid(partition, range)
    }

    /// As [`ReadStore::scan_many`](crate::store::ReadStore::scan_many).
    ///
    /// # Errors
    /// `Invalid` for more than 256 ranges; else as [`scan`](Self::scan).
    pub fn scan_many(
        &self,
        partition: &Partition,
        ranges: &[ScanRange],
    ) -> Result<Vec<ScanPage>, StoreError> {
        validate_ranges(ranges)?;
        let mut pages: Vec<ScanPage> = Vec::with_capacity(ranges.len());
        let mut rows_left = SCAN_PAGE_ROWS_MAX;
        let memo = PartitionMemo::default();
        let reads = self.of_one_call(ranges.len(), &memo);
        for range in ranges {
            if rows_left == 0 {
                break;
            }
            let page = reads.scan_valid(partition, range)?;
            rows_left = rows_left.saturating_sub(page.rows.len());
            pages.push(page);
        }
        Ok(pages)
    }

    fn scan_valid(&self, partition: &Partition, range: &ScanRange) -> Result<ScanPage, StoreError> {
        let mut page = ScanPage::default();
        if range.start >= range.end {
            return Ok(page);
        }
        let limit = range.limit.min(SCAN_PAGE_ROWS_MAX);
        let (rows, from) = match &range.after {
            Some(cursor) => (&sql::BEHIND_OF, cursor.position()),
            None => (&sql::FROM_OF, &range.start),
        };
        let Some((statement, part)) = self.rows_of(partition, rows)? else {
            return Ok(page);
        };
        let params = [
            part,
            SqlParam::Blob(from),
            SqlParam::Blob(&range.end),
            // One more than wanted, so that an exact fit carries no cursor.
            SqlParam::Int(i64::try_from(limit + 1).unwrap_or(i64::MAX)),
        ];
        let mut more = false;
        let mut bytes = 0;
        self.conn.query(statement, &params, &mut |row| {
            if page.rows.len() == limit || bytes >= SCAN_PAGE_BYTES_MAX {
                more = true;
                return Ok(ControlFlow::Break(()));
            }
            let (key, value) = (owned(row.blob(0)?), owned(row.blob(1)?));
            bytes += key.len() + value.len();
            page.rows.push((key, value));
            Ok(ControlFlow::Continue(()))
        })?;
        if more {
            page.next = page.rows.last().map(|(key, _)| Cursor::behind(key.clone()));
        }
        Ok(page)
    }

    /// As [`NamespaceStore::stats`](crate::store::NamespaceStore::stats); counts the rows.
    ///
    /// # Errors
    /// As the host maps them.
    pub fn stats(&self, partition: &Partition) -> Result<PartitionStats, StoreError> {
        let mut stats = PartitionStats::default();
        let Some(part) = self.part(partition)? else {
            return Ok(stats);
        };
        self.conn
            .query(sql::ROWS_STATS, &[SqlParam::Int(part)], &mut |row| {
                stats.rows = u64::try_from(row.int(0)?).unwrap_or(0);
                stats.bytes = u64::try_from(row.int(1)?).unwrap_or(0);
                Ok(ControlFlow::Break(()))
            })?;
        Ok(stats)
    }

    /// Whether the tables answer.
    ///
    /// # Errors
    /// As the host maps them.
    pub fn probe(&self) -> Result<(), StoreError> {
        first_int(self.conn, sql::META_SCHEMA, &[])?;
        Ok(())
    }

    /// Within one call nothing changes, so several statements of it ask for the partition's id once; for two
    /// that is not worth a statement.
    fn of_one_call<'b>(&self, statements: usize, memo: &'b PartitionMemo) -> Reads<'b>
    where
        'a: 'b,
    {
        Reads {
            conn: self.conn,
            memo: self.memo.or((statements > 2).then_some(memo)),
        }
    }

    /// The statement for these rows of a partition, and what it is to be given; none if there is no such
    /// partition.
    fn rows_of<'p>(
        &self,
        partition: &'p Partition,
        rows: &sql::RowsOf,
    ) -> Result<Option<(&'static str, SqlParam<'p>)>, StoreError> {
        if self.memo.is_none() {
            return Ok(Some((rows.by_name, SqlParam::Blob(partition.as_bytes()))));
        }
        let part = self.part(partition)?;
        Ok(part.map(|id| (rows.by_id, SqlParam::Int(id))))
    }

    /// The id of a partition, remembered for the snapshot if anything is.
    fn part(&self, partition: &Partition) -> Result<Option<i64>, StoreError> {
        if let Some(PartitionMemo(memo)) = self.memo
            && let Some((last, id)) = &*memo.borrow()
            && last == partition
        {
            return Ok(*id);
        }
        let id = first_int(
            self.conn,
            sql::PART_ID,
            &[SqlParam::Blob(partition.as_bytes())],
        )?;
        if let Some(PartitionMemo(memo)) = self.memo {
            memo.replace(Some((partition.clone(), id)));
        }
        Ok(id)
    }
}
