//! The host of a native engine: the system's clocks, a precise sleep, the system's entropy.

mod clock;
mod entropy;
mod exact;
mod sleep;

pub use clock::SystemClock;
pub use entropy::OsEntropy;
pub(crate) use exact::wake_exactly;
pub use sleep::PreciseSleep;

use std::io;
use std::sync::Arc;

use dueline::runtime::Runtime;

/// A runtime of the system's clocks, a [`PreciseSleep`] and the system's entropy.
///
/// Make one and clone it: all writers of one process must share it.
///
/// # Errors
/// If the system gives no entropy or no thread.
pub fn system_runtime() -> io::Result<Runtime> {
    let clock = Arc::new(SystemClock::new());
    let sleep = PreciseSleep::start(Arc::clone(&clock))?;
    Ok(Runtime::new(
        clock,
        Arc::new(sleep),
        Arc::new(OsEntropy::new()?),
    ))
}
