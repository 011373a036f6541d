use crate::store::{StoreError, StoreErrorKind};

/// How the next commit of a [`MemoryStore`](super::MemoryStore) fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Nothing is written, no precondition is looked at, and the answer is an error of this kind.
    /// With `Unknown`: the commit whose outcome is not known and that did not happen.
    Before(StoreErrorKind),
    /// Everything is done as without the fault, then the answer is lost: `Unknown`.
    AfterCommit,
}

impl Fault {
    pub(super) fn error_before(kind: StoreErrorKind) -> StoreError {
        StoreError::new(kind, "injected before the commit; nothing was written")
    }

    pub(super) fn error_after() -> StoreError {
        StoreError::unknown("injected after the commit; the answer was lost")
    }
}
