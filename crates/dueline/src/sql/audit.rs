//! The audit: does every lane that is not paused have its wake?

use super::conn::{SqlConn, SqlParam, exists};
use super::due::partitions_behind;
use super::lanes::{column, first_key, insert_wake, is_paused, now_column, wake_params};
use super::statements as sql;
use super::writer::{MemoryChange, Writer};
use crate::kind::TimerKind;
use crate::rows::{TimerKey, class, class_end, class_start, lane_head};
use crate::store::{AuditPage, Partition, StoreError, WakeRepair};

impl Writer {
    /// Looks at the lanes of up to `limit` partitions behind the one given and sets each wake that
    /// is missing or late, in a host transaction of its own.
    ///
    /// # Errors
    /// `Invalid` for a limit of 0; else as the host maps them, and the host rolls back.
    pub fn audit(
        &mut self,
        conn: &dyn SqlConn,
        after: Option<&Partition>,
        limit: usize,
    ) -> Result<(AuditPage, MemoryChange), StoreError> {
        let (partitions, more) = partitions_behind(conn, after, limit)?;
        let mut page = AuditPage {
            partitions: partitions.len(),
            ..AuditPage::default()
        };
        let mut change = MemoryChange::default();
        for (partition, part) in &partitions {
            for (kind, at) in self.missing_wakes(conn, *part)? {
                insert_wake(conn, (*part, kind), at)?;
                change.armed.insert((*part, kind), Some(at));
                page.repairs.push(WakeRepair {
                    partition: partition.clone(),
                    kind: TimerKind(kind),
                    at_ms: u64::try_from(at).unwrap_or(0),
                });
            }
        }
        if more {
            page.next = partitions.last().map(|(partition, _)| partition.clone());
        }
        Ok((page, change))
    }

    /// The lanes of a partition, one seek each, whose wake is missing or late, with the wake due.
    fn missing_wakes(
        &mut self,
        conn: &dyn SqlConn,
        part: i64,
    ) -> Result<Vec<(u8, i64)>, StoreError> {
        let mut missing = Vec::new();
        let mut start = class_start(class::TIMER);
        let end = class_end(class::TIMER);
        while let Some(key) = first_key(conn, part, &start, &end)? {
            let Some(head) = lane_head(&key) else { break };
            let kind = head.kind.0;
            start = TimerKey::lane_end(head.kind);
            let due = column(head.due_ms);
            let latest = due.max(now_column(conn));
            if is_paused(conn, part, kind)? || self.has_wake(conn, (part, kind), due, latest)? {
                continue;
            }
            missing.push((kind, latest));
        }
        Ok(missing)
    }

    /// Whether a wake at or before `latest` is stored: at the row's due, where it was put; where the
    /// writer last set it; else anywhere among the kind's earlier wakes.
    fn has_wake(
        &mut self,
        conn: &dyn SqlConn,
        lane: (i64, u8),
        due: i64,
        latest: i64,
    ) -> Result<bool, StoreError> {
        let known = self.armed.get(&lane).filter(|known| *known <= latest);
        for at in [Some(due), known].into_iter().flatten() {
            if exists(conn, sql::WAKE_AT, &wake_params(lane, at))? {
                return Ok(true);
            }
        }
        let (part, kind) = lane;
        let params = [
            SqlParam::Int(i64::from(kind)),
            SqlParam::Int(latest),
            SqlParam::Int(part),
        ];
        exists(conn, sql::WAKE_UP_TO, &params)
    }
}
