use std::collections::BTreeMap;
use std::ops::Bound;

use super::Fault;
use super::wake_index::WakeIndex;
use crate::limits::{DUE_MS_MAX, SCAN_PAGE_ROWS_MAX};
use crate::rows::{PauseKey, TimerKey, class, class_end, lane_head};
use crate::store::{Cursor, Key, Partition, ScanPage, ScanRange, Value};
use crate::timers::TimerKind;

/// The rows of one partition.
pub(super) type Rows = BTreeMap<Key, Value>;

#[derive(Debug, Default)]
struct Held {
    rows: Rows,
    bytes: u64,
}

/// Everything a memory store holds. A partition without rows is not in it.
#[derive(Debug, Default)]
pub(super) struct State {
    partitions: BTreeMap<Partition, Held>,
    bytes: u64,
    pub(super) wakes: WakeIndex,
    pub(super) fault: Option<Fault>,
    #[cfg(dueline_mutants)]
    pub(super) heads_seen: super::heads_seen::HeadsSeen,
}

impl State {
    pub(super) fn partition(&self, partition: &Partition) -> Option<&Rows> {
        self.partitions.get(partition).map(|held| &held.rows)
    }

    pub(super) fn partition_bytes(&self, partition: &Partition) -> u64 {
        self.partitions.get(partition).map_or(0, |held| held.bytes)
    }

    /// Bytes over all partitions.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn get(&self, partition: &Partition, key: &Key) -> Option<&Value> {
        self.partition(partition)?.get(key)
    }

    /// Puts or deletes one row and keeps the books.
    pub(super) fn set(&mut self, partition: &Partition, key: Key, value: Option<Value>) {
        let size = |key: &Key, value: &Value| (key.len() + value.len()) as u64;
        if value.is_none() && !self.partitions.contains_key(partition) {
            return;
        }
        let held = self.partitions.entry(partition.clone()).or_default();
        let (added, removed) = match value {
            Some(value) => {
                let added = size(&key, &value);
                let key_bytes = key.len();
                let old = held.rows.insert(key, value);
                (added, old.map_or(0, |old| (key_bytes + old.len()) as u64))
            }
            None => (0, held.rows.remove(&key).map_or(0, |old| size(&key, &old))),
        };
        held.bytes = held.bytes + added - removed;
        self.bytes = self.bytes + added - removed;
        if held.rows.is_empty() {
            self.partitions.remove(partition);
        }
    }

    /// One page of a range whose limit and cursor have been checked.
    pub(super) fn scan(&self, partition: &Partition, range: &ScanRange) -> ScanPage {
        let mut page = ScanPage::default();
        let Some(rows) = self.partition(partition) else {
            return page;
        };
        if range.start >= range.end {
            return page;
        }
        let limit = range.limit.min(SCAN_PAGE_ROWS_MAX);
        let from = match &range.after {
            Some(cursor) => Bound::Excluded(cursor.position()),
            None => Bound::Included(&range.start),
        };
        for (key, value) in rows.range::<Key, _>((from, Bound::Excluded(&range.end))) {
            if page.rows.len() == limit {
                page.next = page.rows.last().map(|(key, _)| Cursor::behind(key.clone()));
                break;
            }
            page.rows.push((key.clone(), value.clone()));
        }
        page
    }

    /// When the lane wants to be looked at; `None` for a paused or an empty one.
    pub(super) fn lane_wants_ms(
        &self,
        partition: &Partition,
        kind: TimerKind,
        now_ms: u64,
    ) -> Option<u64> {
        if self.is_paused(partition, kind) {
            return None;
        }
        let start = TimerKey::lane_start(kind);
        let end = TimerKey::lane_end(kind);
        let (first, _) = self.partition(partition)?.range(start..end).next()?;
        Some(wake_at_ms(now_ms, lane_head(first)?.due_ms))
    }

    /// The lanes of a partition that hold rows, one seek each.
    pub(super) fn lanes(&self, partition: &Partition) -> Vec<TimerKind> {
        let mut lanes = Vec::new();
        let Some(rows) = self.partition(partition) else {
            return lanes;
        };
        let mut from = TimerKey::lane_start(TimerKind::INVALID);
        let end = class_end(class::TIMER);
        while from < end {
            let first = rows
                .range::<Key, _>(&from..&end)
                .next()
                .and_then(|(key, _)| lane_head(key));
            let Some(head) = first else { break };
            lanes.push(head.kind);
            from = TimerKey::lane_end(head.kind);
        }
        lanes
    }

    /// Up to `limit` partitions with rows or wakes behind the one given, and whether there are more.
    pub(super) fn partitions(
        &self,
        after: Option<&Partition>,
        limit: usize,
    ) -> (Vec<Partition>, bool) {
        let limit = limit.min(SCAN_PAGE_ROWS_MAX);
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let with_rows = self
            .partitions
            .range((from, Bound::Unbounded))
            .map(|(name, _)| name);
        let mut found: Vec<Partition> = with_rows.take(limit.saturating_add(1)).cloned().collect();
        found.extend(self.wakes.partitions(after, limit.saturating_add(1)));
        found.sort_unstable();
        found.dedup();
        let more = found.len() > limit;
        found.truncate(limit);
        (found, more)
    }

    /// No handler has the invalid kind, so nobody can pause it.
    fn is_paused(&self, partition: &Partition, kind: TimerKind) -> bool {
        kind.is_valid() && self.get(partition, &PauseKey { kind }.encode()).is_some()
    }
}

/// When a row of this due wants its lane to be looked at. A due that no scheduling can have, in a
/// damaged key, is looked at with the last of those that can.
pub(super) fn wake_at_ms(now_ms: u64, due_ms: u64) -> u64 {
    due_ms.max(now_ms).min(DUE_MS_MAX)
}
