//! The wall clock between its milliseconds, and its jumps.

use std::time::Duration;

use dueline::runtime::Clock;

use crate::mutants::{Mutant, planted};

/// A step of the wall clock against the monotonic one that is worth a word, in milliseconds.
/// Smaller ones are the corrections of a time server.
pub(crate) const JUMP_MS: i64 = 100;

const NANOS_PER_MS: i128 = 1_000_000;

/// Two readings of the clocks count as one if no more time has passed between them; also the
/// shortest wait.
const APART_MAX: Duration = Duration::from_micros(20);
/// A wall clock that has shown one millisecond for longer than this stands still, and is asked again after
/// so long: waiting for its next millisecond would be a spin.
const STILL: Duration = Duration::from_millis(3);
const STILL_NAP: Duration = Duration::from_millis(5);
/// How often the clocks are read anew because more has passed.
const READS_MAX: u32 = 8;

/// Learns where within its millisecond the wall clock stands.
///
/// The injected clock shows whole milliseconds; a wait counted from such a reading ends up to one
/// too late. Each reading bounds the distance between the two clocks from both sides; what all
/// readings agree on is far finer than one.
#[derive(Debug, Default)]
pub(crate) struct WallClock {
    /// A lower bound of wall minus monotonic, in nanoseconds, that no reading has contradicted.
    distance: Option<i128>,
    /// What the wall clock showed last, and when it began to.
    shown: Option<(i64, Duration)>,
}

/// One look at both clocks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reading {
    /// The wall clock in milliseconds since 1970, 0 before.
    pub(crate) now_ms: u64,
    pub(crate) monotonic: Duration,
    /// How far the wall clock has jumped since the reading before, in milliseconds; 0 if it has not.
    pub(crate) jumped_ms: i64,
}

impl WallClock {
    pub(crate) fn read(&mut self, clock: &dyn Clock) -> Reading {
        let (before, wall_ms, monotonic) = read_together(clock);
        if self.shown.is_none_or(|(shown_ms, _)| shown_ms != wall_ms) {
            self.shown = Some((wall_ms, monotonic));
        }
        let wall = i128::from(wall_ms) * NANOS_PER_MS;
        // The wall was read between the two; both bounds hold however long that took.
        let low = wall - nanos(monotonic);
        let high = wall + NANOS_PER_MS - nanos(before);
        let jumped_ms = match self.distance {
            Some(known) if known < low - i128::from(JUMP_MS) * NANOS_PER_MS => ms(low - known),
            Some(known) if known > high + i128::from(JUMP_MS) * NANOS_PER_MS => ms(high - known),
            _ => 0,
        };
        self.distance = Some(match self.distance {
            Some(known) => known.max(low).min(high),
            None => low,
        });
        Reading {
            now_ms: u64::try_from(wall_ms).unwrap_or(0),
            monotonic,
            jumped_ms,
        }
    }

    /// How long after this reading the wall clock will show `at_ms`.
    pub(crate) fn until(&self, reading: Reading, at_ms: u64) -> Duration {
        if at_ms <= reading.now_ms {
            return Duration::ZERO;
        }
        let distance = self.distance.unwrap_or(0);
        let left = i128::from(at_ms) * NANOS_PER_MS - distance - nanos(reading.monotonic);
        // Where the estimate says "now" and the clock says "not yet", the clock is right.
        let left = Duration::from_nanos(u64::try_from(left.max(0)).unwrap_or(u64::MAX));
        let still = self.shown.map_or(Duration::ZERO, |(_, since)| {
            reading.monotonic.saturating_sub(since)
        });
        let is_still = still > STILL && !planted(Mutant::StillClockSpins);
        left.max(if is_still { STILL_NAP } else { APART_MAX })
    }
}

/// Reads the wall clock between two readings of the monotonic one, again if time has passed there: a
/// wall time taken before a pause of the thread and a monotonic one taken behind it would hide all
/// that became due during the pause.
fn read_together(clock: &dyn Clock) -> (Duration, i64, Duration) {
    let mut before = clock.monotonic();
    let mut tries = 0;
    loop {
        let wall_ms = clock.wall_ms();
        let monotonic = clock.monotonic();
        let is_together = monotonic.saturating_sub(before) < APART_MAX;
        if is_together || tries == READS_MAX || planted(Mutant::ClocksReadApart) {
            return (before, wall_ms, monotonic);
        }
        before = monotonic;
        tries += 1;
    }
}

fn nanos(time: Duration) -> i128 {
    i128::try_from(time.as_nanos()).unwrap_or(i128::MAX / 4)
}

