use std::io::ErrorKind;
use std::path::PathBuf;

use dueline::store::{StoreError, StoreErrorKind};
use rusqlite::ErrorCode;

/// Why a store could not be opened. Each says which file it is about and what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// Another process, or another store of this one, has the database open.
    #[error("{} is in use: another process holds {}; stop it first", path.display(), lock.display())]
    Locked {
        /// The database.
        path: PathBuf,
        /// The lock file beside it.
        lock: PathBuf,
    },
    /// The file or its folder cannot be opened or created.
    #[error("cannot open {}; check that its folder exists and may be written", path.display())]
    CannotOpen {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The file or its folder may only be read.
    #[error("{} is read-only; make the file and its folder writable", path.display())]
    ReadOnly {
        /// The database.
        path: PathBuf,
    },
    /// Another process holds the write lock of the database.
    #[error("{} is busy: another process holds its write lock; stop it or wait for it", path.display())]
    Busy {
        /// The database.
        path: PathBuf,
        /// What SQLite said.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// There is no room to open the database.
    #[error("no room to open {}; free some space on its disk", path.display())]
    Full {
        /// The database.
        path: PathBuf,
        /// What SQLite said.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The file is damaged or no SQLite database.
    #[error("{} is damaged or no SQLite database; restore it from a backup", path.display())]
    Corrupt {
        /// The database.
        path: PathBuf,
        /// What SQLite said.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The file is a database of some other program.
    #[error("{} is a database of another program; choose another path", path.display())]
    Foreign {
        /// The database.
        path: PathBuf,
    },
    /// The log of the database is there, and the database is gone or empty.
    #[error(
        "{} is missing or empty, and its log {} is there: put the database back beside it, or move \
         the log away to start anew",
        path.display(),
        log.display()
    )]
    LogWithoutDatabase {
        /// The database.
        path: PathBuf,
        /// The log beside it.
        log: PathBuf,
    },
    /// The file system allows no write-ahead log, without which reads and writes block each other.
    #[error("the file system of {} allows no write-ahead log; use a local disk", path.display())]
    NoLog {
        /// The database.
        path: PathBuf,
    },
    /// The database was written by a newer binary. It has not been touched.
    #[error("cannot open {}: {reason}", path.display())]
    NewerSchema {
        /// The database.
        path: PathBuf,
        /// Which schema it has and which this binary knows.
        reason: String,
    },
    /// The system gave the store no thread of its own.
    #[error("no thread for {}; the system's limit is reached", path.display())]
    Threads {
        /// The database.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// SQLite refused for another reason.
    #[error("cannot use {}", path.display())]
    Database {
        /// The database.
        path: PathBuf,
        /// What SQLite said.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

impl OpenError {
    pub(crate) fn cannot_open(
        path: &std::path::Path,
        source: impl std::error::Error + Send + Sync + 'static,
    ) -> Self {
        Self::CannotOpen {
            path: path.to_owned(),
            source: Box::new(source),
        }
    }

    pub(crate) fn from_sqlite(path: &std::path::Path, error: rusqlite::Error) -> Self {
        let code = error.sqlite_error_code();
        let path = path.to_owned();
        let source = Box::new(error);
        match code {
            Some(ErrorCode::ReadOnly) => Self::ReadOnly { path },
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
                Self::Busy { path, source }
            }
            Some(ErrorCode::DiskFull) => Self::Full { path, source },
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
                Self::Corrupt { path, source }
            }
            Some(ErrorCode::CannotOpen | ErrorCode::PermissionDenied) => {
                Self::CannotOpen { path, source }
            }
            _ => Self::Database { path, source },
        }
    }

    /// An error of the system while it wrote to a file of the database.
    pub(crate) fn from_io(path: &std::path::Path, error: std::io::Error) -> Self {
        let path = path.to_owned();
        match error.kind() {
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => Self::Full {
                path,
                source: Box::new(error),
            },
            ErrorKind::ReadOnlyFilesystem | ErrorKind::PermissionDenied => Self::ReadOnly { path },
            _ => Self::Database {
                path,
                source: Box::new(error),
            },
        }
    }

    pub(crate) fn from_store(path: &std::path::Path, error: StoreError) -> Self {
        let path = path.to_owned();
        match error.kind() {
            StoreErrorKind::Unsupported => Self::NewerSchema {
                path,
                reason: error.detail().to_owned(),
            },
            StoreErrorKind::Corrupt => Self::Corrupt {
                path,
                source: Box::new(error),
            },
            StoreErrorKind::Full => Self::Full {
                path,
                source: Box::new(error),
            },
            _ => Self::Database {
                path,
                source: Box::new(error),
            },
        }
    }
}

/// Why a backup could not be written. Nothing is left at its path.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BackupError {
    /// There is something at the path already.
    #[error("{} exists already; choose another path for the backup", path.display())]
    Exists {
        /// Where the backup was to go.
        path: PathBuf,
    },
    /// The file could not be written.
    #[error("cannot write the backup {}", path.display())]
    Write {
        /// Where the backup was to go.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// The database could not be copied.
    #[error("cannot copy the database to {}", path.display())]
    Copy {
        /// Where the backup was to go.
        path: PathBuf,
        /// What the store said.
        #[source]
        source: StoreError,
    },
}

/// An error of SQLite as the contract knows it; SQLite's text goes into `source` alone.
///
/// Not for COMMIT, whose I/O errors leave the outcome open.
pub(crate) fn store_error(error: rusqlite::Error) -> StoreError {
    let mapped = match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            StoreError::unavailable("busy: another process holds the write lock of the database")
        }
        Some(ErrorCode::DiskFull) => {
            StoreError::full("the disk or the database is full; make room")
        }
        Some(ErrorCode::ReadOnly) => StoreError::unavailable(
            "the database is read-only; make the file and its folder writable",
        ),
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
            StoreError::corrupt("the database file is damaged; restore it from a backup")
        }
        Some(ErrorCode::SystemIoFailure) => {
            StoreError::unavailable("the database file could not be read or written")
        }
        Some(ErrorCode::CannotOpen | ErrorCode::PermissionDenied) => {
            StoreError::unavailable("the database file cannot be opened")
        }
        _ => StoreError::unavailable("the database refused a statement"),
    };
    mapped.with_source(error)
}

/// What every call of a closed store ends in.
pub(crate) fn closed() -> StoreError {
    StoreError::unavailable("the store is closed")
}
