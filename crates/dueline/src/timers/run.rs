//! Running one due timer: inline over the overlay, or as a durable claim for a detached call.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use super::lane::{Closed, DueRow};
use super::moves::{Move, NameGuard};
use super::overlay::Overlay;
use super::planned::{Effect, Planned, Planning};
use super::registry::{Handler, Registration};
use super::tick::TickRun;
use super::{DueTimer, Fired, HandlerError, RetryPolicy, TimerCtx, TimerHandler, TimerKind};
use crate::future::{catch_panic, or_deadline};
use crate::mutants::{Mutant, planted};
use crate::rows::{DeadReason, Failure, Malformed, TimerKey, TimerRow};
use crate::store::{Batch, Key, Precondition};

/// How long after its deadline a claim ends, in milliseconds: time to settle.
pub(super) const CLAIM_SLACK_MS: u64 = 10_000;
/// How far the clocks of the driver and the store may be apart for a claim, in milliseconds.
const CLAIM_SKEW_MS: u64 = 5_000;
/// Members of a group of claims.
const CLAIMS_GROUP_MAX: usize = 256;

impl<'a> TickRun<'a> {
    /// Runs one admitted row.
    pub(super) async fn run_row(&mut self, index: usize, key: TimerKey, row: DueRow) {
        let Some((registration, cautious)) = self
            .lanes
            .get(index)
            .and_then(|lane| lane.registration.map(|known| (known, lane.cautious)))
        else {
            if planted(Mutant::UnknownKindWritten) {
                self.bury_undecodable(key, row, Malformed("its kind is unknown"))
                    .await;
            }
            return;
        };
        let now_ms = self.engine.runtime().now_ms();
        let timer = match TimerRow::decode(&row.value) {
            Ok(value) => {
                let found_due_ms = row.found_due_ms.unwrap_or(key.due_ms);
                DueTimer::new(key, value, now_ms).found_due_at(found_due_ms)
            }
            Err(malformed) => return self.bury_undecodable(key, row, malformed).await,
        };
        self.report.worst_lateness_ms = self.report.worst_lateness_ms.max(timer.lateness_ms());
        let lapsed = timer.flags().claimed && !row.claimed_here;
        let policy = registration.policy_of(&timer);
        if lapsed && policy.is_exhausted(timer.header().attempt) {
            return self.bury_cut(row, &timer, policy).await;
        }
        match &registration.handler {
            Handler::Detached(_) if lapsed && timer.header().attempt > 1 => {
                self.back_off_cut(row, &timer, policy).await;
            }
            Handler::Detached(_) => self.claim(row, &timer, registration).await,
            Handler::Inline(handler) if row.claimed_here => {
                self.run_inline(index, row, timer, registration, handler.as_ref())
                    .await;
            }
            Handler::Inline(_) if (cautious || lapsed) && !planted(Mutant::CautionIgnored) => {
                self.claim_cautiously(row, &timer, registration).await;
            }
            Handler::Inline(handler) => {
                self.run_inline(index, row, timer, registration, handler.as_ref())
                    .await;
            }
        }
    }

