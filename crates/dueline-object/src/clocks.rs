//! Time, sleep and entropy of the platform.

use std::cell::RefCell;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use dueline::BoxFuture;
use dueline::runtime::{Clock, Entropy, Runtime, Sleep};
use js_sys::{Date, Promise};
use wasm_bindgen_futures::JsFuture;

use crate::platform::{Host, get_random_values, performance_now};

/// `Date.now()` and `performance.now()`. In production both stand while code runs and go on behind
/// every wait, so no elapsed time is counted within one turn.
#[derive(Debug)]
pub(crate) struct PlatformClock;

impl Clock for PlatformClock {
    fn wall_ms(&self) -> i64 {
        Date::now() as i64
    }

    fn monotonic(&self) -> Duration {
        Duration::from_micros((performance_now().max(0.0) * 1_000.0) as u64)
    }
}

/// The shortest sleep that the platform's timers can tell from none.
const SHORTEST: Duration = Duration::from_millis(1);

struct PlatformSleep(Host);

// The derived forms here and below would be a part of the module, and nobody asks for them.
impl fmt::Debug for PlatformSleep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PlatformSleep")
    }
}

/// A timer of the platform's, taken back when nobody waits for it any more: it would keep the object in
/// memory.
struct Running {
    host: Host,
    promise: Promise,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.host.end_sleep(&self.promise);
    }
}

impl Sleep for PlatformSleep {
    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        let (host, clock) = (self.0.clone(), PlatformClock);
        let until = clock.monotonic().saturating_add(duration);
        // Less than the platform's timers can tell only ends the turn: whoever waits goes first.
        let is_turn = !duration.is_zero() && duration < SHORTEST;
        Box::pin(async move {
            loop {
                // The platform's timers may end a fraction of a millisecond early.
                let left = until.saturating_sub(clock.monotonic());
                if left.is_zero() {
                    return;
                }
                let whole_ms = if is_turn {
                    0.0
                } else {
                    (left.as_secs_f64() * 1_000.0).ceil()
                };
                let promise = host.sleep(whole_ms);
                let running = Running {
                    host: host.clone(),
                    promise: promise.clone(),
                };
                // The host's promise is never rejected.
                let _ = JsFuture::from(promise).await;
                drop(running);
                if is_turn {
                    return;
                }
            }
        })
    }
}

/// Draws many at a time: each call to the platform costs more than a draw.
#[derive(Default)]
struct PlatformEntropy {
    drawn: RefCell<Vec<u64>>,
}

impl fmt::Debug for PlatformEntropy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PlatformEntropy")
    }
}

/// Numbers of one draw.
const DRAWN: usize = 64;

impl Entropy for PlatformEntropy {
    fn next_u64(&self) -> u64 {
        let mut drawn = self.drawn.borrow_mut();
        loop {
            if let Some(next) = drawn.pop() {
                return next;
            }
            let mut bytes = [0; DRAWN * 8];
            get_random_values(&mut bytes);
            let (numbers, _) = bytes.as_chunks::<8>();
            drawn.extend(numbers.iter().map(|number| u64::from_le_bytes(*number)));
        }
    }
}

/// The platform's runtime for one object.
pub(crate) fn runtime(host: &Host) -> Runtime {
    Runtime::new(
        Arc::new(PlatformClock),
        Arc::new(PlatformSleep(host.clone())),
        Arc::new(PlatformEntropy::default()),
    )
}
