use std::borrow::Cow;
use std::ops::ControlFlow;
use std::sync::Arc;

use dueline::runtime::Clock;
use dueline::sql::{RowSink, SqlConn, SqlParam, SqlRow};
use dueline::store::StoreError;
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{CachedStatement, Connection, Row, ToSql};

use crate::error::store_error;

/// A connection with its statements kept prepared, as the shared SQL text wants it.
#[derive(Debug)]
pub(crate) struct Backend {
    pub(crate) connection: Connection,
    clock: Arc<dyn Clock>,
    page_bytes: u64,
}

const STATEMENTS_KEPT: usize = 64;

impl Backend {
    pub(crate) fn new(connection: Connection, clock: Arc<dyn Clock>) -> rusqlite::Result<Self> {
        connection.set_prepared_statement_cache_capacity(STATEMENTS_KEPT);
        let page_bytes: i64 = connection.pragma_query_value(None, "page_size", |row| row.get(0))?;
        Ok(Self {
            connection,
            clock,
            page_bytes: u64::try_from(page_bytes).unwrap_or(0),
        })
    }

    /// Runs a statement of transaction control.
    pub(crate) fn control(&self, sql: &'static str) -> rusqlite::Result<()> {
        self.connection.prepare_cached(sql)?.execute([]).map(drop)
    }

    pub(crate) fn wall_ms(&self) -> u64 {
        u64::try_from(self.clock.wall_ms()).unwrap_or(0)
    }

    pub(crate) fn page_bytes(&self) -> u64 {
        self.page_bytes
    }

    fn bound(
        &self,
        sql: &'static str,
        params: &[SqlParam<'_>],
    ) -> rusqlite::Result<CachedStatement<'_>> {
        let mut statement = self.connection.prepare_cached(sql)?;
        for (index, param) in (1..).zip(params) {
            statement.raw_bind_parameter(index, Bound(*param))?;
        }
        Ok(statement)
    }
}

struct Bound<'a>(SqlParam<'a>);

impl ToSql for Bound<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self.0 {
            SqlParam::Int(value) => ValueRef::Integer(value),
            SqlParam::Blob(bytes) => ValueRef::Blob(bytes),
        }))
    }
}

impl SqlConn for Backend {
    fn execute(&self, sql: &'static str, params: &[SqlParam<'_>]) -> Result<u64, StoreError> {
        let mut statement = self.bound(sql, params).map_err(store_error)?;
        statement
            .raw_execute()
            .map(|changed| changed as u64)
            .map_err(store_error)
    }

    fn query(
        &self,
        sql: &'static str,
        params: &[SqlParam<'_>],
        row: &mut RowSink<'_>,
    ) -> Result<(), StoreError> {
        let mut statement = self.bound(sql, params).map_err(store_error)?;
        let mut rows = statement.raw_query();
        while let Some(found) = rows.next().map_err(store_error)? {
            if row(&Found(found))? == ControlFlow::Break(()) {
                break;
            }
        }
        Ok(())
    }

    fn now_ms(&self) -> i64 {
        self.clock.wall_ms()
    }

    fn size_bytes(&self) -> Result<u64, StoreError> {
        let pragma = |sql: &'static str| -> Result<u64, StoreError> {
            let mut statement = self.connection.prepare_cached(sql).map_err(store_error)?;
            let pages: i64 = statement
                .query_row([], |row| row.get(0))
                .map_err(store_error)?;
            Ok(u64::try_from(pages).unwrap_or(0))
        };
        let pages = pragma("PRAGMA page_count")?;
        let free = pragma("PRAGMA freelist_count")?;
        Ok(pages.saturating_sub(free).saturating_mul(self.page_bytes))
    }
}

struct Found<'a, 'stmt>(&'a Row<'stmt>);

impl SqlRow for Found<'_, '_> {
    fn int(&self, column: usize) -> Result<i64, StoreError> {
        match self.0.get_ref(column).map_err(store_error)? {
            ValueRef::Integer(value) => Ok(value),
            _ => Err(StoreError::corrupt("a stored number is none")),
        }
    }

    fn blob(&self, column: usize) -> Result<Cow<'_, [u8]>, StoreError> {
        match self.0.get_ref(column).map_err(store_error)? {
            ValueRef::Blob(bytes) => Ok(Cow::Borrowed(bytes)),
            _ => Err(StoreError::corrupt("stored bytes are none")),
        }
    }
}
