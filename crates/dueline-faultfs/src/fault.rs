//! Which call fails, and how.

use rusqlite::ffi;

/// The calls that can fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Call {
    /// Opening a file.
    Open,
    /// Reading from a file.
    Read,
    /// Writing to a file.
    Write,
    /// Syncing a file.
    Sync,
    /// Changing the length of a file.
    Truncate,
    /// Asking for the length of a file.
    Size,
    /// Locking a file.
    Lock,
    /// Mapping a part of the log's index.
    MapIndex,
    /// Locking a part of the log's index.
    LockIndex,
    /// Deleting a file.
    Delete,
    /// Asking whether a file exists.
    Exists,
}

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// An I/O error; any call can end in it.
    Io,
    /// No room on the disk; only calls that need room can end in it.
    NoRoom,
}

/// The n-th call that can fail of this cause, and perhaps all behind it.
#[derive(Clone, Copy, Debug)]
pub struct Fault {
    /// Which call, from 1, counted from when the fault was set.
    pub call: u64,
    /// What goes wrong.
    pub cause: Cause,
    /// Whether all later calls fail too, until the fault is lifted.
    pub lasting: bool,
    /// The only call that fails; others are not counted.
    pub only: Option<Call>,
}

impl Fault {
    /// What the call would end in; `None` if this fault never hits such a call.
    pub(crate) fn code(self, call: Call) -> Option<i32> {
        if self.only.is_some_and(|only| only != call) {
            return None;
        }
        self.cause.code(call)
    }
}

impl Cause {
    /// What the call ends in; `None` if this cannot happen to it.
    fn code(self, call: Call) -> Option<i32> {
        let code = match (self, call) {
            (Self::NoRoom, Call::Write) => ffi::SQLITE_FULL,
            (Self::NoRoom | Self::Io, Call::MapIndex) => ffi::SQLITE_IOERR_SHMSIZE,
            (Self::NoRoom | Self::Io, Call::Sync) => ffi::SQLITE_IOERR_FSYNC,
            (Self::NoRoom, _) => return None,
            (Self::Io, Call::Open) => ffi::SQLITE_CANTOPEN,
            (Self::Io, Call::Read) => ffi::SQLITE_IOERR_READ,
            (Self::Io, Call::Write) => ffi::SQLITE_IOERR_WRITE,
            (Self::Io, Call::Truncate) => ffi::SQLITE_IOERR_TRUNCATE,
            (Self::Io, Call::Size) => ffi::SQLITE_IOERR_FSTAT,
            (Self::Io, Call::Lock) => ffi::SQLITE_IOERR_LOCK,
            (Self::Io, Call::LockIndex) => ffi::SQLITE_IOERR_SHMLOCK,
            (Self::Io, Call::Delete) => ffi::SQLITE_IOERR_DELETE,
            (Self::Io, Call::Exists) => ffi::SQLITE_IOERR_ACCESS,
        };
        Some(code)
    }
}
