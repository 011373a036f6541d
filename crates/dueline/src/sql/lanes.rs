//! Wakes: at least one for each lane that is not paused, never later than
//! `max(now, the first row's due)`.
//!
//! They are set when everything else of the transaction is written, so a lane that was put into and
//! settled in one transaction is looked at once, as it stands. For lanes used lately the writer
//! knows one wake that is stored, so that most puts need no statement.

use bytes::Bytes;

use super::conn::{SqlConn, SqlParam, exists, first_blob};
use super::statements as sql;
use super::transaction::Transaction;
use super::writer::Lane;
use crate::kind::TimerKind;
use crate::limits::DUE_MS_MAX;
use crate::mutants::{Mutant, planted};
use crate::ordered::OrderedMap;
use crate::rows::{PauseKey, TimerKey, class, class_start, lane_head};
use crate::store::{Key, StoreError};

/// What a transaction does to a lane.
#[derive(Debug, Default)]
pub(super) struct LaneWork {
    /// The earliest due that was put.
    put_due: Option<i64>,
    /// Whether the lane's first row is to be read, because it was settled or its pause ended.
    settle: bool,
    served: Vec<i64>,
}

impl LaneWork {
    pub(super) fn arm(&mut self, due_ms: u64) {
        let due = column(due_ms);
        self.put_due = Some(self.put_due.map_or(due, |earlier| earlier.min(due)));
    }

    pub(super) fn settle(&mut self, served_ms: &[u64]) {
        self.settle = true;
        // No wake is stored beyond the last time, and no host is given an integer it may round.
        let stored = served_ms.iter().filter(|at| **at <= DUE_MS_MAX);
        self.served.extend(stored.map(|at| column(*at)));
    }
}

/// A time as the wake tree holds it: at most the end of the year 9999, so that no host loses a bit.
pub(super) fn column(ms: u64) -> i64 {
    i64::try_from(ms.min(DUE_MS_MAX)).unwrap_or(i64::MAX)
}

/// The clock as a wake: 0 before 1970.
pub(super) fn now_column(conn: &dyn SqlConn) -> i64 {
    column(u64::try_from(conn.now_ms()).unwrap_or(0))
}

/// Whether the kind is paused in the partition. No handler has the invalid kind, so nobody can pause
/// it.
pub(super) fn is_paused(conn: &dyn SqlConn, part: i64, kind: u8) -> Result<bool, StoreError> {
    let kind = TimerKind(kind);
    if !kind.is_valid() {
        return Ok(false);
    }
    let key = PauseKey { kind }.encode();
    exists(
        conn,
        sql::ROW_PRESENT,
        &[SqlParam::Int(part), SqlParam::Blob(&key)],
    )
}

/// The keys of a lane. Keys too short to name a kind lie in front of the lane of kind 0 and belong
/// to it.
fn lane_range(kind: u8) -> (Key, Key) {
    let start = match kind {
        0 => class_start(class::TIMER),
        kind => TimerKey::lane_start(TimerKind(kind)),
    };
    (start, TimerKey::lane_end(TimerKind(kind)))
}

/// The first key of a range.
pub(super) fn first_key(
    conn: &dyn SqlConn,
    part: i64,
    start: &Key,
    end: &Key,
) -> Result<Option<Bytes>, StoreError> {
    let params = [
        SqlParam::Int(part),
        SqlParam::Blob(start),
        SqlParam::Blob(end),
    ];
    first_blob(conn, sql::FIRST_KEY, &params)
}

/// The first key of a lane, unless it is paused. No handler has the invalid kind, so nobody can pause it.
fn first_key_unless_paused(
    conn: &dyn SqlConn,
    (part, kind): Lane,
) -> Result<Option<Bytes>, StoreError> {
    let (start, end) = lane_range(kind);
    let kind = TimerKind(kind);
    if !kind.is_valid() {
        return first_key(conn, part, &start, &end);
    }
    let pause = PauseKey { kind }.encode();
    let params = [
        SqlParam::Int(part),
        SqlParam::Blob(&start),
        SqlParam::Blob(&end),
        SqlParam::Blob(&pause),
    ];
    first_blob(conn, sql::FIRST_KEY_UNLESS, &params)
}

