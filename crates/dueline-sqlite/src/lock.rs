use std::fs::{File, OpenOptions, TryLockError};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::error::OpenError;
use crate::mutants::{Mutant, planted};

/// The lock that makes one process the writer of a database: a file beside it, locked while the
/// store is open. The file stays; the system ends the lock with the process, however it dies.
#[derive(Debug)]
pub(crate) struct FileLock {
    locked: File,
}

impl FileLock {
    pub(crate) fn take(database: &Path) -> Result<Self, OpenError> {
        let lock = lock_path(database);
        let file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .read(true)
            .write(true)
            .open(&lock)
            .map_err(|error| match error.kind() {
                ErrorKind::ReadOnlyFilesystem | ErrorKind::PermissionDenied => {
                    OpenError::ReadOnly {
                        path: database.to_owned(),
                    }
                }
                _ => OpenError::cannot_open(database, error),
            })?;
        match file.try_lock() {
            Ok(()) => Ok(Self { locked: file }),
            Err(TryLockError::WouldBlock) => Err(OpenError::Locked {
                path: database.to_owned(),
                lock,
            }),
            Err(TryLockError::Error(error)) => Err(OpenError::cannot_open(database, error)),
        }
    }
}

impl FileLock {
    /// Whether somebody holds the lock of this database. Asks without keeping it.
    pub(crate) fn is_taken(database: &Path) -> Result<bool, OpenError> {
        let lock = lock_path(database);
        let file = match File::open(&lock) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(OpenError::cannot_open(&lock, error)),
        };
        match file.try_lock_shared() {
            Ok(()) => {
                release(&file);
                Ok(false)
            }
            Err(TryLockError::WouldBlock) => Ok(true),
            Err(TryLockError::Error(error)) => Err(OpenError::cannot_open(&lock, error)),
        }
    }
}

impl Drop for FileLock {
    fn drop(&mut self) {
        release(&self.locked);
    }
}

/// Ends a lock. Closing the file would not always do: a program that this one is just starting has the
/// file too, for the moment until it runs.
fn release(locked: &File) {
    if planted(Mutant::LockLeftToItsFile) {
        return;
    }
    if let Err(error) = locked.unlock() {
        tracing::warn!(%error, "a lock is left to end with its file");
    }
}

fn lock_path(database: &Path) -> PathBuf {
    beside(database, ".lock")
}

/// The path of a file beside the database, as SQLite names them: beside the file that a symbolic
/// link leads to, so that every name of a database has one lock and one log.
pub(crate) fn beside(database: &Path, suffix: &str) -> PathBuf {
    let real = database.canonicalize().ok().or_else(|| {
        let folder = match database.parent()? {
            folder if folder.as_os_str().is_empty() => Path::new("."),
            folder => folder,
        };
        Some(folder.canonicalize().ok()?.join(database.file_name()?))
    });
    let mut name = real.unwrap_or_else(|| database.to_owned()).into_os_string();
    name.push(suffix);
    PathBuf::from(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A program that was being started while a store closed had the lock's file open too, and the store
    /// could not be opened again: "another process holds the lock".
    #[test]
    fn a_lock_ends_although_a_program_just_started_has_its_file() {
        let folder = tempfile::tempdir().unwrap();
        let database = folder.path().join("timers.db");
        let lock = FileLock::take(&database).unwrap();
        // What a fork makes of it.
        let of_child = lock.locked.try_clone().unwrap();
        assert!(FileLock::is_taken(&database).unwrap());
        drop(lock);
        assert!(!FileLock::is_taken(&database).unwrap());
        drop(FileLock::take(&database).unwrap());
        drop(of_child);
    }
}
