//! Creating and migrating the tables, and the one row that says how the database stands.

use super::conn::{SqlConn, SqlParam, exists, first_int};
use super::statements as sql;
use crate::store::StoreError;

/// The schema this binary writes.
pub const SCHEMA_VERSION: i64 = 1;

/// The steps, oldest first: step n brings schema n - 1 to n. Steps are only ever added.
const MIGRATIONS: &[&[&str]] = &[sql::SCHEMA_1];

const _: () = assert!(MIGRATIONS.len() == SCHEMA_VERSION as usize);

/// The schema of the database; `None` if it holds none of ours.
///
/// # Errors
/// As the host maps them; `Corrupt` if the row is missing.
pub fn version(conn: &dyn SqlConn) -> Result<Option<i64>, StoreError> {
    if !exists(conn, sql::META_EXISTS, &[])? {
        return Ok(None);
    }
    match first_int(conn, sql::META_SCHEMA, &[])? {
        Some(version) => Ok(Some(version)),
        None => Err(StoreError::corrupt(
            "the database does not say which schema it has",
        )),
    }
}

/// Takes the next step towards [`SCHEMA_VERSION`], inside a transaction the host began, and says
/// whether one was taken: commit and call again until it says no. The version is read again inside,
/// so two processes that start together take each step once.
///
/// # Errors
/// `Unsupported` for a schema newer than this binary; nothing is changed then. Else as the host
/// maps them.
pub fn migrate_step(conn: &dyn SqlConn) -> Result<bool, StoreError> {
    let version = if let Some(version) = version(conn)? {
        version
    } else {
        conn.execute(sql::META_CREATE, &[])?;
        conn.execute(sql::META_INSERT, &[])?;
        0
    };
    if version > SCHEMA_VERSION {
        return Err(StoreError::unsupported(format!(
            "the database has schema {version} and this binary knows up to {SCHEMA_VERSION}; \
             open it with the newer binary that wrote it"
        )));
    }
    let step = usize::try_from(version)
        .map_err(|_| StoreError::corrupt("the database has a negative schema version"))?;
    let Some(statements) = MIGRATIONS.get(step) else {
        return Ok(false);
    };
    for statement in *statements {
        conn.execute(statement, &[])?;
    }
    conn.execute(sql::META_SET_SCHEMA, &[SqlParam::Int(version + 1)])?;
    Ok(true)
}

/// Whether the mark of a writer that is at work, or was when it died, is set.
///
/// # Errors
/// As the host maps them.
pub fn unclean_mark(conn: &dyn SqlConn) -> Result<bool, StoreError> {
    Ok(first_int(conn, sql::META_UNCLEAN, &[])?.is_some_and(|mark| mark != 0))
}

/// Sets or clears the mark.
///
/// # Errors
/// As the host maps them.
pub fn set_unclean_mark(conn: &dyn SqlConn, unclean: bool) -> Result<(), StoreError> {
    conn.execute(sql::META_SET_UNCLEAN, &[SqlParam::Int(i64::from(unclean))])?;
    Ok(())
}

/// Writes a row nobody reads. A commit of this settles a commit whose outcome was in doubt: its
/// frames in the log are overwritten or, if they had arrived, followed.
///
/// # Errors
/// As the host maps them.
pub fn settle_doubt(conn: &dyn SqlConn) -> Result<(), StoreError> {
    conn.execute(sql::META_SETTLE, &[])?;
    Ok(())
}