    /// What planning the batch of this timer needs.
    pub(super) fn planning(
        &self,
        row: &DueRow,
        timer: &DueTimer,
        policy: RetryPolicy,
        front: Vec<Precondition>,
    ) -> Planning<'a> {
        let registration = self.engine.registry.get(timer.kind());
        Planning {
            partition: self.partition,
            runtime: self.engine.runtime(),
            policy,
            codec_version: registration.map_or(0, |known| known.codec_version),
            name: row
                .name
                .clone()
                .unwrap_or_else(|| NameGuard::expected(timer)),
            front,
            floor_ms: if planted(Mutant::PastRescheduleFiresAgain) {
                0
            } else {
                self.cutoff_ms.saturating_add(1)
            },
        }
    }

    async fn run_inline(
        &mut self,
        index: usize,
        row: DueRow,
        timer: DueTimer,
        registration: &'a Registration,
        handler: &'a dyn TimerHandler,
    ) {
        let group_max = self
            .lanes
            .get(index)
            .map_or(1, super::lane::Lane::group_max);
        if self.is_full_for(group_max) {
            self.step_back(row);
            self.flush(false).await;
            return;
        }
        let runtime = self.engine.runtime();
        let started = self.begun;
        let overlay = Arc::clone(&self.overlay);
        overlay.take_fault();
        let ctx = TimerCtx::new(overlay.as_ref(), self.partition, timer.now_ms());
        let deadline = Duration::from_millis(registration.deadline_ms);
        let fire = catch_panic(|| handler.fire(&ctx, &timer));
        let mut run = pin!(or_deadline(fire, || runtime.sleep(deadline), deadline));
        let mut early = None;
        let mut committing = Duration::ZERO;
        if !self.staged.is_empty() {
            early = unless_slow(run.as_mut(), &overlay).await;
            if early.is_none() {
                // It waits for something else than the store: those before it do not wait for it.
                self.push_front(row.clone());
                let before = runtime.monotonic();
                if !self.flush(false).await {
                    self.give_back_waiting(index, &row.key);
                    return;
                }
                committing = runtime.monotonic().saturating_sub(before);
                self.take_back(index);
            }
        }
        let result = match early {
            Some(result) => result,
            None => run.await,
        };
        // The commit of those before it is not its own time.
        let ran = runtime.monotonic().saturating_sub(started);
        let spent = ran.saturating_sub(committing);
        self.ran(index, row, &timer, registration, result, spent)
            .await;
    }

    /// Gives back the run of a row that waits behind others which are run again.
    fn give_back_waiting(&mut self, index: usize, key: &Key) {
        let Some(lane) = self.lanes.get_mut(index) else {
            return;
        };
        let waiting = lane.rows.iter_mut().find(|row| row.key == *key);
        if waiting.is_some_and(|row| std::mem::take(&mut row.charged)) {
            lane.fires = lane.fires.saturating_sub(1);
            lane.handled = lane.handled.saturating_sub(1);
            self.state.give_back(lane.kind);
        }
    }

    /// Takes the row that was put back for the time of a flush.
    fn take_back(&mut self, index: usize) {
        if let Some(lane) = self.lanes.get_mut(index) {
            lane.rows.pop_front();
        }
    }

    /// Plans what the handler said and adds it to the group.
    async fn ran(
        &mut self,
        index: usize,
        row: DueRow,
        timer: &DueTimer,
        registration: &Registration,
        result: Result<Fired, HandlerError>,
        spent: Duration,
    ) {
        // A claimed timer was found due when it was claimed.
        let front = if row.claimed_here || planted(Mutant::FireWithoutNotBefore) {
            Vec::new()
        } else {
            let early_ms = u64::from(planted(Mutant::FiresOneEarly));
            vec![Precondition::NotBefore(
                timer.key().due_ms.saturating_sub(early_ms),
            )]
        };
        let planning = self.planning(&row, timer, registration.policy_of(timer), front);
        let faulted = self.overlay.take_fault();
        let planned = match result {
            Ok(fired) => planning
                .fired(timer, fired)
                .unwrap_or_else(|refused| planning.failed(timer, &refused, None)),
            Err(error) if faulted && !error.is_undecodable() => {
                let error = crate::store::StoreError::unavailable(error.text().to_owned());
                return self.hold(&row, &error);
            }
            Err(error) => planning.error(timer, &error),
        };
        self.note_failure(timer, &planned);
        let group_max = self
            .lanes
            .get(index)
            .map_or(1, super::lane::Lane::group_max);
        self.spend(index, spent);
        self.stage(row, planned, group_max, spent).await;
    }

    /// Logs a failure, so that it is seen before somebody looks for it.
    fn note_failure(&self, timer: &DueTimer, planned: &Planned) {
        let failure = match &planned.to {
            Some(Move::Later { header, .. } | Move::Dead { header, .. }) => header.failure.as_ref(),
            None => None,
        };
        let Some(failure) = failure else { return };
        tracing::warn!(
            partition = %self.partition,
            kind = %timer.kind(),
            reference = %timer.reference().escape_ascii(),
            attempt = timer.attempt(),
            dead = matches!(planned.effect, Effect::Dead),
            error = %failure.error,
            "a timer failed"
        );
    }

    /// Claims a timer of a detached kind, as a member of the group.
    async fn claim(&mut self, row: DueRow, timer: &DueTimer, registration: &'a Registration) {
        if self.is_full_for(CLAIMS_GROUP_MAX) {
            self.step_back(row);
            self.flush(false).await;
            return;
        }
        let slot = if self.owes_slots(timer.kind()) {
            None
        } else {
            self.engine.slots.take(timer.kind())
        };
        let Some(slot) = slot else {
            if !self.staged.is_empty() {
                // A claim of the group may lose and give its slot back.
                self.step_back(row);
                self.flush(false).await;
                return;
            }
            return self.postpone(row, Closed::NoSlot);
        };
        let since = self.engine.runtime().monotonic();
        let now_ms = self.engine.runtime().now_ms();
        let to = self.claim_from(timer, now_ms);
        let front = claim_bounds(timer, now_ms);
        let planning = self.planning(&row, timer, registration.policy_of(timer), front);
        let effect = Effect::Claimed {
            slot,
            to: to.clone(),
            since,
        };
        let planned = planning.moved(timer, to, effect, Batch::new());
        self.stage(row, planned, CLAIMS_GROUP_MAX, Duration::ZERO)
            .await;
    }

    /// Whether the last slots are for kinds that have fewer calls under way: calls that hang would else be followed
    /// by others of their kinds, and those of another kind never begin.
    fn owes_slots(&self, kind: TimerKind) -> bool {
        let slots = &self.engine.slots;
        let used = slots.used_by(kind);
        let owed = self
            .lanes
            .iter()
            .filter(|lane| lane.is_live() && slots.has_room(lane.kind))
            .filter(|lane| lane.makes_calls() && slots.used_by(lane.kind) < used)
            .count();
        usize::try_from(slots.left()).is_ok_and(|left| left <= owed)
    }

    /// The claim of a timer whose run begins at this time, in milliseconds since 1970.
    pub(super) fn claim_from(&self, timer: &DueTimer, now_ms: u64) -> Move {
        let registration = self.engine.registry.get(timer.kind());
        let deadline_ms = registration.map_or(0, |known| known.deadline_ms_of(timer));
        let until_ms = now_ms
            .saturating_add(deadline_ms)
            .saturating_add(CLAIM_SLACK_MS * u64::from(!planted(Mutant::ClaimWithoutSlack)));
        Move::claim(timer, until_ms)
    }

    /// Claims and counts a timer before its inline handler runs, so that a handler that kills the
    /// process ends in the dead class.
    async fn claim_cautiously(
        &mut self,
        row: DueRow,
        timer: &DueTimer,
        registration: &'a Registration,
    ) {
        if !self.staged.is_empty() {
            self.step_back(row);
            self.flush(false).await;
            return;
        }
        let now_ms = self.engine.runtime().now_ms();
        let to = self.claim_from(timer, now_ms);
        let front = claim_bounds(timer, now_ms);
        let planning = self.planning(&row, timer, registration.policy_of(timer), front);
        if let Some(to) = self.make_move(&row, timer, planning, to, true).await {
            let (key, value, _) = to.row(timer);
            let mut claimed = DueRow::new(key, value);
            claimed.charged = true;
            claimed.claimed_here = true;
            claimed.found_due_ms = Some(timer.found_due_ms());
            claimed.replans = row.replans;
            self.push_front(claimed);
        }
    }

    /// A call was cut again: it waits its back-off, each timer by its own jitter. Calls that were
    /// under way together when the process died would otherwise be claimed together at every start,
    /// and one that kills the process would take the others' attempts with its own.
    async fn back_off_cut(&mut self, row: DueRow, timer: &DueTimer, policy: RetryPolicy) {
        let front = vec![Precondition::NotBefore(timer.key().due_ms)];
        let planning = self.planning(&row, timer, policy, front);
        let planned = planning.failed(timer, &cut_reason(timer), None);
        self.note_failure(timer, &planned);
        self.stage(row, planned, super::lane::PAGE_ROWS, Duration::ZERO)
            .await;
    }

    /// All attempts were cut by a crash: the last ends in the dead class.
    async fn bury_cut(&mut self, row: DueRow, timer: &DueTimer, policy: RetryPolicy) {
        let now_ms = self.engine.runtime().now_ms();
        let attempt = timer.header().attempt;
        let failure = Failure::new(now_ms, &cut_reason(timer));
        let to = Move::dead(timer, DeadReason::Exhausted, 0, attempt, failure);
        let front = vec![Precondition::NotBefore(timer.key().due_ms)];
        let planning = self.planning(&row, timer, policy, front);
        let planned = planning.moved(timer, to, Effect::Dead, Batch::new());
        self.note_failure(timer, &planned);
        self.stage(row, planned, super::lane::PAGE_ROWS, Duration::ZERO)
            .await;
    }
}

