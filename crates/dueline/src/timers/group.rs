//! Timers that commit together, and what becomes of each of them.

use std::time::Duration;

use super::call::{Claim, ClaimedCall};
use super::lane::{Closed, DueRow};
use super::planned::{Effect, Planned};
use super::tick::TickRun;
use super::{DueTimer, TimerKind};
use crate::limits::{BATCH_BYTES_MAX, GROUP_TIMERS_MAX};
use crate::mutants::{Mutant, planted};
use crate::rows::{class, is_of_class, lane_head};
use crate::store::{Batch, BatchOutcome, Group, StoreError, StoreErrorKind, WakeSettle, Write};

/// Handler time after which a group commits.
const GROUP_TIME: Duration = Duration::from_millis(4);
/// Most timers of a group while other commits wait.
const GROUP_TIMERS_CONTENDED: usize = 256;

/// The group that is being filled.
#[derive(Debug, Default)]
pub(super) struct Staged {
    items: Vec<Item>,
    runs: usize,
    bytes: usize,
    spent: Duration,
    group_max: usize,
}

#[derive(Debug)]
struct Item {
    row: DueRow,
    /// `None` for a timer that an earlier member of the group removes.
    planned: Option<Planned>,
}

impl Staged {
    pub(super) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Leaves out a timer that a member of the group removes, as long as that member commits.
    pub(super) fn skip(&mut self, row: DueRow) {
        self.items.push(Item { row, planned: None });
    }
}

