//! Dueline's locks, queues and wake-ups under two model checkers, which decide every switch of threads.
//!
//! What runs are the product's own files, as `build.rs` copies them: `std::sync` and `std::thread` are
//! the checker's in the copy, and nothing else differs while no bug is switched on ([`bugs`]).
//!
//! * Pieces run under *loom*, which explores all interleavings of a few threads, but for those that
//!   come to the same, up to a bound on preemptions, and lets atomics show what the memory model allows.
//! * The whole SQLite store and the whole driver run under *shuttle*, which draws schedules: at random, and
//!   by priorities that change at a few points (PCT).
//!
//! A model ends, or its threads wait for ever, which either checker reports; what must hold besides is
//! asserted in it. Each has bugs that it must find: a model that finds none proves nothing.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a model that does not hold panics"
)]

pub mod bugs;
mod folder;
mod model;
mod planted;
mod under_loom;
mod under_shuttle;

/// The types of what is static in the copies.
mod statics {
    pub(crate) use std::sync::atomic::AtomicU64;
}

pub use folder::{FOLDER, new_folder};
pub use model::{Effort, Model, models};

/// Places of bugs that were not found in the sources: the product has changed there.
pub const UNPLACED: &[&str] = include!(concat!(env!("OUT_DIR"), "/unplaced.rs"));
