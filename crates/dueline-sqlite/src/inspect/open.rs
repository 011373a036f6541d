use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use dueline::sql::schema::SCHEMA_VERSION;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags};

use super::walk::walk;
use super::{Inspection, PLACES_NAMED_MAX};
use crate::error::OpenError;
use crate::left_log::LeftLog;
use crate::lock::FileLock;

const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

pub(super) fn inspect(path: &Path, now_ms: u64) -> Result<Inspection, OpenError> {
    let from_sqlite = |error| OpenError::from_sqlite(path, error);
    // Before anything is opened: SQLite would delete a log without its database.
    let left_log = LeftLog::beside(path)?;
    let file = fs::metadata(path).map_err(|error| OpenError::cannot_open(path, error))?;
    let log = fs::metadata(log_path(path)).ok();
    let in_use = FileLock::is_taken(path)?;
    let connection = open_reader(path, log.is_some()).map_err(from_sqlite)?;
    connection.execute_batch("BEGIN").map_err(from_sqlite)?;
    let (schema, unclean) = read_meta(path, &connection)?;
    let mut damage = quick_check(&connection);
    let contents = if schema > SCHEMA_VERSION {
        None
    } else {
        match walk(&connection, now_ms) {
            Ok(contents) => Some(contents),
            Err(error) => {
                damage.push(format!("the rows could not be read to their end: {error}"));
                None
            }
        }
    };
    connection.execute_batch("ROLLBACK").map_err(from_sqlite)?;
    Ok(Inspection {
        file_bytes: file.len(),
        log_bytes: log.as_ref().map_or(0, fs::Metadata::len),
        written_at_ms: log.iter().chain([&file]).filter_map(written_at_ms).max(),
        in_use,
        schema,
        schema_known: SCHEMA_VERSION,
        unclean,
        log_missing: unclean && !in_use && left_log == LeftLog::Missing,
        damage,
        contents,
    })
}

/// Opens a connection that leaves the files as they are: it writes nothing, and when it is the last
/// to close, a log that was there stays, and an empty one that SQLite made for it goes.
fn open_reader(path: &Path, log_exists: bool) -> rusqlite::Result<Connection> {
    // Not opened read-only: the first reader after a crash may have to rebuild the log's index.
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.pragma_update(None, "query_only", true)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, log_exists)?;
    Ok(connection)
}

fn read_meta(path: &Path, connection: &Connection) -> Result<(i64, bool), OpenError> {
    let tables: i64 = connection
        .query_row("SELECT COUNT(*) FROM sqlite_master", [], |row| row.get(0))
        .map_err(|error| OpenError::from_sqlite(path, error))?;
    let found = connection.query_row("SELECT schema, unclean FROM meta WHERE id = 1", [], |row| {
        Ok((row.get(0)?, row.get::<_, i64>(1)? != 0))
    });
    match found {
        Ok(meta) => Ok(meta),
        // Made and not yet set up: the next open does that.
        Err(_) if tables == 0 => Ok((0, false)),
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseCorrupt) => {
            Err(OpenError::from_sqlite(path, error))
        }
        Err(_) => Err(OpenError::Foreign {
            path: path.to_owned(),
        }),
    }
}

/// What SQLite's own check finds. Some damage ends the check itself; that is a finding too.
fn quick_check(connection: &Connection) -> Vec<String> {
    let check = || -> rusqlite::Result<Vec<String>> {
        let mut statement =
            connection.prepare(&format!("PRAGMA quick_check({PLACES_NAMED_MAX})"))?;
        statement.query_map([], |row| row.get(0))?.collect()
    };
    let mut lines = check().unwrap_or_else(|error| vec![format!("the check ended early: {error}")]);
    lines.retain(|line| line != "ok");
    lines
}

fn log_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push("-wal");
    PathBuf::from(name)
}

fn written_at_ms(file: &fs::Metadata) -> Option<u64> {
    let since = file.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
    u64::try_from(since.as_millis()).ok()
}
