//! The verbs of scheduling, over the store in memory and a clock that stands still.
//!
//! Goal: every verb does what its documentation says in every state of a timer, whatever another
//! writer does in between, and never leaves a name that points at nothing or a timer that no name
//! points at. Method: states are set by hand as rows, a race is run inside the store just before
//! the commit it races, and the whole partition is checked after each step.
#![cfg(test)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    unreachable_pub,
    reason = "a helper of a test fails the test"
)]

mod bulk;
mod cancel;
mod change;
mod contention;
mod dead;
mod fixture;
mod futures;
mod kind_names;
mod lanes;
mod limits;
mod listing;
mod model;
mod plan;
mod policy;
