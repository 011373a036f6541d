//! Settling a detached call: planning with what it brought back, and committing under its claim.

use std::sync::Arc;
use std::time::Duration;

use super::call::{CallOutput, Claim, FinishedCall};
use super::engine::Engine;
use super::make_move::backend_now_ms;
use super::moves::{Move, NameGuard, name_key};
use super::outcome::refusal;
use super::overlay::Overlay;
use super::planned::{Effect, Planned, Planning};
use super::registry::{Handler, INLINE_DEADLINE_MS, Registration};
use super::{Counts, DueTimer, Fired, HandlerError, TimerCtx, TimerError};
use crate::future::{catch_panic, or_deadline};
use crate::mutants::{Mutant, planted};
use crate::store::{
    Batch, BatchOutcome, Group, GroupOutcome, StoreError, StoreErrorKind, WakeSettle,
};

/// How often `settle` plans again because a guard of its batch was lost.
const REPLANS_MAX: u32 = 3;
/// How often a move looks for a free place.
const PLACES_MAX: u32 = 8;
/// First pause before a batch is offered to the store again, doubling to [`PAUSE_MAX`].
const PAUSE_FIRST: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(5);

impl Engine {
    /// Settles a call that has ended: plans with its output and commits under the claimed row. The
    /// call itself is never repeated here; while the store does not answer, the same batch is
    /// offered again until the claim ends.
    pub async fn settle(&self, finished: FinishedCall) -> Counts {
        let FinishedCall {
            call,
            result,
            is_excused,
        } = finished;
        let run = SettleRun {
            engine: self,
            claim: &call.claim,
            registration: &call.registration,
            overlay: Overlay::new(Arc::clone(&self.tick_store), call.claim.partition().clone()),
            is_excused,
            counts: Counts::default(),
        };
        Box::pin(run.run(result)).await
    }

    /// Gives a claim back, its attempt uncounted, so that the timer is due at once: for a call that
    /// a clean stop has cut. Returns whether the timer was still as claimed.
    ///
    /// # Errors
    /// What the store says; the timer then comes back when the claim ends.
    pub async fn release(&self, claim: &Claim) -> Result<bool, TimerError> {
        let timer = &claim.timer;
        let planning = Planning {
            partition: &claim.partition,
            runtime: self.runtime(),
            policy: super::RetryPolicy::default(),
            codec_version: 0,
            name: NameGuard::expected(timer),
            front: Vec::new(),
            floor_ms: 0,
        };
        let mut to = Move::release(timer, self.runtime().now_ms());
        for _ in 0..PLACES_MAX {
            let planned = planning.moved(timer, to.clone(), Effect::Failed, Batch::new());
            match self
                .tick_store
                .apply(&claim.partition, planned.batch)
                .await?
            {
                BatchOutcome::Committed => return Ok(true),
                BatchOutcome::PreconditionFailed { index, .. } if index >= planned.own_guards => {
                    to = to.one_later();
                }
                _ => return Ok(false),
            }
        }
        Err(TimerError::Contended)
    }
}

struct SettleRun<'a> {
    engine: &'a Engine,
    claim: &'a Claim,
    registration: &'a Registration,
    /// The reads of the handler; nothing is staged.
    overlay: Overlay,
    /// Whether the failure of the call is not the handler's.
    is_excused: bool,
    counts: Counts,
}

/// What a batch under a claim came to.
enum Settled {
    Done,
    /// A guard of the handler was lost, or one of its time bounds.
    PlanAgain,
    /// The engine's place was taken, or the name row is not as expected.
    MoveAgain(Box<Planned>),
    Full,
    Refused(StoreError),
}

