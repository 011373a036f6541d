use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::Waker;

/// Runs code that calls a clock or a waker. These are foreign: their panic must neither end a thread
/// that everybody waits for nor take other callers' answers with it.
pub(crate) fn guarded(doing: &'static str, work: impl FnOnce()) {
    if catch_unwind(AssertUnwindSafe(work)).is_err() {
        tracing::error!(doing, "a clock or a waker panicked inside the store");
    }
}

/// Wakes each of these. Call it with no lock held.
pub(crate) fn wake_all(wakers: Vec<Waker>) {
    for waker in wakers {
        guarded("waking", || waker.wake());
    }
}
