use super::{BACKLOG_LAG_WARN_MS, RETRY_AFTER_MS_MAX, ROWS_PER_RUN_MAX};
use crate::timers::RetryPolicy;

/// How an outbox is delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeliveryOptions {
    /// Most outcomes that one run takes off the outbox, 1 to 80. They leave it in one commit.
    pub rows_max: usize,
    /// How long one call of the sink, or of a relay's store, may take, in milliseconds.
    pub call_deadline_ms: u64,
    /// After how long a run makes no further call, in milliseconds; what is left goes on at once in the
    /// next. The first call of a run is always made.
    pub run_budget_ms: u64,
    /// How far apart the attempts of a failing outcome, or a failing sink, lie, and after how many an
    /// outcome is set aside. A relay takes the delays alone: it sets nothing aside by itself.
    pub retry: RetryPolicy,
    /// How old the oldest outcome may grow before a run warns, in milliseconds.
    pub lag_warn_ms: u64,
}

impl Default for DeliveryOptions {
    /// 64 outcomes a run, 5 s a call, 10 s a run; 1, 2, 4, .. s to 15 min with 20 % of jitter, 20 attempts;
    /// a warning from 60 s on.
    fn default() -> Self {
        Self {
            rows_max: 64,
            call_deadline_ms: 5_000,
            run_budget_ms: 10_000,
            retry: RetryPolicy {
                attempts_max: Some(20),
                initial_ms: 1_000,
                max_ms: 15 * 60 * 1_000,
                jitter_percent: 20,
            },
            lag_warn_ms: BACKLOG_LAG_WARN_MS,
        }
    }
}

impl DeliveryOptions {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Most outcomes of one run, 1 to 80.
    #[must_use]
    pub fn rows_max(mut self, rows_max: usize) -> Self {
        self.rows_max = rows_max;
        self
    }

    /// How long one call may take, in milliseconds, at least 1.
    #[must_use]
    pub fn call_deadline_ms(mut self, call_deadline_ms: u64) -> Self {
        self.call_deadline_ms = call_deadline_ms;
        self
    }

    /// After how long a run makes no further call, in milliseconds.
    #[must_use]
    pub fn run_budget_ms(mut self, run_budget_ms: u64) -> Self {
        self.run_budget_ms = run_budget_ms;
        self
    }

    /// How failures are retried, and after how many attempts an outcome is set aside.
    #[must_use]
    pub fn retry(mut self, retry: RetryPolicy) -> Self {
        self.retry = retry;
        self
    }

    /// The latest time to which a failure that is met now can put anything off, in milliseconds since 1970:
    /// the policy's longest delay with all of its jitter, or the longest pause that a sink is granted.
    pub(super) fn latest_retry_ms(&self, now_ms: u64) -> u64 {
        let delay_ms = self.retry.max_ms.saturating_mul(2);
        now_ms.saturating_add(delay_ms.max(RETRY_AFTER_MS_MAX))
    }

    /// The same with every figure inside its limits.
    pub(super) fn clamped(mut self) -> Self {
        self.rows_max = self.rows_max.clamp(1, ROWS_PER_RUN_MAX);
        self.call_deadline_ms = self.call_deadline_ms.max(1);
        self
    }
}