impl<'a> SettleRun<'a> {
    async fn run(mut self, mut result: Result<CallOutput, HandlerError>) -> Counts {
        let mut planning = self.planning();
        let mut replans = 0;
        loop {
            let planned = match &result {
                Ok(output) => match self.plan(&planning, output).await {
                    Some(planned) => planned,
                    None => break,
                },
                Err(error) if self.is_excused => planning.set_back(self.timer(), error.text()),
                Err(error) => planning.error(self.timer(), error),
            };
            let failed = match self.settle(&mut planning, planned).await {
                Settled::Done => break,
                Settled::PlanAgain if replans < REPLANS_MAX => {
                    replans += 1;
                    continue;
                }
                Settled::PlanAgain | Settled::MoveAgain(_) => {
                    format!(
                        "a guard of the handler's batch was lost {} times",
                        replans + 1
                    )
                }
                Settled::Refused(error) => refusal(&error),
                Settled::Full => {
                    let planned = planning.set_back(self.timer(), "the store is full");
                    if !matches!(self.settle(&mut planning, planned).await, Settled::Done) {
                        self.counts.held += 1;
                    }
                    break;
                }
            };
            if result.is_err() {
                // Not even the failure could be recorded: the claim's end brings the timer back.
                self.counts.held += 1;
                break;
            }
            result = Err(HandlerError::new(failed));
            self.is_excused = false;
        }
        self.counts
    }

