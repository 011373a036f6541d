use bytes::Bytes;

use crate::future::{BoxFuture, MaybeSendSync};
use crate::store::{Batch, Key, Partition, Value};
use crate::timers::{HandlerError, TimerCtx};

/// Most dependencies of one record.
pub const DEPENDENCIES_MAX: usize = 8_192;
/// Most rows beside the record itself that a release may depend on.
pub const STATE_KEYS_MAX: usize = 8;

/// A row that must be visible before a record is released.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Dependency {
    /// The partition it lies in; the record's own makes it a local one.
    pub partition: Partition,
    /// Its key.
    pub key: Key,
}

/// A record that waits, as it was read together with the rows its release depends on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GatedRecord {
    /// Its key, the reference of the timer.
    pub key: Key,
    /// Its value.
    pub value: Value,
    /// The rows of [`Gate::state_keys`], in that order.
    pub state: Vec<(Key, Option<Value>)>,
}

/// What stands between a record and its release.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gated {
    /// A number that changes whenever the dependencies must be looked at anew.
    pub generation: u64,
    /// What beside its dependencies must be settled before the record is released: any bytes that
    /// change whenever the obligations do. Empty if there are none.
    pub obligations: Bytes,
    /// Whether an obligation is open. While one is, no dependency is looked at.
    pub is_obliged: bool,
    /// The dependencies, at most 8,192, in any order; one that is named twice counts once.
    pub dependencies: Vec<Dependency>,
}

/// What the application says of its records. Every method is asked again at every look.
///
/// `gated` and `is_visible` only read what they are given: what a decision rests on is in the record, in
/// its state rows, or in a dependency, where it is guarded or part of the digest.
pub trait Gate: MaybeSendSync + 'static {
    /// The keys of the record's partition that a release depends on beside the record, at most 8: the
    /// state of the publication, the obligations. They are read with the record and guarded as they were
    /// read.
    fn state_keys(&self, record: &Key) -> Vec<Key> {
        let _ = record;
        Vec::new()
    }

    /// What the record waits for; `None` if it waits for nothing any more, and its timer goes.
    ///
    /// # Errors
    /// Whatever keeps it from saying so: the timer is tried again later.
    fn gated(&self, record: &GatedRecord) -> Result<Option<Gated>, HandlerError>;

    /// Whether a dependency is visible, given its row.
    ///
    /// A dependency in another partition counts as visible once it was seen so, as long as the record,
    /// its generation, its obligations and its dependencies stay the same; a local one is looked at again
    /// in the fire that releases.
    fn is_visible(&self, dependency: &Dependency, row: Option<&Value>) -> bool;

    /// The batch that releases the record; at most 80 preconditions and writes. The record and its state
    /// rows are guarded already, and it commits within ten seconds or not at all.
    fn release<'a>(
        &'a self,
        ctx: &'a TimerCtx<'a>,
        record: &'a GatedRecord,
    ) -> BoxFuture<'a, Result<Batch, HandlerError>>;
}

/// A budget of remote reads that is shared with others: those of one alarm, say.
pub trait RemoteAllowance: MaybeSendSync {
    /// Takes one read; false if none is left, and the walk goes on a second later.
    fn take(&self) -> bool;
}
