use std::fmt;
use std::sync::Arc;

use super::QUOTA_ROLLUP;
use super::amounts::Amounts;
use super::coordinator::{AtCoordinator, COMMIT_WITHIN_MS, Closed, Older, SKEW_MS, remove, warn};
use super::job::{Job, Phase};
use super::meter::{BackOff, QuotaMeter, QuotaNote, Unmetered};
use super::own_charges::{after_close, end_of_own, named};
use super::quota::next_due_ms;
use super::rows::{Place, USAGE, Usage, VIEW, View};
use crate::future::BoxFuture;
use crate::kind::TimerKind;
use crate::kinds::owner::{drained, later};
use crate::kinds::row::Row;
use crate::store::{Batch, Partition, Value};
use crate::timers::{
    DetachedHandler, DueTimer, Fired, HandlerError, Registration, RetryPolicy, TimerCtx, Timers,
};

/// How long after the last absorption the rows are removed, in milliseconds: by then no absorption whose
/// outcome was not known can commit any more, though the coordinator's clock was set back meanwhile.
const CLOSING_MS: u64 = 60_000;
/// Longest back-off, in milliseconds, for quotas whose period is longer.
const BACK_OFF_MS_MAX: u64 = 60_000;
const _: () = assert!(CLOSING_MS > 2 * (COMMIT_WITHIN_MS + SKEW_MS));

/// The handler of [`QUOTA_ROLLUP`]: rolls shards up into their totals, and removes what is over.
///
/// It calls out, so it needs timers over a store that reaches the coordinators as well as the shards.
pub struct QuotaRollup {
    timers: Timers,
    meter: Arc<dyn QuotaMeter>,
}

impl fmt::Debug for QuotaRollup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QuotaRollup").finish_non_exhaustive()
    }
}

/// What the call came to.
#[derive(Debug)]
pub struct Called(Step);

#[derive(Debug)]
enum Step {
    /// The reference names no window.
    Nothing,
    /// The timer is the coordinator's own: nothing to call.
    AtCoordinator(Place),
    /// What the shard shows is in the total.
    Absorbed(Place, Job, View),
    /// The window is open, and nothing is charged any more.
    Idle(Place, Job),
    /// The window is over and all of it absorbed.
    Over(Job),
    /// The coordinator's rows are gone.
    Closed {
        place: Place,
        job: Job,
        /// The shard's row as it was when they went.
        usage: Option<Value>,
        has_more: bool,
    },
    /// It did not come about.
    BackedOff(Job),
}

impl QuotaRollup {
    /// A handler over the store of these timers.
    pub fn new(timers: Timers) -> Self {
        Self {
            timers,
            meter: Arc::new(Unmetered),
        }
    }

    /// The same with a meter.
    #[must_use]
    pub fn metered(mut self, meter: Arc<dyn QuotaMeter>) -> Self {
        self.meter = meter;
        self
    }

    /// The kind and how it is run, for a registry: detached, retried for ever.
    pub fn entry(self) -> (TimerKind, Registration) {
        let registration = Registration::detached(self);
        (
            QUOTA_ROLLUP,
            registration.retry(RetryPolicy::default().for_ever()),
        )
    }

    fn note(&self, note: &QuotaNote<'_>) {
        warn(note);
        self.meter.note(note);
    }

    fn note_drained(&self, partition: &Partition, rows: u64) {
        if rows > 0 {
            self.note(&QuotaNote::Drained { partition, rows });
        }
    }

    fn backed_off(&self, ctx: &TimerCtx<'_>, place: &Place, job: Job, reason: BackOff) -> Step {
        self.note(&QuotaNote::BackedOff {
            shard: ctx.partition(),
            window: place.window,
            reason,
        });
        Step::BackedOff(job)
    }

    async fn go_out(&self, ctx: &TimerCtx<'_>, timer: &DueTimer) -> Result<Step, HandlerError> {
        let Some((place, job)) = named(ctx, timer)? else {
            return Ok(Step::Nothing);
        };
        if job.coordinator == *ctx.partition() {
            return Ok(Step::AtCoordinator(place));
        }
        let usage = ctx.get(&place.key(USAGE, &[])).await?;
        let is_over = ctx.now_ms() >= place.window.closes_at_ms();
        match (&usage, job.phase) {
            (_, Phase::Closing) | (None, Phase::Rolling) if is_over => {
                self.close(ctx, place, job, usage).await
            }
            (Some(value), _) => self.absorb(ctx, place, job, value, is_over).await,
            (None, _) => Ok(Step::Idle(place, job)),
        }
    }

    async fn absorb(
        &self,
        ctx: &TimerCtx<'_>,
        place: Place,
        job: Job,
        usage: &Value,
        is_over: bool,
    ) -> Result<Step, HandlerError> {
        let absorbed = match Usage::decode(usage) {
            Err(_) => Err(BackOff::Corrupt),
            Ok(Usage(shown)) => self.absorb_shown(ctx, &place, &job, shown).await,
        };
        Ok(match absorbed {
            // What does not decode goes with its window.
            Err(BackOff::Corrupt) if is_over => {
                self.backed_off(ctx, &place, job.clone(), BackOff::Corrupt);
                Step::Over(job)
            }
            Err(reason) => self.backed_off(ctx, &place, job, reason),
            Ok(_) if is_over => Step::Over(job),
            Ok(view) => Step::Absorbed(place, job, view),
        })
    }