fn ms(nanos: i128) -> i64 {
    i64::try_from(nanos / NANOS_PER_MS).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    /// A clock whose true wall time is known to the nanosecond.
    #[derive(Debug)]
    struct TrueClock(Mutex<(i128, u64)>);

    impl TrueClock {
        fn pass(&self, nanos: u64) {
            self.0.lock().expect("not poisoned").1 += nanos;
        }

        fn step(&self, nanos: i128) {
            self.0.lock().expect("not poisoned").0 += nanos;
        }

        fn wall_nanos(&self) -> i128 {
            let (offset, monotonic) = *self.0.lock().expect("not poisoned");
            offset + i128::from(monotonic)
        }
    }

    impl Clock for TrueClock {
        fn wall_ms(&self) -> i64 {
            i64::try_from(self.wall_nanos().div_euclid(NANOS_PER_MS)).expect("in range")
        }

        fn monotonic(&self) -> Duration {
            Duration::from_nanos(self.0.lock().expect("not poisoned").1)
        }
    }

    #[test]
    fn readings_narrow_a_wait_to_microseconds_and_never_make_it_end_early() {
        let clock = TrueClock(Mutex::new((5_000_400_000, 0)));
        let mut wall = WallClock::default();
        for _ in 0..200 {
            let reading = wall.read(&clock);
            let due_ms = reading.now_ms + 3;
            let end = clock.wall_nanos() + nanos(wall.until(reading, due_ms));
            assert!(end >= i128::from(due_ms) * NANOS_PER_MS, "ends early");
            clock.pass(1_370_000);
        }
        let reading = wall.read(&clock);
        let due_ms = reading.now_ms + 3;
        let end = clock.wall_nanos() + nanos(wall.until(reading, due_ms));
        assert!(
            end - i128::from(due_ms) * NANOS_PER_MS < 30_000,
            "ends late"
        );
    }

    #[test]
    fn a_wall_clock_that_stands_still_is_not_asked_without_a_pause() {
        let clock = TrueClock(Mutex::new((5_000_000_000, 0)));
        let mut wall = WallClock::default();
        let mut naps = 0;
        for _ in 0..1_000 {
            let reading = wall.read(&clock);
            let nap = wall.until(reading, reading.now_ms + 1);
            naps += 1;
            let nanos = u64::try_from(nap.as_nanos()).expect("short");
            // Time passes, and the wall clock is set back by as much.
            clock.pass(nanos);
            clock.step(-i128::from(nanos));
            if clock.monotonic() > Duration::from_millis(500) {
                break;
            }
        }
        assert!(naps < 300, "{naps} in half a second");
    }

    /// A clock on which half a second passes behind the first reading of the wall, as if the thread
    /// had been put aside there.
    #[derive(Debug)]
    struct PausedClock(TrueClock, Mutex<bool>);

    impl Clock for PausedClock {
        fn wall_ms(&self) -> i64 {
            let wall_ms = self.0.wall_ms();
            if std::mem::take(&mut *self.1.lock().expect("not poisoned")) {
                self.0.pass(500_000_000);
            }
            wall_ms
        }

        fn monotonic(&self) -> Duration {
            self.0.monotonic()
        }
    }

    #[test]
    fn what_passes_between_the_two_clocks_is_read_again() {
        let clock = PausedClock(TrueClock(Mutex::new((5_000_000_000, 0))), Mutex::new(true));
        let reading = WallClock::default().read(&clock);
        assert_eq!(
            reading.now_ms, 5_500,
            "as of the monotonic time: {reading:?}"
        );
    }

    #[test]
    fn steps_of_a_tenth_of_a_second_and_more_are_jumps_and_smaller_ones_are_not() {
        let clock = TrueClock(Mutex::new((10_000_000_000, 0)));
        let mut wall = WallClock::default();
        assert_eq!(wall.read(&clock).jumped_ms, 0);
        for (step_ms, jumped) in [(60, false), (-60, false), (3_000, true), (-3_000, true)] {
            clock.step(step_ms * NANOS_PER_MS);
            let reading = wall.read(&clock);
            let jumped_ms = i128::from(reading.jumped_ms);
            assert_eq!(jumped_ms != 0, jumped, "step of {step_ms} ms: {reading:?}");
            assert!(!jumped || (jumped_ms - step_ms).abs() <= 1, "{reading:?}");
            assert_eq!(wall.read(&clock).jumped_ms, 0, "one step is one jump");
        }
    }
}
