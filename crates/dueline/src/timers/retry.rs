use crate::mutants::{Mutant, planted};
use crate::timers::OccurrenceId;

/// How a kind retries: how often, how far apart, how much spread.
///
/// The delay of attempt n is `min(initial_ms * 2^(n-1), max_ms)`, saturating, plus jitter of at most
/// `jitter_percent` from a hash of the occurrence and the attempt: a failing burst spreads, and a
/// test is repeatable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryPolicy {
    /// After how many failed attempts the timer is dead; `None` retries for ever.
    pub attempts_max: Option<u16>,
    /// The delay after the first failure, in milliseconds, at least 1.
    pub initial_ms: u64,
    /// The longest delay before jitter, in milliseconds.
    pub max_ms: u64,
    /// The most that jitter adds to a delay, in percent of it, 0 to 100.
    pub jitter_percent: u8,
}

impl Default for RetryPolicy {
    /// 20 attempts; 5, 10, 20, 40, 80, 160, 320, 600 s; jitter 20 %.
    fn default() -> Self {
        Self {
            attempts_max: Some(20),
            initial_ms: 5_000,
            max_ms: 600_000,
            jitter_percent: 20,
        }
    }
}

impl RetryPolicy {
    /// The same policy without an end.
    #[must_use]
    pub fn for_ever(mut self) -> Self {
        self.attempts_max = None;
        self
    }

    /// Whether a timer with this many failed attempts is dead.
    pub fn is_exhausted(&self, attempts: u16) -> bool {
        !planted(Mutant::NeverExhausted)
            && self.attempts_max.is_some_and(|max| attempts >= max.max(1))
    }

    /// The delay after the n-th failed attempt, before jitter, in milliseconds; at least 1.
    pub fn base_delay_ms(&self, attempt: u16) -> u64 {
        let doublings = u32::from(attempt.saturating_sub(1)).min(63);
        let factor = 1u64 << doublings;
        self.initial_ms
            .max(1)
            .saturating_mul(factor)
            .min(self.max_ms.max(1))
    }

    /// The delay after the n-th failed attempt, with the jitter of this occurrence, in milliseconds.
    pub fn delay_ms(&self, attempt: u16, occurrence: &OccurrenceId) -> u64 {
        let base = self.base_delay_ms(attempt);
        let spread = base / 100 * u64::from(self.jitter_percent.min(100))
            + base % 100 * u64::from(self.jitter_percent.min(100)) / 100;
        if planted(Mutant::NoJitter) {
            return base;
        }
        let jitter = match spread.checked_add(1) {
            Some(choices) => occurrence.hash64(u64::from(attempt)) % choices,
            None => 0,
        };
        base.saturating_add(jitter)
    }
}
