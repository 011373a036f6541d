//! What becomes of a timer whose batch did not commit.

use super::lane::{Closed, DueRow};
use super::make_move::backend_now_ms;
use super::moves::{NameGuard, name_key};
use super::planned::{Effect, Planned, Planning};
use super::run::claim_bounds;
use super::tick::TickRun;
use super::{DueTimer, RetryPolicy};
use crate::mutants::{Mutant, planted};
use crate::store::{Batch, BatchOutcome, StoreError, StoreErrorKind};

/// How often a run is planned again in one tick because a guard of its batch was lost.
const REPLANS_MAX: u8 = 3;

impl<'a> TickRun<'a> {
    /// A batch lost a precondition or a time bound.
    pub(super) async fn lost(&mut self, row: DueRow, planned: Planned, outcome: BatchOutcome) {
        let Some(timer) = row.decode(self.engine.runtime().now_ms()) else {
            return self.lost_malformed(row, &outcome);
        };
        match outcome {
            // The store's clock has not reached the due: the lane waits, its wake stands. A timer
            // that this tick has claimed was due already, so the bound is its handler's.
            BatchOutcome::TooEarly { backend_now_ms }
                if backend_now_ms < timer.key().due_ms && !row.claimed_here =>
            {
                self.postpone(row, Closed::TooEarly);
            }
            BatchOutcome::PreconditionFailed { index, .. } if index < planned.own_guards => {
                self.lost_own_guard(row, &timer, planned, index).await;
            }
            // An engine's move: its place is taken, or the clocks are apart.
            outcome if planned.to.is_some() => {
                self.move_again(row, &timer, planned, &outcome).await;
            }
            _ => self.plan_again(row, &timer).await,
        }
    }

    /// One of the engine's guards was lost: the timer row (somebody changed the timer: this run is
    /// dropped) or the name row alone (the two disagree: the name is read and the run goes on).
    async fn lost_own_guard(
        &mut self,
        mut row: DueRow,
        timer: &DueTimer,
        planned: Planned,
        index: usize,
    ) {
        let name_guard = planned.own_guards.saturating_sub(1);
        if !timer.is_named() || index != name_guard || row.name.is_some() {
            return self.raced(&row);
        }
        match self.store.get(self.partition, &name_key(timer)).await {
            Ok(found) => {
                let guard = NameGuard::found(timer, found);
                tracing::error!(
                    partition = %self.partition,
                    kind = %timer.kind(),
                    reference = %timer.reference().escape_ascii(),
                    "a timer and its name disagree; the timer fires by its own row"
                );
                row.name = Some(guard);
                self.push_front(row);
            }
            Err(error) => self.hold(&row, &error),
        }
    }

    pub(super) fn raced(&mut self, row: &DueRow) {
        self.report.count(row.kind(), |counts| counts.raced += 1);
    }

    /// A guard that the handler set was lost: it plans again at once, three times, then it failed.
    async fn plan_again(&mut self, mut row: DueRow, timer: &DueTimer) {
        if row.replans < REPLANS_MAX {
            row.replans += 1;
            return self.push_front(row);
        }
        let planning = self.plain_planning(&row, timer);
        let reason = format!(
            "a guard of the handler's batch was lost {} times",
            REPLANS_MAX + 1
        );
        let planned = planning.failed(timer, &reason, None);
        self.make_planned_move(&row, timer, planning, planned).await;
    }

