//! Opening connections: the one that writes, and those that read.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use dueline::sql::{Writer, schema};
use dueline::store::StoreError;
use rusqlite::{Connection, OpenFlags, hooks::Wal};

use crate::backend::Backend;
use crate::checkpoint::checkpoint;
use crate::error::OpenError;
use crate::left_log::LeftLog;
use crate::lock::beside;
use crate::mutants::{Mutant, planted};
use crate::options::{Durability, Options};
use crate::rewrite::rewrite_in_place;

/// The write connection and what its writer remembers.
#[derive(Debug)]
pub(crate) struct WriteSide {
    pub(crate) backend: Backend,
    pub(crate) writer: Writer,
    /// Pages in the log after the last commit.
    pub(crate) log_pages: Arc<AtomicU64>,
    /// Pages in the log at which the next attempt to restart it is due.
    pub(crate) restart_at_pages: u64,
    /// Whether the last checkpoint failed, which is said once.
    pub(crate) checkpoint_failed: bool,
    /// Pages in the log when it was last started over for want of room.
    pub(crate) room_made_at_pages: Option<u64>,
}

/// A store just opened.
pub(crate) struct Opened {
    pub(crate) side: WriteSide,
    /// When it was opened, if the last writer did not close it.
    pub(crate) unclean_opened_at_ms: Option<u64>,
}

/// Opens the database, creating or migrating it, and marks it as being written.
pub(crate) fn open(path: &Path, options: &Options) -> Result<Opened, OpenError> {
    let left_log = LeftLog::beside(path)?;
    let side = open_write_side(path, options)?;
    let from_store = |error| OpenError::from_store(path, error);
    let from_sqlite = |error| OpenError::from_sqlite(path, error);
    let unclean = schema::unclean_mark(&side.backend).map_err(from_store)?;
    if unclean && left_log == LeftLog::Missing {
        tracing::warn!(
            path = %path.display(),
            "the last writer did not close the database, and its log is gone: if somebody deleted the \
             log, or copied the database without it, what was committed last is lost"
        );
    }
    if !unclean {
        side.backend
            .control("BEGIN IMMEDIATE")
            .map_err(from_sqlite)?;
        schema::set_unclean_mark(&side.backend, true).map_err(from_store)?;
        side.backend.control("COMMIT").map_err(from_sqlite)?;
        // Into the file itself, which then says even without its log that there was one.
        checkpoint(&side.backend.connection, "PASSIVE").map_err(from_sqlite)?;
    }
    let unclean_opened_at_ms = unclean.then(|| side.backend.wall_ms());
    Ok(Opened {
        side,
        unclean_opened_at_ms,
    })
}

/// Opens the write connection of a database and brings its schema up to date.
pub(crate) fn open_write_side(path: &Path, options: &Options) -> Result<WriteSide, OpenError> {
    let from_sqlite = |error| OpenError::from_sqlite(path, error);
    let from_store = |error| OpenError::from_store(path, error);
    LeftLog::beside(path)?;
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_CREATE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(path, flags).map_err(from_sqlite)?;
    connection
        .busy_timeout(options.busy_timeout)
        .map_err(from_sqlite)?;
    if connection.is_readonly("main").map_err(from_sqlite)? {
        return Err(OpenError::ReadOnly {
            path: path.to_owned(),
        });
    }
    refuse_others(path, &connection)?;
    set_up(path, &connection, options)?;
    let log_pages = watch_log(&mut connection).map_err(from_sqlite)?;
    let backend = Backend::new(connection, Arc::clone(&options.clock)).map_err(from_sqlite)?;
    if !planted(Mutant::OpenedLogIsTrusted) {
        secure_log(path, &backend)?;
    }
    migrate(path, &backend)?;
    if let Some(limit) = options.size_limit {
        let pages = limit
            .limit_bytes()
            .div_ceil(backend.page_bytes().max(1))
            .max(1);
        let pages = i64::try_from(pages)
            .unwrap_or(i64::MAX)
            .min(i64::from(u32::MAX) - 1);
        backend
            .connection
            .pragma_update_and_check(None, "max_page_count", pages, |_| Ok(()))
            .map_err(from_sqlite)?;
    }
    let writer = Writer::new(&backend, options.size_limit).map_err(from_store)?;
    Ok(WriteSide {
        backend,
        writer,
        log_pages,
        restart_at_pages: 0,
        checkpoint_failed: false,
        room_made_at_pages: None,
    })
}

/// Refuses a file that is no database, or another program's, before anything is changed.
fn refuse_others(path: &Path, connection: &Connection) -> Result<(), OpenError> {
    let count = |sql| -> Result<i64, OpenError> {
        connection
            .query_row(sql, [], |row| row.get(0))
            .map_err(|error| OpenError::from_sqlite(path, error))
    };
    if count("SELECT COUNT(*) FROM sqlite_master")? == 0 {
        return Ok(());
    }
    let ours = "SELECT COUNT(*) FROM pragma_table_info('meta') WHERE name IN ('schema', 'unclean')";
    if count(ours)? == 2 {
        Ok(())
    } else {
        Err(OpenError::Foreign {
            path: path.to_owned(),
        })
    }
}

