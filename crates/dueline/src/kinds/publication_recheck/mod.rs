//! A record released only when all its dependencies are visible.

mod cursor;
mod gate;
mod handler;
mod rechecks;
mod walk;

pub use gate::{
    DEPENDENCIES_MAX, Dependency, Gate, Gated, GatedRecord, RemoteAllowance, STATE_KEYS_MAX,
};
pub use handler::{PublicationRecheck, RECHECK_MS};
pub use rechecks::Rechecks;
pub use walk::{LOCAL_PAGE_KEYS, REMOTE_PAGE_KEYS, REMOTE_READS_MAX};

use crate::kind::TimerKind;

/// The kind of the timer that looks at a record's dependencies.
pub const PUBLICATION_RECHECK: TimerKind = TimerKind(12);
