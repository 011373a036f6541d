use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use dueline::runtime::Clock;

/// The system's wall clock, and its monotonic clock counted from the making of this value.
#[derive(Clone, Copy, Debug)]
pub struct SystemClock {
    origin: Instant,
}

impl SystemClock {
    /// Clocks whose monotonic half starts at zero now.
    #[allow(
        clippy::disallowed_methods,
        reason = "the one place where the system's clocks enter the injected runtime"
    )]
    pub fn new() -> Self {
        Self {
            origin: Instant::now(),
        }
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SystemClock {
    #[allow(
        clippy::disallowed_methods,
        reason = "the one place where the system's clocks enter the injected runtime"
    )]
    fn wall_ms(&self) -> i64 {
        match SystemTime::now().duration_since(UNIX_EPOCH) {
            Ok(since) => i64::try_from(since.as_millis()).unwrap_or(i64::MAX),
            Err(before) => {
                let behind = before.duration();
                // Rounded down, as after 1970: a part of a millisecond before 1970 is -1.
                let partial = i64::from(behind.subsec_nanos() % 1_000_000 != 0);
                i64::try_from(behind.as_millis()).map_or(i64::MIN, |ms| -ms - partial)
            }
        }
    }

    fn monotonic(&self) -> Duration {
        self.origin.elapsed()
    }
}
