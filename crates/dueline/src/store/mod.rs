//! The store contract: a partitioned, ordered key-value space with one write, the guarded [`Batch`].
//!
//! [`NamespaceStore`] is what the engine needs of a store; [`WakeStore`] is what a native driver
//! needs on top. Both are object-safe, so a handler holds an `Arc<dyn NamespaceStore>` and no store
//! type reaches user code. `dueline-testkit` has the conformance suite that any implementation must
//! pass.

mod batch;
mod contract;
mod error;
mod outcome;
mod partition;
mod scan;
mod validate;
mod wake;

pub use batch::{Batch, Key, Precondition, Value, Write};
pub use contract::{Capabilities, Group, NamespaceStore, PartitionStats, ReadStore};
pub use error::{StoreError, StoreErrorKind};
pub use outcome::{BatchOutcome, GroupOutcome};
pub use partition::Partition;
pub use scan::{Cursor, ScanPage, ScanRange};
pub(crate) use validate::BUILT_IN_ROWS;
pub use validate::{validate_batch, validate_group, validate_key, validate_ranges};
pub use wake::{
    AuditPage, LaneWake, PartitionPage, Wake, WakeCursor, WakePage, WakeRepair, WakeSettle,
    WakeStore,
};
