//! The audit: does every lane that is not paused have its wake?
//!
//! Most lanes have it where one probe finds it: at their first row's due, where the row was put, or
//! where the writer last set it. What is left, lanes that were overdue when their wake was set
//! before a restart, is looked for in one walk per kind over its wakes, from the latest back, and
//! not in one walk per lane: with many overdue lanes that would hold up the writer.

use std::ops::ControlFlow;

use super::conn::{SqlConn, SqlParam, exists};
use super::due::partitions_behind;
use super::lanes::{column, first_key, insert_wake, is_paused, now_column, wake_params};
use super::statements as sql;
use super::writer::{Lane, MemoryChange, Writer};
use crate::kind::TimerKind;
use crate::ordered::OrderedMap;
use crate::rows::{TimerKey, class, class_end, class_start, lane_head};
use crate::store::{AuditPage, Partition, StoreError, WakeRepair};

/// By kind and partition, the latest time at which a lane's wake may lie.
type Unproven = OrderedMap<u8, OrderedMap<i64, i64>>;

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
        let mut unproven = Unproven::new();
        for (_, part) in &partitions {
            self.probe_lanes(conn, *part, &mut unproven)?;
        }
        for (kind, lanes) in &mut unproven {
            prove(conn, *kind, lanes)?;
        }
        let mut page = AuditPage {
            partitions: partitions.len(),
            ..AuditPage::default()
        };
        let mut change = MemoryChange::default();
        for (partition, part) in &partitions {
            for (kind, lanes) in &unproven {
                let Some(at) = lanes.get(part) else { continue };
                insert_wake(conn, (*part, *kind), *at)?;
                change.armed.insert((*part, *kind), Some(*at));
                page.repairs.push(WakeRepair {
                    partition: partition.clone(),
                    kind: TimerKind(*kind),
                    at_ms: u64::try_from(*at).unwrap_or(0),
                });
            }
        }
        if more {
            page.next = partitions.last().map(|(partition, _)| partition.clone());
        }
        Ok((page, change))
    }

    /// Probes the lanes of a partition, found by one seek each, and notes those without a hit.
    fn probe_lanes(
        &mut self,
        conn: &dyn SqlConn,
        part: i64,
        unproven: &mut Unproven,
    ) -> Result<(), StoreError> {
        let mut start = class_start(class::TIMER);
        let end = class_end(class::TIMER);
        while let Some(key) = first_key(conn, part, &start, &end)? {
            let Some(head) = lane_head(&key) else { break };
            let kind = head.kind.0;
            start = TimerKey::lane_end(head.kind);
            let due = column(head.due_ms);
            let latest = due.max(now_column(conn));
            if !is_paused(conn, part, kind)? && !self.probe(conn, (part, kind), due, latest)? {
                unproven.entry(kind).or_default().insert(part, latest);
            }
        }
        Ok(())
    }

    /// Whether a wake lies at the row's due, or where the writer last set it, if early enough.
    fn probe(
        &mut self,
        conn: &dyn SqlConn,
        lane: Lane,
        due: i64,
        latest: i64,
    ) -> Result<bool, StoreError> {
        let known = self.armed.get(&lane).filter(|known| *known <= latest);
        for at in [Some(due), known].into_iter().flatten() {
            if exists(conn, sql::WAKE_AT, &wake_params(lane, at))? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// Takes out the lanes of a kind that have a wake early enough.
fn prove(conn: &dyn SqlConn, kind: u8, lanes: &mut OrderedMap<i64, i64>) -> Result<(), StoreError> {
    let Some(latest) = lanes.values().copied().max() else {
        return Ok(());
    };
    let params = [SqlParam::Int(i64::from(kind)), SqlParam::Int(latest)];
    conn.query(sql::WAKES_UP_TO, &params, &mut |row| {
        let (at, part) = (row.int(0)?, row.int(1)?);
        if lanes.get(&part).is_some_and(|latest| at <= *latest) {
            lanes.remove(&part);
        }
        Ok(if lanes.is_empty() {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        })
    })
}