/// A claim is never early, and holds only while the clocks of driver and store agree.
pub(super) fn claim_bounds(timer: &DueTimer, now_ms: u64) -> Vec<Precondition> {
    if planted(Mutant::ClaimWithoutBounds) {
        return Vec::new();
    }
    vec![
        Precondition::NotBefore(timer.key().due_ms.max(now_ms.saturating_sub(CLAIM_SKEW_MS))),
        Precondition::NotAfter(now_ms.saturating_add(CLAIM_SKEW_MS)),
    ]
}

/// The result of a run, or `None` as soon as it waits for anything but a read of the store.
async fn unless_slow<T>(
    mut run: Pin<&mut impl Future<Output = T>>,
    overlay: &Overlay,
) -> Option<T> {
    poll_fn(|context| match run.as_mut().poll(context) {
        Poll::Ready(result) => Poll::Ready(Some(result)),
        Poll::Pending if overlay.is_reading() => Poll::Pending,
        Poll::Pending => Poll::Ready(None),
    })
    .await
}

/// What says of a run, behind its number, that it was cut.
const CUT: &str = " was cut: ";

/// What is kept with a timer whose run was cut.
fn cut_reason(timer: &DueTimer) -> String {
    let attempt = timer.header().attempt;
    let mut reason = format!("attempt {attempt}{CUT}its claim ended without an outcome");
    if let Some(failure) = timer.last_error()
        && !is_cut_reason(&failure.error)
    {
        reason.push_str("; the last error before that: ");
        reason.push_str(&failure.error);
    }
    reason
}

/// Whether an error is such a reason, of an earlier run.
fn is_cut_reason(error: &str) -> bool {
    error
        .strip_prefix("attempt ")
        .map(|rest| rest.trim_start_matches(|digit: char| digit.is_ascii_digit()))
        .is_some_and(|rest| rest.starts_with(CUT))
}

#[cfg(test)]
mod tests {
    use super::is_cut_reason;

    #[test]
    fn only_what_the_engine_says_of_a_cut_run_is_taken_for_it() {
        assert!(is_cut_reason(
            "attempt 20 was cut: its claim ended without an outcome"
        ));
        for error in [
            "the wire was cut: short circuit",
            "cut: 3",
            "attempt was cut: ",
        ] {
            assert!(!is_cut_reason(error), "{error}");
        }
    }
}