fn set_up(path: &Path, connection: &Connection, options: &Options) -> Result<(), OpenError> {
    let from_sqlite = |error| OpenError::from_sqlite(path, error);
    connection
        .pragma_update(None, "page_size", options.page_size.bytes())
        .map_err(from_sqlite)?;
    // The log goes with a clean close, as is SQLite's habit. Keeping its file would save the next
    // start the price of growing it again, but its frames would stay valid: a database restored
    // over the old one would have them replayed on top.
    let mode: String = connection
        .pragma_update_and_check(None, "journal_mode", "wal", |row| row.get(0))
        .map_err(from_sqlite)?;
    if !mode.eq_ignore_ascii_case("wal") {
        return Err(OpenError::NoLog {
            path: path.to_owned(),
        });
    }
    set_synchronous(connection, options.durability).map_err(from_sqlite)
}

pub(crate) fn set_synchronous(
    connection: &Connection,
    durability: Durability,
) -> rusqlite::Result<()> {
    let level = match durability {
        Durability::PowerLoss => "FULL",
        Durability::ProcessCrash => "NORMAL",
    };
    connection.pragma_update(None, "synchronous", level)
}

/// Notes the length of the log at each commit. This takes the place of SQLite's own automatic
/// checkpoint, which would run before the callers get their answers.
fn watch_log(connection: &mut Connection) -> rusqlite::Result<Arc<AtomicU64>> {
    let log_pages = Arc::new(AtomicU64::new(0));
    let noted = Arc::clone(&log_pages);
    connection.wal_hook(Some(move |_: &mut Wal, pages| {
        noted.store(u64::try_from(pages).unwrap_or(0), Ordering::Relaxed);
        Ok(())
    }))?;
    Ok(log_pages)
}

/// Makes durable what the log of a process that died shows, before anybody reads it. In a write
/// transaction, so that no other program writes to the log meanwhile.
fn secure_log(path: &Path, backend: &Backend) -> Result<(), OpenError> {
    let log = beside(path, "-wal");
    if fs::metadata(&log).map_or(0, |log| log.len()) == 0 {
        return Ok(());
    }
    let from_sqlite = |error| OpenError::from_sqlite(path, error);
    backend.control("BEGIN IMMEDIATE").map_err(from_sqlite)?;
    let done = rewrite_in_place(&log);
    backend.control("ROLLBACK").map_err(from_sqlite)?;
    done.map_err(|error| OpenError::from_io(path, error))
}

fn migrate(path: &Path, backend: &Backend) -> Result<(), OpenError> {
    let from_sqlite = |error| OpenError::from_sqlite(path, error);
    // Asked first without a transaction: a database that is up to date is not locked for it.
    let newest = Some(schema::SCHEMA_VERSION);
    let version = schema::version(backend).map_err(|error| OpenError::from_store(path, error))?;
    if version == newest {
        return Ok(());
    }
    loop {
        backend.control("BEGIN IMMEDIATE").map_err(from_sqlite)?;
        match schema::migrate_step(backend) {
            Ok(true) => backend.control("COMMIT").map_err(from_sqlite)?,
            Ok(false) => return backend.control("ROLLBACK").map_err(from_sqlite),
            Err(error) => {
                backend.control("ROLLBACK").map_err(from_sqlite)?;
                return Err(OpenError::from_store(path, error));
            }
        }
    }
}

/// Opens a connection that only reads.
pub(crate) fn open_reader(path: &Path, options: &Options) -> rusqlite::Result<Backend> {
    // Not opened read-only: the first reader after a crash may have to rebuild the log's index.
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(options.busy_timeout)?;
    connection.pragma_update(None, "query_only", true)?;
    Backend::new(connection, Arc::clone(&options.clock))
}

impl WriteSide {
    /// Begins a write transaction; a transaction that something left open is rolled back first.
    pub(crate) fn begin(&self) -> rusqlite::Result<()> {
        self.roll_back();
        self.backend.control("BEGIN IMMEDIATE")
    }

    /// Rolls back, if there is anything to roll back.
    pub(crate) fn roll_back(&self) {
        if !self.backend.connection.is_autocommit()
            && let Err(error) = self.backend.control("ROLLBACK")
        {
            tracing::error!(%error, "a transaction could not be rolled back");
        }
    }

    /// Clears the mark of a writer at work.
    pub(crate) fn mark_clean(&self) -> Result<(), StoreError> {
        self.begin().map_err(crate::error::store_error)?;
        schema::set_unclean_mark(&self.backend, false)?;
        self.backend
            .control("COMMIT")
            .map_err(crate::error::store_error)
    }
}
