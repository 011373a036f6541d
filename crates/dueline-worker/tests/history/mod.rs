//! Random histories of one simulated object.
#![allow(
    dead_code,
    unused_imports,
    unreachable_pub,
    reason = "each test uses its part"
)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that goes wrong here has found something"
)]

mod checks;
mod quiet;
mod run;
mod script;
mod verb;
mod weather;

use std::ops::Range;

pub use run::{History, Seen};

/// The seeds to play: these, unless a hunt asks for others by `DUELINE_FIRST_SEED` and
/// `DUELINE_HISTORIES`.
pub fn seeds(usual: Range<u64>) -> Range<u64> {
    let number = |name: &str| std::env::var(name).ok()?.parse::<u64>().ok();
    let first = number("DUELINE_FIRST_SEED").unwrap_or(usual.start);
    let count = number("DUELINE_HISTORIES").unwrap_or(usual.end - usual.start);
    first..first + count
}
