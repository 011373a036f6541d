use std::borrow::Cow;
use std::ops::ControlFlow;

use bytes::Bytes;

use crate::store::StoreError;

/// A bound parameter, borrowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SqlParam<'a> {
    /// An integer of at most 2^53 either way, so that a host with floating-point integers keeps it.
    Int(i64),
    /// Bytes, bound as a BLOB.
    Blob(&'a [u8]),
}

/// The row a query is at.
pub trait SqlRow {
    /// An integer column.
    ///
    /// # Errors
    /// `Corrupt` if the column holds something else.
    fn int(&self, column: usize) -> Result<i64, StoreError>;

    /// A BLOB column; borrowed where the host can.
    ///
    /// # Errors
    /// `Corrupt` if the column holds something else.
    fn blob(&self, column: usize) -> Result<Cow<'_, [u8]>, StoreError>;
}

/// Takes the rows of a query one by one and says whether it wants more.
pub type RowSink<'s> = dyn FnMut(&dyn SqlRow) -> Result<ControlFlow<()>, StoreError> + 's;

/// A connection that a host lends for the length of a call, inside a transaction it began.
///
/// Errors carry the kind the contract asks for: `Full` when the database or the disk is full,
/// `Corrupt` for a damaged file, `Unavailable` for everything else that wrote nothing. The
/// statements are few and constant, so a host keeps them prepared by the address of their text.
pub trait SqlConn {
    /// Runs a statement without rows and returns how many rows it changed.
    ///
    /// # Errors
    /// As the host maps them; the transaction is then rolled back by the caller.
    fn execute(&self, sql: &'static str, params: &[SqlParam<'_>]) -> Result<u64, StoreError>;

    /// Runs a query and hands each row to `row` until it breaks off.
    ///
    /// # Errors
    /// As [`execute`](Self::execute), and what `row` returns.
    fn query(
        &self,
        sql: &'static str,
        params: &[SqlParam<'_>],
        row: &mut RowSink<'_>,
    ) -> Result<(), StoreError>;

    /// The backend's clock in milliseconds since 1970; negative before, or if it is unreadable.
    fn now_ms(&self) -> i64;

    /// Bytes the database takes, free pages not counted, this transaction's writes included. Asked
    /// only when a [`SizeLimit`](super::SizeLimit) is set.
    ///
    /// # Errors
    /// As [`execute`](Self::execute).
    fn size_bytes(&self) -> Result<u64, StoreError>;
}

/// The bytes of a column, owned.
pub(super) fn owned(bytes: Cow<'_, [u8]>) -> Bytes {
    match bytes {
        Cow::Borrowed(bytes) => Bytes::copy_from_slice(bytes),
        Cow::Owned(bytes) => Bytes::from(bytes),
    }
}

/// The integer of the first row, if there is one.
pub(super) fn first_int(
    conn: &dyn SqlConn,
    sql: &'static str,
    params: &[SqlParam<'_>],
) -> Result<Option<i64>, StoreError> {
    let mut found = None;
    conn.query(sql, params, &mut |row| {
        found = Some(row.int(0)?);
        Ok(ControlFlow::Break(()))
    })?;
    Ok(found)
}

/// The bytes of the first row, if there is one.
pub(super) fn first_blob(
    conn: &dyn SqlConn,
    sql: &'static str,
    params: &[SqlParam<'_>],
) -> Result<Option<Bytes>, StoreError> {
    let mut found = None;
    conn.query(sql, params, &mut |row| {
        found = Some(owned(row.blob(0)?));
        Ok(ControlFlow::Break(()))
    })?;
    Ok(found)
}

/// Whether the query has a row.
pub(super) fn exists(
    conn: &dyn SqlConn,
    sql: &'static str,
    params: &[SqlParam<'_>],
) -> Result<bool, StoreError> {
    let mut found = false;
    conn.query(sql, params, &mut |_| {
        found = true;
        Ok(ControlFlow::Break(()))
    })?;
    Ok(found)
}
