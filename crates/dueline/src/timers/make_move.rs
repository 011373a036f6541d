//! Making one of the engine's moves by itself, until it is made, lost or refused.

use super::DueTimer;
use super::lane::{Closed, DueRow};
use super::moves::{Move, NameGuard, name_key};
use super::planned::{Effect, Planned, Planning};
use super::run::claim_bounds;
use super::tick::TickRun;
use crate::store::{Batch, BatchOutcome, StoreError, StoreErrorKind};

/// How often a move looks for a free place, or asks again.
const TRIES: usize = 8;

impl<'a> TickRun<'a> {
    /// Makes a planned move and counts it.
    pub(super) async fn make_planned_move(
        &mut self,
        row: &DueRow,
        timer: &DueTimer,
        planning: Planning<'a>,
        planned: Planned,
    ) {
        let Planned {
            to: Some(to),
            effect,
            ..
        } = planned
        else {
            return;
        };
        if let Some(to) = self
            .make_move(row, timer, planning.clone(), to, false)
            .await
        {
            self.committed(row, planning.moved(timer, to, effect, Batch::new()));
        }
    }

    /// Makes a move; `None` if the timer changed, its lane waits, or the store refused it, each of
    /// which is accounted.
    pub(super) async fn make_move(
        &mut self,
        row: &DueRow,
        timer: &DueTimer,
        mut planning: Planning<'a>,
        mut to: Move,
        is_claim: bool,
    ) -> Option<Move> {
        for _ in 0..TRIES {
            let planned = planning.moved(timer, to.clone(), Effect::Failed, Batch::new());
            match self.store.apply(self.partition, planned.batch).await {
                Ok(BatchOutcome::Committed) => return Some(to),
                Ok(BatchOutcome::PreconditionFailed { index, .. })
                    if index < planned.own_guards =>
                {
                    let by_name = matches!(planning.name, NameGuard::Row { .. })
                        && index + 1 == planned.own_guards;
                    if !by_name || !self.reread_name(row, timer, &mut planning).await {
                        self.raced(row);
                        return None;
                    }
                }
                Ok(BatchOutcome::PreconditionFailed { .. }) => to = to.one_later(),
                Ok(outcome) => {
                    let backend_now_ms = backend_now_ms(&outcome).unwrap_or(0);
                    if !is_claim || backend_now_ms < timer.key().due_ms {
                        self.close_lane(row, Closed::TooEarly);
                        return None;
                    }
                    to = self.claim_from(timer, backend_now_ms);
                    planning.front = claim_bounds(timer, backend_now_ms);
                }
                Err(error) if error.kind() == StoreErrorKind::Unknown => {
                    let kind = row.kind();
                    let still_there = match self.store.get(self.partition, &row.key).await {
                        Ok(found) => found.is_some(),
                        Err(error) => {
                            self.hold(row, &error);
                            return None;
                        }
                    };
                    // A claim in doubt is not run: its end brings the timer back.
                    if is_claim || !still_there {
                        self.report
                            .count(kind, |counts| counts.unknown_outcome += 1);
                        return None;
                    }
                }
                Err(error) => {
                    self.hold(row, &error);
                    return None;
                }
            }
        }
        self.hold(
            row,
            &StoreError::unavailable("a move was tried eight times in vain"),
        );
        None
    }

    /// Gives a cautious claim back, its attempt uncounted: the store failed, not the handler. Tried
    /// once; if that fails too, the claim's end brings the timer back.
    pub(super) async fn give_claim_back(&mut self, row: &DueRow) {
        let now_ms = self.engine.runtime().now_ms();
        let Some(timer) = row.decode(now_ms) else {
            return;
        };
        let planning = self.plain_planning(row, &timer);
        let to = Move::release(&timer, now_ms);
        let planned = planning.moved(&timer, to, Effect::Failed, Batch::new());
        if let Err(error) = self.store.apply(self.partition, planned.batch).await {
            tracing::warn!(partition = %self.partition, %error, "a claim could not be given back");
        }
    }

    /// Guards the name row as it is now, unless that was done already.
    async fn reread_name(
        &self,
        row: &DueRow,
        timer: &DueTimer,
        planning: &mut Planning<'_>,
    ) -> bool {
        if row.name.is_some() {
            return false;
        }
        let Ok(found) = self.store.get(self.partition, &name_key(timer)).await else {
            return false;
        };
        planning.name = NameGuard::found(timer, found);
        true
    }

    pub(super) fn close_lane(&mut self, row: &DueRow, reason: Closed) {
        let kind = row.kind();
        if let Some(lane) = self.lanes.iter_mut().find(|lane| lane.kind == kind) {
            lane.closed = Some(reason);
        }
    }
}

/// The backend's clock, if a time bound was lost.
pub(super) fn backend_now_ms(outcome: &BatchOutcome) -> Option<u64> {
    match outcome {
        BatchOutcome::DeadlinePassed { backend_now_ms }
        | BatchOutcome::TooEarly { backend_now_ms } => Some(*backend_now_ms),
        BatchOutcome::Committed | BatchOutcome::PreconditionFailed { .. } => None,
    }
}
