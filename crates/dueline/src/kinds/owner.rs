//! Which timer a row waits for.

use bytes::Bytes;

use crate::limits::DUE_MS_MAX;
use crate::store::Batch;
use crate::timers::{DueTimer, Fired, RetryPolicy};

/// What a timer finds when it compares itself with the row it was scheduled for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// The row waits for another timer: this one drains.
    Stale,
    /// The row waits for this timer, and its time has come.
    Due,
    /// The row waits for this timer, but says that its time is later.
    Early,
}

/// Compares a firing timer with its row: `owner_due_ms` is the due of the timer that the row waits for,
/// `until_ms` when the row's time has come; both in milliseconds since 1970.
pub(crate) fn turn(timer: &DueTimer, now_ms: u64, owner_due_ms: u64, until_ms: u64) -> Turn {
    if timer.due_at_ms() != owner_due_ms {
        Turn::Stale
    } else if now_ms < until_ms {
        Turn::Early
    } else {
        Turn::Due
    }
}

/// A timer without effect: what it was scheduled for is gone, or waits for another timer.
pub(crate) fn drained() -> Fired {
    Fired::Done(Batch::new())
}

/// The due that [`later`] gives: this one, but always another than the timer has, and never one that no
/// timer can have. What a row stores as its owner's.
pub(crate) fn later_due_ms(timer: &DueTimer, due_at_ms: u64) -> u64 {
    due_at_ms
        .max(timer.due_at_ms().saturating_add(1))
        .min(DUE_MS_MAX)
}

/// The same timer later, its payload kept, always at another due than the one it had.
pub(crate) fn later(timer: &DueTimer, due_at_ms: u64, batch: Batch) -> Fired {
    Fired::Reschedule {
        due_at_ms: later_due_ms(timer, due_at_ms),
        payload: Bytes::clone(timer.payload()),
        batch,
    }
}

/// For timers on which it hangs whether something is ever set free: failures are retried for ever, after
/// 5 s at first and 60 s at most.
pub(crate) fn retry_for_ever() -> RetryPolicy {
    RetryPolicy {
        max_ms: 60_000,
        ..RetryPolicy::default().for_ever()
    }
}
