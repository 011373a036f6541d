//! What each built-in kind must do, as cases over any store: a module per kind, a function per sentence.
//!
//! A case is given a function that makes a fresh store and fails by panicking. The tests of this crate
//! run every case on the store in memory and on SQLite; a host with another store may run them too.
//!
//! * [`format`](mod@format): the rows that FORMAT.md shows.
//! * [`plans`]: which plans of the kinds may share a batch.
//! * [`scenario`]: what is asked of a kind, and what is judged at every commit and in the end.
//! * [`storm`]: random histories of a kind, with crashes, faults, lost races and stepped clocks.
//! * [`world`]: a store with faults and counts, a clock that the case moves, and ticks whose calls are run
//!   and settled.
#![cfg_attr(
    target_arch = "wasm32",
    allow(
        clippy::arc_with_non_send_sync,
        reason = "one Arc serves every target; this one has one thread, and its futures are not Send"
    )
)]
#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::missing_panics_doc,
    missing_docs,
    reason = "a case says what it shows by its name, and fails by panicking"
)]

pub mod format;
pub mod lease_sweep;
pub mod outcome_delivery;
pub mod plans;
pub mod publication_recheck;
pub mod quota_rollup;
pub mod reservation_reconcile;
pub mod scenario;
pub mod storm;
pub mod test_kind;
pub mod ticket_expiry;
pub mod world;

pub use world::{Make, World};

/// Expands to a `#[test]` per case of a kind's module, once on each store of `tests/support`:
/// `on_stores!(lease_sweep; a_lease_has_one_holder, ...)`.
#[macro_export]
#[allow(
    clippy::crate_in_macro_def,
    reason = "the stores are those of the crate that runs the cases"
)]
macro_rules! on_stores {
    ($kind:ident; $($case:ident),* $(,)?) => {
        mod memory {
            $(#[test] fn $case() { $crate::$kind::$case(&$crate::world::memory); })*
        }
        mod sqlite {
            $(#[test] fn $case() { $crate::$kind::$case(&super::support::sqlite); })*
        }
    };
}
