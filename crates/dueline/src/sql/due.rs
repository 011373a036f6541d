//! What a driver asks: which lanes want to be looked at, and which partitions there are.

use std::ops::ControlFlow;

use bytes::Bytes;

use super::conn::{SqlConn, SqlParam, first_int, owned};
use super::lanes::{column, wake_params};
use super::{Reads, statements as sql};
use crate::kind::{KindSet, TimerKind};
use crate::ordered::sort_by;
use crate::store::{Partition, PartitionPage, StoreError, Wake, WakeCursor, WakePage};

/// Most wakes of one page, whatever limit was asked for.
const WAKES_PAGE_MAX: usize = 65_536;
/// Most partitions of one page, whatever limit was asked for.
const PARTITIONS_PAGE_MAX: usize = 65_536;
/// Sorts before every name, sound or damaged: numbers and text come before bytes.
const BEFORE_ALL_NAMES: SqlParam<'static> = SqlParam::Int(-(1 << 53));
/// Most wakes without a partition that one page hands out.
const ORPHANS_MAX: usize = 1_024;

/// A stored wake whose partition is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrphanWake {
    lane: (i64, u8),
    at: i64,
}

/// The first wake of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WakeHead {
    /// The kind of its lane.
    pub kind: TimerKind,
    /// When it comes, in milliseconds since 1970.
    pub at_ms: u64,
    /// Whether its partition is gone: [`Reads::due_wakes`] passes it by.
    pub is_orphan: bool,
}

/// A page of wakes, and wakes without a partition that it skipped.
#[derive(Clone, Debug, Default)]
pub struct DueWakes {
    /// The wakes of partitions that exist, as the contract wants them.
    pub page: WakePage,
    /// For [`purge_orphans`] in the writer's next transaction.
    pub orphans: Vec<OrphanWake>,
}

/// Removes wakes that [`Reads::due_wakes`] found without a partition, if they still are.
///
/// # Errors
/// As the host maps them.
pub fn purge_orphans(conn: &dyn SqlConn, orphans: &[OrphanWake]) -> Result<(), StoreError> {
    for orphan in orphans {
        conn.execute(sql::WAKE_PURGE, &wake_params(orphan.lane, orphan.at))?;
    }
    Ok(())
}

/// A wake as it lies in the tree.
struct Found {
    at: i64,
    kind: u8,
    part: i64,
    name: Bytes,
}

impl Found {
    /// Where it lies in the order of a page.
    fn place(&self) -> (i64, u8, i64) {
        (self.at, self.kind, self.part)
    }
}

/// Where the reading of one kind starts: behind this time and partition.
#[derive(Clone, Copy)]
struct Start {
    at: i64,
    part: i64,
}