    /// The engine's own move could not be made as planned: a claim is planned again by the store's
    /// clock, another move looks for a free place.
    async fn move_again(
        &mut self,
        row: DueRow,
        timer: &DueTimer,
        planned: Planned,
        outcome: &BatchOutcome,
    ) {
        let Planned {
            to: Some(mut to),
            effect,
            ..
        } = planned
        else {
            return;
        };
        let mut planning = self.plain_planning(&row, timer);
        let is_claim = matches!(effect, Effect::Claimed { .. });
        match backend_now_ms(outcome) {
            Some(backend_now_ms) if is_claim => {
                to = self.claim_from(timer, backend_now_ms);
                planning.front = claim_bounds(timer, backend_now_ms);
            }
            _ if is_claim => {
                planning.front = claim_bounds(timer, self.engine.runtime().now_ms());
                to = to.one_later();
            }
            _ => to = to.one_later(),
        }
        if let Some(to) = self
            .make_move(&row, timer, planning.clone(), to, is_claim)
            .await
        {
            let effect = match effect {
                Effect::Claimed { slot, since, .. } => Effect::Claimed {
                    slot,
                    to: to.clone(),
                    since,
                },
                effect => effect,
            };
            let planned = planning.moved(timer, to, effect, Batch::new());
            self.committed(&row, planned);
        }
    }

    /// The store is full: the timer is moved to a later attempt from the reserve, none charged.
    pub(super) async fn set_back(&mut self, row: DueRow, planned: Planned, reason: &str) {
        let Some(timer) = row.decode(self.engine.runtime().now_ms()) else {
            let detail = format!("a malformed row could not be set aside: {reason}");
            return self.hold(&row, &StoreError::unavailable(detail));
        };
        if matches!(planned.effect, Effect::Claimed { .. }) {
            // A claim uses the reserve already: there is no room for any move.
            return self.hold(&row, &StoreError::full("not even a claim could be written"));
        }
        let planning = self.plain_planning(&row, &timer);
        let planned = planning.set_back(&timer, reason);
        self.make_planned_move(&row, &timer, planning, planned)
            .await;
    }

    /// The store refused the batch as such: a failure of the handler.
    pub(super) async fn refused(&mut self, row: DueRow, planned: Planned, error: &StoreError) {
        let Some(timer) = row.decode(self.engine.runtime().now_ms()) else {
            return self.hold(&row, error);
        };
        if planned.to.is_some() {
            return self.hold(&row, error);
        }
        let planning = self.plain_planning(&row, &timer);
        let planned = planning.failed(&timer, &refusal(error), None);
        self.make_planned_move(&row, &timer, planning, planned)
            .await;
    }

    /// The commit's outcome is not known: the row says what became of it.
    pub(super) async fn doubtful(&mut self, row: DueRow, planned: Planned) {
        let kind = row.kind();
        if matches!(planned.effect, Effect::Claimed { .. }) && planted(Mutant::DoubtfulClaimIsRun) {
            return self.committed(&row, planned);
        }
        if planted(Mutant::UnknownIsCommitted) {
            let gone = Batch::new().delete(row.key);
            return drop(self.store.apply(self.partition, gone).await);
        }
        if planted(Mutant::UnknownRunsUnguarded) {
            let mut again = planned.batch;
            again.preconditions.clear();
            return drop(self.store.apply(self.partition, again).await);
        }
        match self.store.get(self.partition, &row.key).await {
            Ok(Some(_)) if matches!(planned.effect, Effect::Claimed { .. }) => {
                // Nothing was claimed, or will be seen when the claim ends.
                self.report
                    .count(kind, |counts| counts.unknown_outcome += 1);
            }
            Ok(Some(_)) => {
                self.set_back(row, planned, "the outcome of the commit was unknown")
                    .await
            }
            Ok(None) => {
                // Most likely it was committed, with what it puts and deletes.
                self.note_writes(&row, &planned.batch);
                self.report
                    .count(kind, |counts| counts.unknown_outcome += 1);
            }
            Err(error) => self.hold(&row, &error),
        }
    }

    pub(super) fn plain_planning(&self, row: &DueRow, timer: &DueTimer) -> Planning<'a> {
        let policy = self
            .engine
            .registry
            .get(timer.kind())
            .map_or_else(RetryPolicy::default, |known| known.policy_of(timer));
        self.planning(row, timer, policy, Vec::new())
    }
}

/// Why a batch was refused, in the words that are kept with its timer.
pub(super) fn refusal(error: &StoreError) -> String {
    match error.kind() {
        StoreErrorKind::Invalid => error.detail().to_owned(),
        _ => error.to_string(),
    }
}
