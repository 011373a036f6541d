//! Commits that end in an I/O error when a model wants it.

use std::cell::RefCell;
use std::collections::VecDeque;

use rusqlite::ffi;

/// What becomes of a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Nothing arrives, and the error comes.
    Before,
    /// Everything arrives, and the error comes all the same.
    After,
}

std::thread_local! {
    static NEXT: RefCell<VecDeque<Fault>> = const { RefCell::new(VecDeque::new()) };
}

/// Sets what becomes of the next commits, settling ones included.
pub(crate) fn fail(faults: impl IntoIterator<Item = Fault>) {
    NEXT.with_borrow_mut(|next| {
        next.clear();
        next.extend(faults);
    });
}

/// A commit of the store.
pub(crate) fn commit(arrives: impl FnOnce() -> rusqlite::Result<()>) -> rusqlite::Result<()> {
    match NEXT.with_borrow_mut(VecDeque::pop_front) {
        None => return arrives(),
        Some(Fault::Before) => {}
        Some(Fault::After) => arrives()?,
    }
    let code = ffi::Error::new(ffi::SQLITE_IOERR_FSYNC);
    Err(rusqlite::Error::SqliteFailure(code, None))
}