    fn timer(&self) -> &'a DueTimer {
        &self.claim.timer
    }

    fn planning(&self) -> Planning<'a> {
        Planning {
            partition: &self.claim.partition,
            runtime: self.engine.runtime(),
            policy: self.registration.policy_of(self.timer()),
            codec_version: self.registration.codec_version,
            name: NameGuard::expected(self.timer()),
            front: Vec::new(),
            floor_ms: self.engine.runtime().now_ms(),
        }
    }

    /// Lets the handler decide what becomes of the timer. While the store fails its reads it is
    /// asked again, until the claim ends: `None`.
    async fn plan(&mut self, planning: &Planning<'_>, output: &CallOutput) -> Option<Planned> {
        let timer = self.timer();
        let mut pause = PAUSE_FIRST;
        loop {
            let said = self.ask(output).await;
            let store_failed = self.overlay.take_fault();
            return Some(match said {
                Ok(fired) => planning
                    .fired(timer, fired)
                    .unwrap_or_else(|refused| planning.failed(timer, &refused, None)),
                Err(error) if store_failed && !error.is_undecodable() => {
                    tracing::warn!(partition = %self.claim.partition, %error, "a settle is planned again");
                    if self.engine.runtime().now_ms() >= self.claim.ends_at_ms() {
                        self.counts.held += 1;
                        return None;
                    }
                    self.engine.runtime().sleep(pause).await;
                    pause = (pause * 2).min(PAUSE_MAX);
                    continue;
                }
                Err(error) => planning.error(timer, &error),
            });
        }
    }

    async fn ask(&self, output: &CallOutput) -> Result<Fired, HandlerError> {
        let Handler::Detached(handler) = &self.registration.handler else {
            return Err(HandlerError::new("an inline handler has no call to settle"));
        };
        let runtime = self.engine.runtime();
        let ctx = TimerCtx::new(&self.overlay, &self.claim.partition, runtime.now_ms());
        let deadline = Duration::from_millis(INLINE_DEADLINE_MS);
        let settle = catch_panic(|| handler.settle(&ctx, self.timer(), output));
        or_deadline(settle, || runtime.sleep(deadline), deadline).await
    }

    /// Commits a planned batch; one of the engine's own moves looks for a place until it has one.
    async fn settle(&mut self, planning: &mut Planning<'a>, mut planned: Planned) -> Settled {
        for _ in 0..PLACES_MAX {
            match self.commit(planning, planned).await {
                Settled::MoveAgain(again) => planned = *again,
                settled => return settled,
            }
        }
        Settled::Refused(StoreError::unavailable(
            "a move found its place taken eight times",
        ))
    }

    async fn commit(&mut self, planning: &mut Planning<'a>, planned: Planned) -> Settled {
        let done = self.offer(&planned.batch).await;
        let Some(outcome) = done else {
            return Settled::Done;
        };
        match outcome {
            Ok(BatchOutcome::Committed) => {
                self.count(&planned.effect);
                Settled::Done
            }
            Ok(BatchOutcome::PreconditionFailed { index, .. }) if index < planned.own_guards => {
                let by_name = matches!(planning.name, NameGuard::Row { .. })
                    && index + 1 == planned.own_guards;
                if by_name && self.reread_name(planning).await {
                    return Settled::PlanAgain;
                }
                self.counts.raced += 1;
                Settled::Done
            }
            Ok(outcome) => match planned.to {
                Some(to) if backend_now_ms(&outcome).is_none() => {
                    let moved =
                        planning.moved(self.timer(), to.one_later(), planned.effect, Batch::new());
                    Settled::MoveAgain(Box::new(moved))
                }
                _ => Settled::PlanAgain,
            },
            Err(error) if error.kind() == StoreErrorKind::Full => Settled::Full,
            Err(error) => Settled::Refused(error),
        }
    }

    /// Guards the name row as it is now; false if it was as expected, so that the loss was real.
    async fn reread_name(&self, planning: &mut Planning<'a>) -> bool {
        let key = name_key(self.timer());
        let Ok(found) = self
            .engine
            .tick_store
            .get(&self.claim.partition, &key)
            .await
        else {
            return false;
        };
        let guard = NameGuard::found(self.timer(), found);
        let changed = match (&planning.name, &guard) {
            (NameGuard::Row { value: old, .. }, NameGuard::Row { value: new, .. }) => old != new,
            _ => true,
        };
        planning.name = guard;
        changed
    }

    /// Offers a batch until the store has answered: `None` if the claim ended first or the row
    /// shows that the timer is settled.
    async fn offer(&mut self, batch: &Batch) -> Option<Result<BatchOutcome, StoreError>> {
        let mut pause = PAUSE_FIRST;
        let mut in_doubt = false;
        loop {
            let error = match self.apply(batch.clone()).await {
                Ok(outcome) => return Some(Ok(outcome)),
                Err(error) => error,
            };
            match error.kind() {
                StoreErrorKind::Unknown if planted(Mutant::DoubtfulSettleCallsAgain) => {
                    drop(self.engine.release(self.claim).await);
                    return None;
                }
                StoreErrorKind::Unknown => in_doubt = true,
                StoreErrorKind::Unavailable | StoreErrorKind::Corrupt => {}
                _ => return Some(Err(error)),
            }
            tracing::warn!(partition = %self.claim.partition, %error, "a settle is offered again");
            loop {
                if self.engine.runtime().now_ms() >= self.claim.ends_at_ms() {
                    self.counts.held += 1;
                    return None;
                }
                self.engine.runtime().sleep(pause).await;
                pause = (pause * 2).min(PAUSE_MAX);
                match self.is_as_claimed().await {
                    Ok(true) => break,
                    Ok(false) if in_doubt => {
                        self.counts.unknown_outcome += 1;
                        return None;
                    }
                    Ok(false) => {
                        self.counts.raced += 1;
                        return None;
                    }
                    Err(_) => {}
                }
            }
        }
    }

    async fn is_as_claimed(&self) -> Result<bool, StoreError> {
        let key = self.timer().key().encode();
        Ok(self
            .engine
            .tick_store
            .get(&self.claim.partition, &key)
            .await?
            .is_some())
    }

    /// Applies one batch and takes the wake at the claim's end back in the same commit.
    async fn apply(&self, batch: Batch) -> Result<BatchOutcome, StoreError> {
        let store = &self.engine.tick_store;
        let settles = if store.capabilities().wakes {
            let served_ms = vec![self.claim.ends_at_ms()];
            vec![WakeSettle {
                kind: self.timer().kind(),
                served_ms,
            }]
        } else {
            Vec::new()
        };
        let group = Group {
            batches: vec![batch],
            settles,
        };
        let GroupOutcome {
            outcomes,
            stopped_by,
            ..
        } = store.apply_all(&self.claim.partition, group).await;
        match (outcomes.into_iter().next(), stopped_by) {
            (Some(outcome), _) => Ok(outcome),
            (None, Some(error)) => Err(error),
            (None, None) => Err(StoreError::corrupt("the store left a batch out")),
        }
    }

    fn count(&mut self, effect: &Effect) {
        match effect {
            Effect::Fired => self.counts.fired += 1,
            Effect::Rescheduled => self.counts.rescheduled += 1,
            Effect::Failed => self.counts.failed += 1,
            Effect::Dead => self.counts.dead += 1,
            Effect::Claimed { .. } | Effect::Quarantined => {}
        }
    }
}