impl Reads<'_> {
    /// As [`WakeStore::due_wakes`](crate::store::WakeStore::due_wakes). Wakes of one time are
    /// ordered by kind, then by the partition's id.
    ///
    /// # Errors
    /// `Invalid` for a limit of 0; else as the host maps them.
    pub fn due_wakes(
        &self,
        kinds: &KindSet,
        until_ms: u64,
        after: Option<&WakeCursor>,
        limit: usize,
    ) -> Result<DueWakes, StoreError> {
        if limit == 0 {
            return Err(StoreError::invalid("due_wakes needs a limit of at least 1"));
        }
        let limit = limit.min(WAKES_PAGE_MAX);
        let cursor = after.map(WakeCursor::position);
        let cursor_part = match cursor {
            Some(wake) => first_int(
                self.conn,
                sql::PART_ID,
                &[SqlParam::Blob(wake.partition.as_bytes())],
            )?,
            None => None,
        };
        let mut found = Vec::new();
        let mut orphans = Vec::new();
        let mut until = column(until_ms);
        let mut next_kind = 0;
        while next_kind < kinds.end()
            && let Some(head) = self.wake_head(next_kind)?
        {
            let kind = head.kind.0;
            next_kind = u16::from(kind) + 1;
            if !kinds.contains(head.kind) || column(head.at_ms) > until {
                continue;
            }
            let start = start_of(kind, cursor, cursor_part);
            self.wakes_of(kind, start, until, limit + 1, &mut found, &mut orphans)?;
            sort_by(&mut found, |one, other| one.place().cmp(&other.place()));
            if found.len() > limit {
                // The page is full: of the kinds to come only what is earlier than its end counts.
                found.truncate(limit + 1);
                until = found.last().map_or(until, |last| last.at);
            }
        }
        let more = found.len() > limit;
        found.truncate(limit);
        let wakes = found
            .into_iter()
            .map(wake_of)
            .collect::<Result<Vec<_>, _>>()?;
        let next = if more {
            wakes.last().cloned().map(WakeCursor::behind)
        } else {
            None
        };
        Ok(DueWakes {
            page: WakePage { wakes, next },
            orphans,
        })
    }

    /// The first wake of the first kind at or behind this one that has one.
    ///
    /// # Errors
    /// As the host maps them; `Corrupt` for a wake that nobody can have set.
    pub fn wake_head(&self, from_kind: u16) -> Result<Option<WakeHead>, StoreError> {
        let mut found = None;
        let params = [SqlParam::Int(i64::from(from_kind))];
        self.conn.query(sql::WAKE_HEAD, &params, &mut |row| {
            let (Ok(kind), Ok(at_ms)) = (row.int(0)?.try_into(), row.int(1)?.try_into()) else {
                return Err(StoreError::corrupt(
                    "a stored wake has a kind above 255 or lies before 1970",
                ));
            };
            found = Some(WakeHead {
                kind: TimerKind(kind),
                at_ms,
                is_orphan: row.int(2)? != 0,
            });
            Ok(ControlFlow::Break(()))
        })?;
        Ok(found)
    }

    fn wakes_of(
        &self,
        kind: u8,
        start: Start,
        until: i64,
        wanted: usize,
        found: &mut Vec<Found>,
        orphans: &mut Vec<OrphanWake>,
    ) -> Result<(), StoreError> {
        let mut start = start;
        let mut left = wanted;
        while left > 0 {
            let asked = left;
            let mut rows = 0;
            let params = [
                SqlParam::Int(i64::from(kind)),
                SqlParam::Int(start.at),
                SqlParam::Int(start.part),
                SqlParam::Int(until),
                SqlParam::Int(i64::try_from(asked).unwrap_or(i64::MAX)),
            ];
            self.conn.query(sql::WAKES_DUE, &params, &mut |row| {
                let (at, part) = (row.int(0)?, row.int(1)?);
                rows += 1;
                start = Start { at, part };
                let is_orphan = row.int(2)? != 0;
                if !is_orphan {
                    left -= 1;
                    found.push(Found {
                        at,
                        kind,
                        part,
                        name: owned(row.blob(3)?),
                    });
                } else if orphans.len() < ORPHANS_MAX {
                    orphans.push(OrphanWake {
                        lane: (part, kind),
                        at,
                    });
                }
                Ok(ControlFlow::Continue(()))
            })?;
            if rows < asked {
                break;
            }
        }
        Ok(())
    }

    /// As [`WakeStore::partitions`](crate::store::WakeStore::partitions), in the order of names.
    ///
    /// # Errors
    /// `Invalid` for a limit of 0; else as the host maps them.
    pub fn partitions(
        &self,
        after: Option<&Partition>,
        limit: usize,
    ) -> Result<PartitionPage, StoreError> {
        let (found, more) = partitions_behind(self.conn, after, limit)?;
        let partitions: Vec<_> = found.into_iter().map(|(partition, _)| partition).collect();
        let next = if more {
            partitions.last().cloned()
        } else {
            None
        };
        Ok(PartitionPage { partitions, next })
    }
}

/// Where a kind goes on behind a cursor: at the cursor's time kinds before its own are through,
/// its own is through up to its partition, and kinds behind it have all theirs to come.
fn start_of(kind: u8, cursor: Option<&Wake>, cursor_part: Option<i64>) -> Start {
    let Some(wake) = cursor else {
        return Start { at: -1, part: -1 };
    };
    let at = column(wake.at_ms);
    let part = match kind.cmp(&wake.kind.0) {
        std::cmp::Ordering::Less => i64::MAX >> 10,
        std::cmp::Ordering::Equal => cursor_part.unwrap_or(-1),
        std::cmp::Ordering::Greater => -1,
    };
    Start { at, part }
}

fn wake_of(found: Found) -> Result<Wake, StoreError> {
    Ok(Wake {
        at_ms: u64::try_from(found.at)
            .map_err(|_| StoreError::corrupt("a stored wake lies before 1970"))?,
        partition: stored_partition(found.name)?,
        kind: TimerKind(found.kind),
    })
}

fn stored_partition(name: Bytes) -> Result<Partition, StoreError> {
    Partition::new(name).map_err(|_| StoreError::corrupt("a stored partition has no valid name"))
}

/// Up to `limit` partitions behind the one given, with their ids, and whether there are more.
pub(super) fn partitions_behind(
    conn: &dyn SqlConn,
    after: Option<&Partition>,
    limit: usize,
) -> Result<(Vec<(Partition, i64)>, bool), StoreError> {
    if limit == 0 {
        return Err(StoreError::invalid(
            "a page of partitions needs a limit of at least 1",
        ));
    }
    let limit = limit.min(PARTITIONS_PAGE_MAX);
    let after = after.map_or(BEFORE_ALL_NAMES, |last| SqlParam::Blob(last.as_bytes()));
    let look_ahead = i64::try_from(limit + 1).unwrap_or(i64::MAX);
    let mut found = Vec::new();
    conn.query(
        sql::PARTS_BEHIND,
        &[after, SqlParam::Int(look_ahead)],
        &mut |row| {
            found.push((stored_partition(owned(row.blob(0)?))?, row.int(1)?));
            Ok(ControlFlow::Continue(()))
        },
    )?;
    let more = found.len() > limit;
    found.truncate(limit);
    Ok((found, more))
}
