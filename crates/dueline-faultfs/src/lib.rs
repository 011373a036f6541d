//! Power loss and failing calls under the SQLite store.
//!
//! A VFS in front of SQLite's own notes every write, sync, truncation and change of a name in the
//! folders it watches, and makes the n-th call of them fail. From the notes of one run come the
//! images that a power cut at any moment may leave ([`disk`]); each is opened by a store that knows
//! nothing of this, checked, and run to its end.
//!
//! * [`power_loss`]: a power cut at every sync and every tenth write of a script of 200 commits.
//! * [`errors`]: the n-th call fails, for every n until nothing is left to fail.
#![deny(unsafe_code)]

mod check;
pub mod disk;
pub mod errors;
pub mod fault;
pub mod folder;
mod history;
pub mod power_loss;
mod random;
mod recorder;
pub mod script;
mod vfs;
mod world;

pub use random::Random;

/// What went wrong, in words.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;
