//! One run of an outbox with a sink: outcome by outcome, until one fails.

use std::time::Duration;

use super::dead_rows::{DeadOutcomeReason, SET_ASIDE_BYTES_MAX};
use super::rows::Pending;
use super::run::{Next, Ran};
use super::sink::Fault;
use super::walk::Walk;
use super::{
    Delivery, DeliveryOptions, OUTCOME_BACK_OFF_MS_MAX, RETRY_AFTER_MS_MAX, ROWS_LOOKED_AT_MAX,
    ROWS_PER_RUN_MAX, Sink, SinkError,
};
use crate::future::{catch_panic, or_deadline};
use crate::kinds::row::Row;
use crate::runtime::Runtime;
use crate::store::{StoreError, Value};
use crate::timers::{DueTimer, TimerCtx};

/// After how many runs in a row that were cut, by the end of the process or their deadline, the next make
/// one call each.
const CUTS_TO_BE_CAREFUL: u16 = 2;
/// How many these are.
const CAREFUL_RUNS: u8 = ROWS_PER_RUN_MAX as u8;
/// After how many runs that were cut at its delivery an outcome has failed.
const CUTS_MAX: u16 = 3;

pub(super) struct SinkRun<'a> {
    ctx: &'a TimerCtx<'a>,
    timer: &'a DueTimer,
    runtime: &'a Runtime,
    sink: &'a dyn Sink,
    options: &'a DeliveryOptions,
    ran: Ran,
    started: Duration,
    /// Whether the run makes one call only, as runs before it were cut: what it delivers is committed
    /// before the next call, so that an outcome whose delivery ends the process becomes the first.
    is_careful: bool,
    looked_at: usize,
    calls: usize,
    /// The first time at which one that this run has left out may be tried again.
    earliest_here_ms: u64,
}

/// Whether the run goes on behind a row.
enum Step {
    GoOn,
    /// It ends here, and the row was looked at.
    EndBehind(Next),
    /// It ends here, and the row was not looked at.
    EndBefore(Next),
}

