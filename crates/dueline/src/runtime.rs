//! What the engine takes from its host: clocks, sleep, entropy. All of it is injected, so that a
//! test, a simulator or a Durable Object decides what time it is.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::future::{BoxFuture, MaybeSendSync};
use crate::mutants::{Mutant, planted};

/// The wall clock and a monotonic clock.
pub trait Clock: MaybeSendSync + fmt::Debug {
    /// The wall clock in milliseconds since 1970; negative before. May jump either way.
    fn wall_ms(&self) -> i64;

    /// Time since some fixed moment; never goes back. Elapsed time and deadlines are measured by it.
    fn monotonic(&self) -> Duration;
}

/// Waits for a span of monotonic time.
pub trait Sleep: MaybeSendSync + fmt::Debug {
    /// A future that is ready once this much monotonic time has passed, never before.
    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()>;

    /// A future that is ready once the monotonic clock shows this time, never before.
    ///
    /// A clock that can be moved while this is called answers by its own time instead of the
    /// difference: what passes between the reading and the sleep would be slept twice.
    fn sleep_until(&self, until: Duration, clock: &dyn Clock) -> BoxFuture<'static, ()> {
        self.sleep(until.saturating_sub(clock.monotonic()))
    }

    /// Whether sleeps pass in the machine's own time, so that a thread with nothing else to do may
    /// as well wait on its own. False for a clock that a test moves.
    fn is_real_time(&self) -> bool {
        false
    }
}

/// A source of random bits.
pub trait Entropy: MaybeSendSync + fmt::Debug {
    /// Sixty-four random bits.
    fn next_u64(&self) -> u64;
}

/// The injected host of an engine. Cheap to clone; clones share everything.
///
/// All writers of one process must share one runtime: it keeps the last generation drawn.
#[derive(Clone)]
pub struct Runtime {
    clock: Arc<dyn Clock>,
    sleep: Arc<dyn Sleep>,
    entropy: Arc<dyn Entropy>,
    last_generation: Arc<AtomicU64>,
}

impl Runtime {
    /// A runtime of these parts.
    pub fn new(clock: Arc<dyn Clock>, sleep: Arc<dyn Sleep>, entropy: Arc<dyn Entropy>) -> Self {
        Self {
            clock,
            sleep,
            entropy,
            last_generation: Arc::new(AtomicU64::new(0)),
        }
    }

    /// The injected clocks, shared with every clone of the runtime.
    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.clock
    }

    /// The wall clock in milliseconds since 1970; a clock before 1970 shows 0.
    pub fn now_ms(&self) -> u64 {
        u64::try_from(self.clock.wall_ms()).unwrap_or(0)
    }

    /// The monotonic clock: time since a fixed moment, for spans and deadlines.
    pub fn monotonic(&self) -> Duration {
        if planted(Mutant::ElapsedByWallClock) {
            return Duration::from_millis(self.now_ms());
        }
        self.clock.monotonic()
    }

    /// A future that is ready once this much monotonic time has passed.
    pub fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        self.sleep.sleep(duration)
    }

    /// A future that is ready once the monotonic clock shows this time.
    pub fn sleep_until(&self, until: Duration) -> BoxFuture<'static, ()> {
        self.sleep.sleep_until(until, self.clock.as_ref())
    }

    /// Whether sleeps pass in the machine's own time; see [`Sleep::is_real_time`].
    pub fn sleeps_in_real_time(&self) -> bool {
        self.sleep.is_real_time()
    }

    /// Sixty-four bits of the injected entropy.
    pub fn random_u64(&self) -> u64 {
        self.entropy.next_u64()
    }

    /// Draws the generation of a new scheduling:
    /// `max(last + 1, min(now_ms, 2^44 - 1) << 20 | r)` with `r` random below 2^18.
    ///
    /// Within a process generations only grow, so timers of one due keep the order in which they
    /// were scheduled; the random part keeps two processes apart; the room above `r` lets a burst
    /// of one millisecond count up without meeting the next millisecond's.
    pub fn draw_generation(&self) -> u64 {
        const NOW_MS_MAX: u64 = (1 << 44) - 1;
        #[cfg(dueline_mutants)]
        if let Some(bits) = crate::mutants::generation_bits() {
            let last = self.last_generation.fetch_add(1, Ordering::AcqRel);
            return last.wrapping_add(1) & ((1 << bits) - 1);
        }
        let fresh = (self.now_ms().min(NOW_MS_MAX) << 20) | (self.random_u64() >> 46);
        let mut last = self.last_generation.load(Ordering::Relaxed);
        loop {
            let next = fresh.max(last.saturating_add(1));
            match self.last_generation.compare_exchange_weak(
                last,
                next,
                Ordering::AcqRel,
                Ordering::Relaxed,
            ) {
                Ok(_) => return next,
                Err(current) => last = current,
            }
        }
    }
}

impl fmt::Debug for Runtime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Runtime")
            .field("clock", &self.clock)
            .field("sleep", &self.sleep)
            .field("entropy", &self.entropy)
            .finish_non_exhaustive()
    }
}
