use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use rusqlite::{Connection, OpenFlags};

use crate::error::{BackupError, store_error};
use crate::mutants::{Mutant, planted};
use crate::shared::Shared;

/// Copies the database to a new file while it is in use.
pub(crate) fn backup(shared: &Shared, path: &Path) -> Result<(), BackupError> {
    if path.symlink_metadata().is_ok() {
        return Err(BackupError::Exists {
            path: path.to_owned(),
        });
    }
    let partial = partial_path(path);
    let write = |source| BackupError::Write {
        path: path.to_owned(),
        source,
    };
    let done = copy(shared, &partial)
        .map_err(|source| BackupError::Copy {
            path: path.to_owned(),
            source,
        })
        .and_then(|()| publish(&partial, path).map_err(write));
    if done.is_err() {
        discard(&partial);
    }
    done
}

/// Removes what an unfinished copy left, its journal too. Best effort: the error that counts is the
/// one at hand.
fn discard(partial: &Path) {
    let left = ["", "-journal", "-wal", "-shm"];
    let is_copy_alone = planted(Mutant::FailedBackupLeavesJournal);
    for suffix in left.iter().take(if is_copy_alone { 1 } else { left.len() }) {
        let mut name = partial.as_os_str().to_owned();
        name.push(suffix);
        drop(fs::remove_file(PathBuf::from(name)));
    }
}

fn copy(shared: &Shared, partial: &Path) -> Result<(), dueline::store::StoreError> {
    shared.gate.pass()?;
    let Some(target) = partial.to_str() else {
        return Err(dueline::store::StoreError::invalid(
            "the path of a backup must be UTF-8",
        ));
    };
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let source = Connection::open_with_flags(&shared.path, flags).map_err(store_error)?;
    source
        .busy_timeout(shared.options.busy_timeout)
        .map_err(store_error)?;
    source
        .execute("VACUUM INTO ?1", [target])
        .map_err(store_error)?;
    // The copy carries the mark of a writer at work, and nobody is at work in it.
    let copy = Connection::open_with_flags(partial, flags).map_err(store_error)?;
    copy.execute("UPDATE meta SET unclean = 0 WHERE id = 1", [])
        .map_err(store_error)?;
    copy.close().map_err(|(_, error)| store_error(error))
}

/// Gives the finished copy its name, durably.
fn publish(partial: &Path, path: &Path) -> std::io::Result<()> {
    File::open(partial)?.sync_all()?;
    // A hard link refuses to replace a file that has come into being meanwhile; a rename would not.
    match fs::hard_link(partial, path) {
        Ok(()) => fs::remove_file(partial)?,
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => return Err(error),
        Err(_) => fs::rename(partial, path)?,
    }
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => sync_folder(folder),
        _ => sync_folder(Path::new(".")),
    }
}

#[cfg(unix)]
fn sync_folder(folder: &Path) -> std::io::Result<()> {
    File::open(folder)?.sync_all()
}

#[cfg(not(unix))]
fn sync_folder(_: &Path) -> std::io::Result<()> {
    Ok(())
}

/// A name of its own for each attempt, so that two backups to one path never write one file.
fn partial_path(path: &Path) -> PathBuf {
    static ATTEMPTS: AtomicU64 = AtomicU64::new(0);
    let attempt = ATTEMPTS.fetch_add(1, Ordering::Relaxed);
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".partial-{}-{attempt}", std::process::id()));
    PathBuf::from(name)
}
