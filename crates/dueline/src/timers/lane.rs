//! A lane within a tick: the due rows of one kind, read page by page.

use std::collections::VecDeque;
use std::time::Duration;

use super::moves::NameGuard;
use super::registry::Registration;
use super::{Execution, TimerKind};
use crate::rows::lane_head;
use crate::store::{Key, ScanPage, ScanRange, Value};

/// Rows read at a time, unless a kind's groups are larger.
pub(crate) const PAGE_ROWS: usize = 64;

/// A due row as it was read.
#[derive(Clone, Debug)]
pub(crate) struct DueRow {
    pub(crate) key: Key,
    pub(crate) value: Value,
    /// Whether the run was charged to the budget already.
    pub(crate) charged: bool,
    /// How often the run was planned again because a guard of its batch was lost.
    pub(crate) replans: u8,
    /// The name row as found, if it was not as the timer's row says.
    pub(crate) name: Option<NameGuard>,
    /// Whether this tick claimed the row for a cautious run.
    pub(crate) claimed_here: bool,
    /// The due in the key before that claim.
    pub(crate) found_due_ms: Option<u64>,
}

impl DueRow {
    pub(crate) fn new(key: Key, value: Value) -> Self {
        Self {
            key,
            value,
            charged: false,
            replans: 0,
            name: None,
            claimed_here: false,
            found_due_ms: None,
        }
    }
}

/// Why a lane takes part no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Closed {
    /// The tick's budget, or the lane's share of it.
    Budget,
    /// The cap of its kind.
    Cap,
    /// No slot is free: the served wake stands, so that the lane keeps its turn.
    NoSlot,
    /// The store's clock is behind the due: the lane waits.
    TooEarly,
    /// The store refused a write: the driver holds the partition back.
    Held,
}

#[derive(Debug)]
pub(crate) struct Lane<'a> {
    pub(crate) kind: TimerKind,
    /// `None` for kind 0, whose rows can only be set aside.
    pub(crate) registration: Option<&'a Registration>,
    pub(crate) cautious: bool,
    /// Stored wakes that this tick serves, in milliseconds since 1970.
    pub(crate) served_ms: Vec<u64>,
    /// What is read and not yet run, in key order.
    pub(crate) rows: VecDeque<DueRow>,
    /// Where the lane goes on in the store; `None` when everything due is read.
    pub(crate) more: Option<ScanRange>,
    pub(crate) closed: Option<Closed>,
    pub(crate) fires: u32,
    /// Rows dealt with: run or set aside.
    pub(crate) handled: u32,
    pub(crate) spent: Duration,
}

impl<'a> Lane<'a> {
    pub(crate) fn new(kind: TimerKind, registration: Option<&'a Registration>) -> Self {
        Self {
            kind,
            registration,
            cautious: false,
            served_ms: Vec::new(),
            rows: VecDeque::new(),
            more: None,
            closed: None,
            fires: 0,
            handled: 0,
            spent: Duration::ZERO,
        }
    }

    /// Takes a page of the lane's range in.
    pub(crate) fn take_page(&mut self, range: ScanRange, page: ScanPage) {
        self.rows.extend(
            page.rows
                .into_iter()
                .map(|(key, value)| DueRow::new(key, value)),
        );
        self.more = page.next.map(|cursor| range.after(Some(cursor)));
    }

    /// Whether the lane may still run something. A run that is charged and waits to be planned
    /// again is not stopped by a budget or a cap.
    pub(crate) fn is_live(&self) -> bool {
        match self.closed {
            None => !self.rows.is_empty() || self.more.is_some(),
            Some(Closed::Budget | Closed::Cap | Closed::NoSlot) => {
                self.rows.front().is_some_and(|row| row.charged)
            }
            Some(Closed::TooEarly | Closed::Held) => false,
        }
    }

    /// Whether the next page must be read before the lane can be merged.
    pub(crate) fn needs_page(&self) -> bool {
        self.closed.is_none() && self.rows.is_empty() && self.more.is_some()
    }

    /// How many rows may still be due in this lane.
    pub(crate) fn rows_left(&self) -> u32 {
        if self.more.is_some() {
            return u32::MAX;
        }
        u32::try_from(self.rows.len()).unwrap_or(u32::MAX)
    }

    /// The due in the key of the next row.
    pub(crate) fn next_due_ms(&self) -> Option<u64> {
        self.rows
            .front()
            .and_then(|row| lane_head(&row.key))
            .map(|head| head.due_ms)
    }

    /// Ends the lane's part in this tick; the first reason stays.
    pub(crate) fn close(&mut self, reason: Closed) {
        self.closed.get_or_insert(reason);
    }

    /// Most timers of this kind in one group.
    pub(crate) fn group_max(&self) -> usize {
        match self.registration.map(Registration::execution) {
            Some(Execution::Inline { group_max }) => usize::from(group_max),
            _ => PAGE_ROWS,
        }
    }

    /// Whether the kind's timers are claimed for calls.
    pub(crate) fn makes_calls(&self) -> bool {
        let execution = self.registration.map(Registration::execution);
        matches!(execution, Some(Execution::Detached { .. }))
    }

    /// Rows to read at a time.
    pub(crate) fn page_rows(&self) -> usize {
        self.group_max().max(PAGE_ROWS)
    }
}
