//! What every store must do, one case per sentence of the contract.
//!
//! A store's crate lists the suite in one of its integration tests:
//!
//! ```
//! # fn main() {}
//! use std::sync::Arc;
//! use dueline::memory::MemoryStore;
//! use dueline_testkit::conformance::{Setup, Subject};
//!
//! fn memory(setup: Setup) -> Subject {
//!     let store = MemoryStore::new(Arc::new(setup.clock.clone()));
//!     let store = if setup.small { store.with_capacity_limit(1 << 20) } else { store };
//!     Subject::with_wakes(Arc::new(store), setup.clock)
//! }
//!
//! dueline_testkit::conformance_suite!(memory; wakes, capacity);
//! ```
//!
//! The base is what [`NamespaceStore`](dueline::store::NamespaceStore) promises; the features add
//!
//! | feature | for stores that |
//! |---|---|
//! | `wakes` | implement [`WakeStore`](dueline::store::WakeStore) |
//! | `capacity` | can be `Full`, when [`Setup::small`] asks for it |
//! | `reopen` | outlive their process: see [`Subject::reopened_by`] |
//!
//! Each case is also a public function, for a store that wants to run one under conditions of its
//! own.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a conformance case fails by panicking"
)]

pub mod audit;
pub mod capacity;
pub mod group_wakes;
pub mod groups;
pub mod histories;
mod history;
pub mod malformed_wakes;
pub mod partitions;
pub mod pause_wakes;
pub mod preconditions;
pub mod put_wakes;
pub mod reads;
pub mod reopen;
pub mod scans;
pub mod settle_wakes;
pub mod sizes;
mod subject;
mod suite;
pub mod time_bounds;
pub mod wake_pages;
pub mod writes;

pub use subject::{Make, Setup, Stop, Subject};
