use std::fs;
use std::path::Path;

use crate::error::OpenError;
use crate::lock::beside;

/// What lies in the place of the log before a database is opened. It holds the newest commits, and
/// SQLite says nothing when it is not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LeftLog {
    /// There is no database yet.
    NoDatabase,
    /// A log, or an empty file.
    Present,
    /// No log. A database that was closed has none; one that was not should have it.
    Missing,
}

impl LeftLog {
    /// Looks at the files of a database that nobody has open.
    ///
    /// # Errors
    /// `LogWithoutDatabase`: SQLite would take the database for a new one and delete the log.
    pub(crate) fn beside(database: &Path) -> Result<Self, OpenError> {
        let log = beside(database, "-wal");
        let bytes = |path: &Path| fs::metadata(path).ok().map(|file| file.len());
        match (bytes(database).unwrap_or(0), bytes(&log)) {
            (0, Some(1..)) => Err(OpenError::LogWithoutDatabase {
                path: database.to_owned(),
                log,
            }),
            (0, _) => Ok(Self::NoDatabase),
            (_, Some(_)) => Ok(Self::Present),
            (_, None) => Ok(Self::Missing),
        }
    }
}
