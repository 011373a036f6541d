//! Dueline's store on one SQLite file.
//!
//! [`SqliteStore`] implements the whole store contract, wakes included, on one file that many
//! partitions share and one process writes. All applies that wait at the same time commit in one
//! transaction, so the price of a durable commit is shared by all callers; one caller alone pays it
//! once, without a delay added.
//!
//! ```
//! use std::sync::Arc;
//! use dueline_sqlite::{Options, SqliteStore};
//! # use dueline::runtime::Clock;
//! # #[derive(Debug)] struct WallClock;
//! # impl Clock for WallClock {
//! #     fn wall_ms(&self) -> i64 { 1_764_500_000_000 }
//! #     fn monotonic(&self) -> std::time::Duration { std::time::Duration::ZERO }
//! # }
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("timers.db");
//! let store = SqliteStore::open(&path, Options::new(Arc::new(WallClock)))?;
//! assert_eq!(store.path(), path);
//! store.close();
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Durability
//! [`Durability::PowerLoss`] (the default) syncs the log at every commit: what was acknowledged is
//! there after a power cut, on a disk that does not lie. [`Durability::ProcessCrash`] leaves the
//! sync to checkpoints: a killed process loses nothing, a power cut may lose the last commits.
//!
//! A log that a killed process left, or that a sync has failed on, may show what the disk does not
//! have. It is written again and synced when the file is opened, before anything is read.
//!
//! # Threads
//! The store owns one writer thread and a few reader threads; no call on [`SqliteStore`] blocks the
//! thread that polls it. Threads that may block use the handle of
//! [`for_blocking_threads`](dueline::store::WakeStore::for_blocking_threads): they read on a
//! connection of their own and commit themselves, along with whatever else waits, when nobody else
//! is committing.
//!
//! # When something is wrong
//! | what | what a call ends in |
//! |---|---|
//! | another process holds the write lock longer than the busy timeout | `Unavailable`; works again afterwards |
//! | the disk or the size limit is full | `Full`, nothing written; deletes and moves go on while the reserve lasts |
//! | the file is read-only | [`OpenError::ReadOnly`] |
//! | the file is damaged, or no database | `Corrupt`, [`OpenError::Corrupt`] |
//! | the file was written by a newer binary | [`OpenError::NewerSchema`] |
//! | a commit ends in an I/O error | `Unknown`; nothing is read before the doubt is settled |
//! | that cannot be settled | `Unavailable` until the file has been reopened, which is tried again and again |

mod backend;
mod backup;
mod blocking;
mod checkpoint;
mod commit;
mod counters;
mod error;
#[cfg(test)]
mod faults;
mod foreign;
mod gate;
mod inbox;
pub mod inspect;
mod left_log;
mod lock;
mod oneshot;
mod open;
mod options;
mod read_session;
mod rewrite;
mod send;
mod shared;
mod store;
mod threads;

pub use counters::Counters;
pub use dueline::sql::SizeLimit;
pub use error::{BackupError, OpenError};
pub use options::{Durability, Options, PageSize};
pub use store::SqliteStore;