pub(super) fn insert_wake(conn: &dyn SqlConn, lane: Lane, at: i64) -> Result<(), StoreError> {
    conn.execute(sql::WAKE_INSERT, &wake_params(lane, at))?;
    Ok(())
}

/// Moves a wake, if it is there.
fn move_wake(conn: &dyn SqlConn, lane: Lane, from: i64, to: i64) -> Result<bool, StoreError> {
    let [kind, at, part] = wake_params(lane, from);
    let moved = conn.execute(sql::WAKE_MOVE, &[kind, at, part, SqlParam::Int(to)])?;
    Ok(moved > 0)
}

fn delete_wake(conn: &dyn SqlConn, lane: Lane, at: i64) -> Result<(), StoreError> {
    conn.execute(sql::WAKE_DELETE, &wake_params(lane, at))?;
    Ok(())
}

pub(super) fn wake_params((part, kind): Lane, at: i64) -> [SqlParam<'static>; 3] {
    [
        SqlParam::Int(i64::from(kind)),
        SqlParam::Int(at),
        SqlParam::Int(part),
    ]
}

impl Transaction<'_> {
    /// Sets the wakes of the lanes this transaction touched; answers the settled ones.
    pub(super) fn set_wakes(&mut self) -> Result<OrderedMap<Lane, Option<u64>>, StoreError> {
        let mut answers = OrderedMap::new();
        let lanes = std::mem::take(&mut self.lanes);
        if lanes.is_empty() {
            return Ok(answers);
        }
        let now = now_column(self.conn);
        for (lane, work) in lanes {
            let put_at = work.put_due.map(|due| due.max(now));
            let known = self.known_wake(lane, put_at.filter(|_| !work.settle))?;
            let armed = if work.settle {
                let wake = self.settle_lane(lane, &work.served, known, now)?;
                answers.insert(lane, wake.and_then(|at| u64::try_from(at).ok()));
                wake
            } else if let Some(at) = put_at {
                Some(self.arm_lane(lane, at, known)?)
            } else {
                known
            };
            if armed != known {
                self.change.armed.insert(lane, armed);
            }
        }
        Ok(answers)
    }

    /// Makes sure of a wake at or before `at` and returns the one known.
    fn arm_lane(&self, lane: Lane, at: i64, known: Option<i64>) -> Result<i64, StoreError> {
        if let Some(earlier) = known {
            if earlier <= at || planted(Mutant::PutTrustsAnyWake) {
                return Ok(earlier);
            }
            if move_wake(self.conn, lane, earlier, at)? {
                return Ok(at);
            }
        }
        insert_wake(self.conn, lane, at)?;
        Ok(at)
    }

    /// Removes what was served and sets the wake of the lane's first row as it now stands.
    fn settle_lane(
        &self,
        lane: Lane,
        served: &[i64],
        known: Option<i64>,
        now: i64,
    ) -> Result<Option<i64>, StoreError> {
        let first = first_key_unless_paused(self.conn, lane)?;
        let head = first.as_deref().and_then(lane_head);
        let wake = head.map(|head| column(head.due_ms).max(now));
        let known = known.filter(|at| !served.contains(at));
        let gone = served.iter().copied().chain(known);
        let gone = gone.filter(|at| Some(*at) != wake);
        let late_ms = if planted(Mutant::SettleSetsWakeLate) {
            1_000
        } else {
            0
        };
        let set = wake.map(|at| at + late_ms).filter(|at| {
            let is_dropped = *at <= now && planted(Mutant::FullLaneDropsWake);
            !is_dropped && !planted(Mutant::SettleForgetsWake)
        });
        let mut wanted = set;
        for old in gone {
            match wanted {
                Some(at) if move_wake(self.conn, lane, old, at)? => wanted = None,
                Some(_) => {}
                None => delete_wake(self.conn, lane, old)?,
            }
        }
        if let Some(at) = wanted {
            insert_wake(self.conn, lane, at)?;
        }
        Ok(set)
    }

    /// Whether the writer knows of a stored wake of the partition.
    pub(super) fn has_known_wake(&self, part: i64) -> bool {
        let lanes = (part, 0)..=(part, u8::MAX);
        let changed = &self.change.armed;
        changed.range(lanes.clone()).any(|(_, at)| at.is_some())
            || self
                .writer
                .armed
                .range(lanes)
                .any(|(lane, _)| !changed.contains_key(lane))
    }
}
