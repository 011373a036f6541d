//! What the engine does with due timers, over the store in memory and a clock that stands still.
//!
//! Goal: every promise about firing, failing, budgets, fairness and detached calls, one test each.
//! Method: rows are put as a writer puts them, ticks are run by hand, faults and races are injected
//! at the commit they concern, and what is stored afterwards is compared, not what was logged.
#![cfg(test)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a helper of a test fails the test"
)]

#[path = "../world/mod.rs"]
mod world;

mod batches;
mod budgets;
mod cautious;
mod clocks;
mod deadlines;
mod detached;
mod detached_races;
mod failures;
mod fairness;
mod firing;
mod full_store;
mod interleavings;
mod late_calls;
mod malformed;
mod moves;
mod panics;
mod same_millisecond;
mod short_pages;
mod ticks;
mod uncharged;
mod undecodable;
