//! Dueline's store on one SQLite file.
//!
//! [`SqliteStore`] implements the whole store contract, wakes included, on one file that many
//! partitions share and one process writes. All applies that wait at the same time commit in one
//! transaction, so the price of a durable commit is shared by all callers; one caller alone pays it
//! once, without a delay added.
//!
//! ```
//! use std::sync::Arc;
//! use dueline::store::{Batch, BatchOutcome, NamespaceStore, Partition, ReadStore};
//! use dueline_sqlite::{Options, SqliteStore};
//! use dueline_testkit::block_on;
//! use dueline_tokio::SystemClock;
//!
//! let folder = tempfile::tempdir()?;
//! let options = Options::new(Arc::new(SystemClock::new()));
//! let store = SqliteStore::open(folder.path().join("orders.db"), options)?;
//!
//! let tenant = Partition::new("tenant-7")?;
//! let order = Batch::new().require_absent("order-42").put("order-42", "open");
//! assert_eq!(block_on(store.apply(&tenant, order))?, BatchOutcome::Committed);
//! assert_eq!(block_on(store.get(&tenant, &"order-42".into()))?, Some("open".into()));
//! store.close();
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The clock decides what is due and whether a batch came in time. A program that fires timers gives
//! the store and the engine one and the same, that of `dueline_tokio::system_runtime`; `dueline-tokio`
//! shows it.
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
//! # What it costs
//! A commit is one transaction and, under [`Durability::PowerLoss`], one sync of the log, shared by all
//! applies that wait when it begins. A point read is one look-up in a B-tree ordered by partition and
//! key; a partition has no cost of its own. [`SqliteStore::counters`] counts transactions, reads and
//! checkpoints. Memory does not grow with what is stored.
//!
//! # Limits
//! One process, and in it one [`SqliteStore`], has the file open at a time: a lock file beside it sees to
//! that ([`OpenError::Locked`]). Writes are one after the other, by SQLite's nature. The file belongs on a
//! local disk. Sizes of keys, values and batches are the core's ([`dueline::limits`]); the file may be
//! capped with [`Options::size_limit`].
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
//!
//! # How to
//! * **Back up** while it is in use: [`SqliteStore::backup_to`]. Copying the file alone leaves out what is
//!   still in the log (`-wal`).
//! * **Choose** durability, page size, size limit, busy timeout, readers: [`Options`].
//! * **Look into a file** that nobody has open: [`inspect`], or `dueline doctor`.

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
mod mutants;
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