impl<'a> SinkRun<'a> {
    pub(super) fn new(
        (ctx, timer): (&'a TimerCtx<'a>, &'a DueTimer),
        runtime: &'a Runtime,
        sink: &'a dyn Sink,
        options: &'a DeliveryOptions,
        mut ran: Ran,
    ) -> Self {
        if timer.attempt() > CUTS_TO_BE_CAREFUL {
            ran.progress.careful = CAREFUL_RUNS;
        }
        let is_careful = ran.progress.careful > 0;
        ran.progress.careful = ran.progress.careful.saturating_sub(1);
        Self {
            ctx,
            timer,
            runtime,
            sink,
            options,
            ran,
            started: runtime.monotonic(),
            is_careful,
            looked_at: 0,
            calls: 0,
            earliest_here_ms: u64::MAX,
        }
    }

    /// Goes on behind the cursor to the end. From there it wraps once to the beginning if one that this
    /// pass has left out may be tried by now.
    pub(super) async fn run(mut self) -> Result<Ran, StoreError> {
        let start = self.ran.progress.cursor;
        let name = self.ran.summary.outbox.clone();
        let tail = Walk::new(&name, start.saturating_add(1), u64::MAX);
        if self.walk(tail).await? {
            return Ok(self.ran);
        }
        let now_ms = self.runtime.now_ms();
        let mut earliest_ms = self.ran.progress.earliest_ms;
        if start > 0 && earliest_ms <= now_ms {
            self.ran.progress.cursor = 0;
            self.ran.progress.earliest_ms = u64::MAX;
            if self.walk(Walk::new(&name, 1, start)).await? {
                return Ok(self.ran);
            }
            earliest_ms = self.earliest_here_ms;
        }
        // The pass is over: the next begins at the head.
        self.ran.progress.cursor = 0;
        self.ran.progress.earliest_ms = u64::MAX;
        self.ran.next = match earliest_ms {
            u64::MAX if start > 0 && self.ran.is_more_waiting() => Next::Now,
            u64::MAX => Next::Drained,
            due_ms if due_ms <= self.runtime.now_ms() => Next::Now,
            due_ms => Next::At(due_ms),
        };
        if self.ran.summary.delivered > 0 {
            self.ran.progress.attempt = 0;
        }
        Ok(self.ran)
    }

    /// Looks at rows until there are no more; true if the run ended before.
    async fn walk(&mut self, mut walk: Walk) -> Result<bool, StoreError> {
        while let Some((sequence, value)) = walk.next(self.ctx).await? {
            match self.look_at(sequence, value).await {
                Step::GoOn => self.ran.progress.cursor = sequence,
                Step::EndBehind(next) => {
                    self.ran.progress.cursor = sequence;
                    self.ran.next = next;
                    return Ok(true);
                }
                Step::EndBefore(next) => {
                    self.ran.progress.cursor = sequence.saturating_sub(1);
                    self.ran.next = next;
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    async fn look_at(&mut self, sequence: u64, value: Value) -> Step {
        if self.is_over(&value) {
            if self.ran.summary.delivered > 0 {
                self.ran.progress.attempt = 0;
            }
            return Step::EndBefore(Next::Now);
        }
        self.looked_at += 1;
        let now_ms = self.runtime.now_ms();
        let pending = match Pending::decode(&value) {
            Ok(pending) => pending,
            Err(malformed) => {
                self.undecodable(sequence, malformed.0, value, now_ms);
                return Step::GoOn;
            }
        };
        self.ran.note_age(pending.written_at_ms, now_ms);
        if pending.retry_at_ms > self.options.latest_retry_ms(now_ms) {
            // Damage, or the clock was set back: it would wait for ever.
            tracing::warn!(
                partition = %self.ctx.partition(),
                outbox = %self.ran.summary.outbox,
                sequence,
                "an outcome waits for a time that no retry leads to; it is tried now"
            );
        } else if pending.retry_at_ms > now_ms {
            self.leave_until(pending.retry_at_ms);
            return Step::GoOn;
        }
        self.calls += 1;
        let cuts = self.timer.attempt().saturating_sub(1);
        if cuts >= CUTS_MAX && self.calls == 1 {
            let cut = format!("{cuts} runs were cut at its delivery; it was not called again");
            return self.failed(sequence, (pending, cuts), value, &SinkError::failed(cut));
        }
        match self.deliver(sequence, &pending).await {
            Ok(()) => {
                self.ran.delivered(sequence, pending.outcome.bytes());
                Step::GoOn
            }
            Err(error) => self.failed(sequence, (pending, 1), value, &error),
        }
    }

    /// Whether the run has done what one may do.
    fn is_over(&self, value: &Value) -> bool {
        let budget = Duration::from_millis(self.options.run_budget_ms);
        let elapsed = self.runtime.monotonic().saturating_sub(self.started);
        self.ran.leaving() >= self.options.rows_max
            || self.looked_at >= ROWS_LOOKED_AT_MAX
            || (self.calls > 0 && (self.is_careful || elapsed >= budget))
            || !self.ran.has_room_for(value.len())
    }

    /// One that this pass leaves out until then.
    fn leave_until(&mut self, retry_at_ms: u64) {
        let earliest_ms = &mut self.ran.progress.earliest_ms;
        *earliest_ms = retry_at_ms.min(*earliest_ms);
        self.earliest_here_ms = retry_at_ms.min(self.earliest_here_ms);
    }

    fn undecodable(&mut self, sequence: u64, error: &str, value: Value, now_ms: u64) {
        if value.len() > SET_ASIDE_BYTES_MAX {
            tracing::warn!(
                partition = %self.ctx.partition(),
                outbox = %self.ran.summary.outbox,
                sequence,
                "an outcome does not decode and is too large to be set aside; it stays where it is"
            );
            return self.leave_until(now_ms.saturating_add(self.options.retry.max_ms.max(1)));
        }
        let why = (DeadOutcomeReason::Undecodable, error);
        self.ran.set_aside(sequence, why, (0, value), now_ms);
    }

    /// One call, to its end, its deadline or its panic.
    async fn deliver(&self, sequence: u64, pending: &Pending) -> Result<(), SinkError> {
        let delivery = Delivery {
            partition: self.ctx.partition().clone(),
            outbox: self.ran.summary.outbox.clone(),
            sequence,
            id: pending.outcome.id.clone(),
            body: pending.outcome.body.clone(),
            written_at_ms: pending.written_at_ms,
            attempt: pending.attempt.saturating_add(1),
        };
        let deadline = Duration::from_millis(self.options.call_deadline_ms);
        let (sink, delivery) = (self.sink, &delivery);
        let call = catch_panic(|| {
            Box::pin(async move {
                if !sink.wants(delivery) {
                    return Ok(Ok(()));
                }
                Ok(sink.deliver(delivery).await)
            })
        });
        or_deadline(call, || self.runtime.sleep(deadline), deadline)
            .await
            .unwrap_or_else(|error| Err(SinkError::failed(error.text())))
    }

    /// What becomes of an outcome that was tried so many times more, and failed.
    fn failed(
        &mut self,
        sequence: u64,
        (pending, tries): (Pending, u16),
        value: Value,
        error: &SinkError,
    ) -> Step {
        self.ran.summary.failed += 1;
        let now_ms = self.runtime.now_ms();
        let attempt = pending.attempt.saturating_add(tries);
        if error.fault == Fault::Final {
            let why = (DeadOutcomeReason::Refused, error.text());
            self.ran.set_aside(sequence, why, (attempt, value), now_ms);
            return Step::GoOn;
        }
        let asked_ms = error.retry_after_ms.map(|ms| ms.min(RETRY_AFTER_MS_MAX));
        let next = self.back_off(error.fault, asked_ms);
        if error.fault == Fault::Sink {
            return Step::EndBefore(next);
        }
        if self.options.retry.is_exhausted(attempt) {
            let why = (DeadOutcomeReason::Exhausted, error.text());
            self.ran.set_aside(sequence, why, (attempt, value), now_ms);
            return Step::EndBehind(next);
        }
        let occurrence = self.timer.occurrence_id(self.ctx.partition());
        let delay_ms = self.options.retry.delay_ms(attempt, &occurrence);
        let delay_ms = delay_ms.max(asked_ms.unwrap_or(0));
        let retry_at_ms = now_ms.saturating_add(delay_ms);
        self.leave_until(retry_at_ms);
        self.ran.keep(
            sequence,
            Pending {
                attempt,
                retry_at_ms,
                ..pending
            },
        );
        Step::EndBehind(next)
    }

    /// How the outbox goes on after a failure: at once if the sink takes other outcomes, else after a
    /// delay that grows; to a minute if the fault may be the outcome's, as others may wait behind it.
    fn back_off(&mut self, fault: Fault, asked_ms: Option<u64>) -> Next {
        let progress = &mut self.ran.progress;
        let mut delay_ms = 0;
        if self.ran.summary.delivered > 0 {
            progress.attempt = 0;
        } else {
            progress.attempt = progress.attempt.saturating_add(1);
            let occurrence = self.timer.occurrence_id(self.ctx.partition());
            delay_ms = self.options.retry.delay_ms(progress.attempt, &occurrence);
            if fault == Fault::Outcome {
                delay_ms = delay_ms.min(OUTCOME_BACK_OFF_MS_MAX);
            }
        }
        match asked_ms {
            Some(asked_ms) => Next::BackOff {
                delay_ms: delay_ms.max(asked_ms),
                is_asked: true,
            },
            None if delay_ms == 0 => Next::Now,
            None => Next::BackOff {
                delay_ms,
                is_asked: false,
            },
        }
    }
}
