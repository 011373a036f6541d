use std::time::{Duration, SystemTime, UNIX_EPOCH};

use dueline::runtime::Clock;

/// The clock of the machine, for a command that looks at it once.
#[derive(Clone, Copy, Debug)]
pub(super) struct WallClock;

impl WallClock {
    /// Milliseconds since 1970; 0 before.
    #[allow(
        clippy::disallowed_methods,
        reason = "doctor judges the machine's own clock"
    )]
    pub(super) fn now_ms() -> u64 {
        let since = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    }
}

impl Clock for WallClock {
    fn wall_ms(&self) -> i64 {
        i64::try_from(Self::now_ms()).unwrap_or(i64::MAX)
    }

    /// A repair measures no time.
    fn monotonic(&self) -> Duration {
        Duration::ZERO
    }
}
