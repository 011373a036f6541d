use crate::store::StoreError;

/// How long a window's rows are kept behind its end, in milliseconds.
pub const GRACE_MS: u64 = 30_000;
/// How long behind its end a window can still be charged by a writer that is slow, in milliseconds.
pub(super) const LATE_CHARGE_MS: u64 = 5_000;
/// Shortest window, in milliseconds.
pub const WINDOW_MS_MIN: u64 = 1_000;
/// Longest window, in milliseconds (400 days).
pub const WINDOW_MS_MAX: u64 = 400 * 24 * 60 * 60 * 1_000;

/// A span of time in which counters count from 0: `[start, start + length)`, starts at multiples of the
/// length since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Window {
    /// Its length, in milliseconds.
    pub length_ms: u64,
    /// Its first millisecond since 1970.
    pub start_ms: u64,
}

impl Window {
    /// The window of this length that holds a moment.
    pub(super) fn holding(now_ms: u64, length_ms: u64) -> Self {
        let behind_start_ms = now_ms.checked_rem(length_ms).unwrap_or(0);
        Self {
            length_ms,
            start_ms: now_ms.saturating_sub(behind_start_ms),
        }
    }

    /// The first millisecond behind it.
    pub fn end_ms(&self) -> u64 {
        self.start_ms.saturating_add(self.length_ms)
    }

    /// From when on its rows may be removed: [`GRACE_MS`] behind its end.
    pub fn closes_at_ms(&self) -> u64 {
        self.end_ms().saturating_add(GRACE_MS)
    }

    /// Until when a charge may commit.
    pub(super) fn charged_until_ms(&self) -> u64 {
        self.end_ms().saturating_add(LATE_CHARGE_MS)
    }

    pub(super) fn check_length(length_ms: u64) -> Result<(), StoreError> {
        if (WINDOW_MS_MIN..=WINDOW_MS_MAX).contains(&length_ms) {
            return Ok(());
        }
        Err(StoreError::invalid(format!(
            "a window lasts {WINDOW_MS_MIN} to {WINDOW_MS_MAX} ms, this one {length_ms} ms"
        )))
    }
}