impl TickRun<'_> {
    /// Whether a timer of a kind with this group size must wait for the group to commit first.
    pub(super) fn is_full_for(&self, group_max: usize) -> bool {
        !self.staged.is_empty()
            && self.staged.runs >= self.members_max(group_max.min(self.staged.group_max))
    }

    fn members_max(&self, group_max: usize) -> usize {
        let contended = if self.store.is_contended() {
            GROUP_TIMERS_CONTENDED
        } else {
            usize::MAX
        };
        (group_max.min(GROUP_TIMERS_MAX).min(contended) >> self.halvings.min(16)).max(1)
    }

    /// Adds a planned run to the group and commits the group if it is complete.
    pub(super) async fn stage(
        &mut self,
        row: DueRow,
        planned: Planned,
        group_max: usize,
        spent: Duration,
    ) {
        self.overlay.stage(&planned.batch.writes);
        let first = self.staged.is_empty();
        let staged = &mut self.staged;
        staged.group_max = if first {
            group_max
        } else {
            staged.group_max.min(group_max)
        };
        staged.runs += 1;
        staged.bytes += planned.batch.bytes();
        staged.spent += spent;
        staged.items.push(Item {
            row,
            planned: Some(planned),
        });
        let complete = self.staged.runs >= self.members_max(self.staged.group_max)
            || self.staged.bytes >= BATCH_BYTES_MAX
            || self.staged.spent >= GROUP_TIME;
        if complete {
            let last = !self.lanes.iter().any(super::lane::Lane::is_live);
            self.flush(last).await;
        }
    }

    /// Commits the group, with the settles of the lanes if nothing is left to run. Returns whether
    /// all of it is dealt with, that is, nothing has gone back to its lane.
    pub(super) async fn flush(&mut self, last: bool) -> bool {
        let staged = std::mem::take(&mut self.staged);
        let settles = if last && self.settles {
            self.settles()
        } else {
            Vec::new()
        };
        let batches: Vec<Batch> = staged
            .items
            .iter()
            .filter_map(|item| item.planned.as_ref())
            .map(|planned| planned.batch.clone())
            .collect();
        if batches.is_empty() && settles.is_empty() {
            self.settled = last;
            return true;
        }
        let kinds: Vec<TimerKind> = settles.iter().map(|settle| settle.kind).collect();
        let done = self
            .store
            .apply_all(self.partition, Group { batches, settles })
            .await;
        self.overlay.clear();
        let settled = done.next_wakes_ms.len() == kinds.len();
        for (kind, next) in kinds.into_iter().zip(done.next_wakes_ms) {
            self.note_settled(kind, next);
        }
        let clean = self
            .account(staged.items, done.outcomes, done.stopped_by)
            .await;
        self.settled = last && settled && clean;
        clean
    }

    /// Lanes whose wakes were served. One that waits for a slot keeps its wake, and so its turn.
    fn settles(&self) -> Vec<WakeSettle> {
        self.lanes
            .iter()
            .filter(|lane| lane.closed != Some(Closed::NoSlot))
            .map(|lane| WakeSettle {
                kind: lane.kind,
                served_ms: lane.served_ms.clone(),
            })
            .collect()
    }

    fn note_settled(&mut self, kind: TimerKind, next: Option<u64>) {
        self.next_wakes.insert(kind, next);
        if let Some(lane) = self.lanes.iter_mut().find(|lane| lane.kind == kind) {
            // Should the lane run on, the wake just set is the one it serves.
            lane.served_ms = next.into_iter().collect();
        }
    }

    async fn account(
        &mut self,
        items: Vec<Item>,
        outcomes: Vec<BatchOutcome>,
        stopped_by: Option<StoreError>,
    ) -> bool {
        let mut outcomes = outcomes.into_iter();
        let mut items = items.into_iter();
        while let Some(Item { row, planned }) = items.next() {
            let Some(planned) = planned else {
                self.report.count(row.kind(), |counts| counts.raced += 1);
                continue;
            };
            match outcomes.next() {
                Some(BatchOutcome::Committed) => self.committed(&row, planned),
                Some(lost) => {
                    self.halvings = self.halvings.saturating_add(1);
                    if planted(Mutant::GroupNotRunAgain) {
                        self.staged.items.extend(items);
                    } else {
                        self.put_back(items.collect());
                    }
                    self.lost(row, planned, lost).await;
                    return false;
                }
                None => {
                    let error = stopped_by
                        .unwrap_or_else(|| StoreError::corrupt("the store left batches out"));
                    self.stopped(row, planned, items.collect(), error).await;
                    return false;
                }
            }
        }
        if let Some(error) = stopped_by
            && error.kind() != StoreErrorKind::Unknown
        {
            self.hold_all(&error);
        }
        true
    }

    /// Puts members of a group back at the front of their lanes, in their order.
    fn put_back(&mut self, items: Vec<Item>) {
        for item in items.into_iter().rev() {
            self.step_back(item.row);
        }
        self.reopen_lanes();
    }

    /// Puts a row that has not been run after all at the front of its lane, its run given back: one
    /// by one it would not have been charged yet, and one before it may need the fire.
    pub(super) fn step_back(&mut self, mut row: DueRow) {
        let kind = row.kind();
        if std::mem::take(&mut row.charged) {
            self.state.give_back(kind);
            if let Some(lane) = self.lanes.iter_mut().find(|lane| lane.kind == kind) {
                lane.fires = lane.fires.saturating_sub(1);
                lane.handled = lane.handled.saturating_sub(1);
            }
        }
        self.push_front(row);
    }

    pub(super) fn push_front(&mut self, row: DueRow) {
        let kind = row.kind();
        if let Some(lane) = self.lanes.iter_mut().find(|lane| lane.kind == kind) {
            lane.rows.push_front(row);
        }
    }

    /// Accounts a committed batch.
    pub(super) fn committed(&mut self, row: &DueRow, planned: Planned) {
        self.note_writes(row, &planned.batch);
        let kind = row.kind();
        match planned.effect {
            Effect::Fired => self.report.count(kind, |counts| counts.fired += 1),
            Effect::Rescheduled => self.report.count(kind, |counts| counts.rescheduled += 1),
            Effect::Failed => self.report.count(kind, |counts| counts.failed += 1),
            Effect::Dead => self.report.count(kind, |counts| counts.dead += 1),
            Effect::Quarantined => self.report.quarantined += 1,
            Effect::Claimed { slot, to, since } => {
                self.report.count(kind, |counts| counts.claimed += 1);
                let Some(timer) = row.decode(self.engine.runtime().now_ms()) else {
                    return;
                };
                let (key, value, _) = to.row(&timer);
                let found_due_ms = timer.found_due_ms();
                let claimed = DueRow::new(key, value);
                let registration = self.engine.registry.get(kind);
                if let (Some(timer), Some(registration)) =
                    (claimed.decode(self.engine.runtime().now_ms()), registration)
                {
                    self.calls.push(ClaimedCall {
                        claim: Claim {
                            partition: self.partition.clone(),
                            timer: timer.found_due_at(found_due_ms),
                        },
                        registration: registration.clone(),
                        store: std::sync::Arc::clone(self.engine.timers.store()),
                        runtime: self.engine.runtime().clone(),
                        since,
                        _slot: slot,
                        _running: self.engine.activity.begin(self.partition, Some(kind)),
                    });
                }
            }
        }
    }

    /// Remembers the timer rows a committed batch put and deleted, so that this tick neither fires
    /// the new ones nor runs the gone ones.
    pub(super) fn note_writes(&mut self, row: &DueRow, batch: &Batch) {
        for write in &batch.writes {
            let key = write.key();
            if *key == row.key || !is_of_class(key, class::TIMER) {
                continue;
            }
            if lane_head(key).is_some_and(|head| head.due_ms > self.cutoff_ms) {
                continue;
            }
            match write {
                Write::Put(key, value) if planted(Mutant::PastRescheduleFiresAgain) => {
                    self.push_front(DueRow::new(key.clone(), value.clone()));
                }
                Write::Put(..) => {
                    self.removed.remove(key);
                    self.put.insert(key.clone());
                }
                Write::Delete(_) => {
                    self.put.remove(key);
                    self.removed.insert(key.clone());
                }
            }
        }
    }

    /// The store ended the group with an error at this member: it and those behind it are settled.
    async fn stopped(
        &mut self,
        row: DueRow,
        planned: Planned,
        behind: Vec<Item>,
        error: StoreError,
    ) {
        match error.kind() {
            StoreErrorKind::Full => {
                // Those behind are likely to fare the same: smaller groups run fewer of them again.
                self.halvings = self.halvings.saturating_add(1);
                self.put_back(behind);
                self.set_back(row, planned, "the store is full").await;
            }
            StoreErrorKind::Invalid | StoreErrorKind::Unsupported => {
                self.halvings = self.halvings.saturating_add(1);
                self.put_back(behind);
                self.refused(row, planned, &error).await;
            }
            StoreErrorKind::Unknown => {
                tracing::warn!(partition = %self.partition, %error, "a commit is in doubt");
                let (skipped, planned_behind): (Vec<Item>, Vec<Item>) =
                    behind.into_iter().partition(|item| item.planned.is_none());
                self.put_back(skipped);
                self.doubtful(row, planned).await;
                for Item { row, planned } in planned_behind {
                    if let Some(planned) = planned {
                        self.doubtful(row, planned).await;
                    }
                }
            }
            StoreErrorKind::Unavailable | StoreErrorKind::Corrupt => {
                self.hold(&row, &error);
                for item in behind {
                    self.hold(&item.row, &error);
                }
            }
        }
    }

    /// The store refused a write of this timer: its lane closes, the timer stays as it is.
    pub(super) fn hold(&mut self, row: &DueRow, error: &StoreError) {
        let kind = row.kind();
        tracing::warn!(partition = %self.partition, %kind, %error, "a timer could not be written");
        self.report.hold_back(error);
        self.report.count(kind, |counts| counts.held += 1);
        if row.claimed_here {
            self.held_claim = Some(row.clone());
        }
        if let Some(lane) = self.lanes.iter_mut().find(|lane| lane.kind == kind) {
            lane.closed = Some(Closed::Held);
        }
    }
}

impl DueRow {
    /// The lane of the row.
    pub(super) fn kind(&self) -> TimerKind {
        lane_head(&self.key).map_or(TimerKind::INVALID, |head| head.kind)
    }

    /// The timer the row holds, if both key and value decode.
    pub(super) fn decode(&self, now_ms: u64) -> Option<DueTimer> {
        let key = crate::rows::TimerKey::decode(&self.key).ok()?;
        let row = crate::rows::TimerRow::decode(&self.value).ok()?;
        let timer = DueTimer::new(key, row, now_ms);
        Some(match self.found_due_ms {
            Some(found_due_ms) => timer.found_due_at(found_due_ms),
            None => timer,
        })
    }
}
