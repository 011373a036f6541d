//! Handlers that do what their payload says, and random histories over an arena.
#![allow(dead_code, unreachable_pub, reason = "each test uses its part")]

pub mod driver;
pub mod history;
pub mod normal;
pub mod plan;
pub mod record;
pub mod verb;
pub mod weather;

use std::ops::Range;

/// The seeds to play: these, unless a hunt asks for others by `DUELINE_FIRST_SEED` and
/// `DUELINE_HISTORIES`.
pub fn seeds(usual: Range<u64>) -> Range<u64> {
    let number = |name: &str| std::env::var(name).ok()?.parse::<u64>().ok();
    let first = number("DUELINE_FIRST_SEED").unwrap_or(usual.start);
    let count = number("DUELINE_HISTORIES").unwrap_or(usual.end - usual.start);
    first..first + count
}