    async fn absorb_shown(
        &self,
        ctx: &TimerCtx<'_>,
        place: &Place,
        job: &Job,
        shown: Amounts,
    ) -> Result<View, BackOff> {
        let absorbed = self.at_coordinator(ctx, place, job).absorb(shown).await?;
        if let Some(before) = absorbed.rebaselined_from {
            self.note(&QuotaNote::Rebaselined {
                shard: ctx.partition(),
                window: place.window,
                absorbed: before,
                shown,
            });
        }
        Ok(View {
            observed_at_ms: ctx.now_ms(),
            total: absorbed.total,
            pushed: shown,
        })
    }

    async fn close(
        &self,
        ctx: &TimerCtx<'_>,
        place: Place,
        job: Job,
        usage: Option<Value>,
    ) -> Result<Step, HandlerError> {
        let shown = usage.as_ref().and_then(|value| Usage::decode(value).ok());
        let shown = shown.map(|usage| usage.0);
        let closed = self.at_coordinator(ctx, &place, &job).close(shown).await;
        Ok(match (closed, usage) {
            (Err(reason), _) => self.backed_off(ctx, &place, job, reason),
            (Ok(Closed::Gone { drained, has_more }), usage) => {
                self.note_drained(&job.coordinator, drained);
                Step::Closed {
                    place,
                    job,
                    usage,
                    has_more,
                }
            }
            (Ok(Closed::Behind), Some(value)) => self.absorb(ctx, place, job, &value, true).await?,
            (Ok(Closed::Behind), None) | (Ok(Closed::Early), _) => Step::BackedOff(job),
        })
    }

    fn at_coordinator<'a>(
        &'a self,
        ctx: &'a TimerCtx<'_>,
        place: &'a Place,
        job: &'a Job,
    ) -> AtCoordinator<'a> {
        AtCoordinator {
            store: &**self.timers.store(),
            runtime: self.timers.runtime(),
            coordinator: &job.coordinator,
            place,
            shard: ctx.partition(),
        }
    }

    async fn plan(
        &self,
        ctx: &TimerCtx<'_>,
        timer: &DueTimer,
        step: &Step,
    ) -> Result<Fired, HandlerError> {
        let now_ms = ctx.now_ms();
        match step {
            Step::Nothing => Ok(drained()),
            Step::BackedOff(job) => {
                let due_at_ms = now_ms.saturating_add(job.period_ms.min(BACK_OFF_MS_MAX));
                Ok(later(timer, due_at_ms, Batch::new()))
            }
            Step::Over(job) => Ok(Fired::Reschedule {
                due_at_ms: now_ms.saturating_add(CLOSING_MS),
                payload: job.in_phase(Phase::Closing),
                batch: Batch::new(),
            }),
            Step::Idle(place, job) => Ok(roll_on(ctx, timer, place, job, Batch::new())),
            Step::Absorbed(place, job, view) => {
                // Only the presence of the hot row is guarded: a charge never makes this lose.
                let batch = Batch::new()
                    .require_present(place.key(USAGE, &[]))
                    .put(place.key(VIEW, &[]), view.encode());
                Ok(roll_on(ctx, timer, place, job, batch))
            }
            Step::Closed {
                place,
                job,
                usage,
                has_more,
            } => {
                self.plan_end(ctx, timer, (place, job), usage.clone(), *has_more)
                    .await
            }
            Step::AtCoordinator(place) => {
                let (fired, rows) = end_of_own(ctx, timer, place).await?;
                self.note_drained(ctx.partition(), rows);
                Ok(fired)
            }
        }
    }

    /// The shard's rows go, and a page of what older windows left; the timer with the last page.
    async fn plan_end(
        &self,
        ctx: &TimerCtx<'_>,
        timer: &DueTimer,
        (place, job): (&Place, &Job),
        usage: Option<Value>,
        has_more: bool,
    ) -> Result<Fired, HandlerError> {
        let (usage_key, view_key) = (place.key(USAGE, &[]), place.key(VIEW, &[]));
        let older = Older::read(ctx.reads(), ctx.partition(), place, [USAGE, VIEW]).await?;
        self.note_drained(ctx.partition(), older.rows());
        let mut batch = older.remove(after_close(place));
        if let Some(view) = ctx.get(&view_key).await? {
            batch = remove(batch, (view_key, view));
        }
        batch = match usage {
            Some(value) => remove(batch, (usage_key, value)),
            None => batch.require_absent(usage_key),
        };
        Ok(if has_more || older.has_more {
            Fired::Reschedule {
                due_at_ms: ctx.now_ms().max(timer.due_at_ms().saturating_add(1)),
                payload: job.in_phase(Phase::Closing),
                batch,
            }
        } else {
            Fired::Done(batch)
        })
    }
}

/// The next roll-up of an open window.
fn roll_on(ctx: &TimerCtx<'_>, timer: &DueTimer, place: &Place, job: &Job, batch: Batch) -> Fired {
    let due_at_ms = next_due_ms(place, ctx.partition(), ctx.now_ms(), job.period_ms);
    Fired::Reschedule {
        due_at_ms: due_at_ms.max(timer.due_at_ms().saturating_add(1)),
        payload: job.in_phase(Phase::Rolling),
        batch,
    }
}

impl DetachedHandler for QuotaRollup {
    type Output = Called;

    fn call<'a>(
        &'a self,
        ctx: &'a TimerCtx<'a>,
        timer: &'a DueTimer,
    ) -> BoxFuture<'a, Result<Called, HandlerError>> {
        Box::pin(async move { Ok(Called(self.go_out(ctx, timer).await?)) })
    }

    fn settle<'a>(
        &'a self,
        ctx: &'a TimerCtx<'a>,
        timer: &'a DueTimer,
        called: &'a Called,
    ) -> BoxFuture<'a, Result<Fired, HandlerError>> {
        Box::pin(self.plan(ctx, timer, &called.0))
    }
}
