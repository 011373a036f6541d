use std::borrow::Cow;
use std::cell::Cell;
use std::fmt;
use std::ops::ControlFlow;
use std::sync::Arc;

use dueline::runtime::Clock;
use dueline::sql::{RowSink, SqlConn, SqlParam, SqlRow};
use dueline::store::{Partition, StoreError, Wake};
use dueline::timers::TimerKind;
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{CachedStatement, Connection, Row, ToSql};

const STATEMENTS_KEPT: usize = 64;
/// Not read through the product, which asks kind by kind: it is read behind every turn.
const WAKES: &str = "SELECT w.at, w.kind, p.name FROM wake AS w JOIN part AS p ON p.id = w.part \
     ORDER BY w.at, w.kind, w.part";

/// An SQLite database in memory. Each turn that is not durable yet is a savepoint of it.
pub(super) struct Database {
    connection: Connection,
    clock: Arc<dyn Clock>,
    statements: Cell<u64>,
    reads: Cell<u64>,
    writes: Cell<u64>,
}

impl Database {
    pub(super) fn new(clock: Arc<dyn Clock>) -> Result<Self, StoreError> {
        let connection = Connection::open_in_memory().map_err(unavailable)?;
        connection.set_prepared_statement_cache_capacity(STATEMENTS_KEPT);
        Ok(Self {
            connection,
            clock,
            statements: Cell::new(0),
            reads: Cell::new(0),
            writes: Cell::new(0),
        })
    }

    /// The database's clock.
    pub(super) fn wall_ms(&self) -> u64 {
        u64::try_from(self.clock.wall_ms()).unwrap_or(0)
    }

    /// Rows read and rows written since the start.
    pub(super) fn rows(&self) -> (u64, u64) {
        (self.reads.get(), self.writes.get())
    }

    /// All stored wakes whose partitions exist, in the order of their times, kinds and partitions.
    pub(super) fn wakes(&self) -> Result<Vec<Wake>, StoreError> {
        let mut wakes = Vec::new();
        let mut statement = self.connection.prepare_cached(WAKES).map_err(unavailable)?;
        let mut rows = statement.query([]).map_err(unavailable)?;
        while let Some(row) = rows.next().map_err(unavailable)? {
            let row = Found(row);
            wakes.push(Wake {
                partition: Partition::new(row.blob(2)?.into_owned())?,
                kind: TimerKind(u8::try_from(row.int(1)?).unwrap_or(0)),
                at_ms: u64::try_from(row.int(0)?).unwrap_or(0),
            });
        }
        Ok(wakes)
    }

    /// Statements since the start, those of transaction control not among them.
    pub(super) fn statements(&self) -> u64 {
        self.statements.get()
    }

    /// Runs one statement of savepoint control.
    pub(super) fn control(&self, sql: &str) -> Result<(), StoreError> {
        let mut statement = self.connection.prepare_cached(sql).map_err(unavailable)?;
        statement.execute([]).map(drop).map_err(unavailable)
    }

    fn bound(
        &self,
        sql: &'static str,
        params: &[SqlParam<'_>],
    ) -> Result<CachedStatement<'_>, StoreError> {
        self.statements.set(self.statements.get() + 1);
        let mut statement = self.connection.prepare_cached(sql).map_err(unavailable)?;
        for (index, param) in (1..).zip(params) {
            statement
                .raw_bind_parameter(index, Bound(*param))
                .map_err(unavailable)?;
        }
        Ok(statement)
    }
}

impl fmt::Debug for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Database").finish_non_exhaustive()
    }
}

fn unavailable(error: rusqlite::Error) -> StoreError {
    StoreError::unavailable("the simulated database refused a statement").with_source(error)
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

impl SqlConn for Database {
    fn execute(&self, sql: &'static str, params: &[SqlParam<'_>]) -> Result<u64, StoreError> {
        let mut statement = self.bound(sql, params)?;
        let changed = statement.raw_execute().map_err(unavailable)? as u64;
        self.writes.set(self.writes.get() + changed);
        Ok(changed)
    }

    fn query(
        &self,
        sql: &'static str,
        params: &[SqlParam<'_>],
        row: &mut RowSink<'_>,
    ) -> Result<(), StoreError> {
        let mut statement = self.bound(sql, params)?;
        let mut rows = statement.raw_query();
        while let Some(found) = rows.next().map_err(unavailable)? {
            self.reads.set(self.reads.get() + 1);
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
        let pragma = |sql: &str| -> Result<u64, StoreError> {
            let pages: i64 = self
                .connection
                .query_row(sql, [], |row| row.get(0))
                .map_err(unavailable)?;
            Ok(u64::try_from(pages).unwrap_or(0))
        };
        let pages = pragma("PRAGMA page_count")?.saturating_sub(pragma("PRAGMA freelist_count")?);
        Ok(pages.saturating_mul(pragma("PRAGMA page_size")?))
    }
}

struct Found<'a, 'stmt>(&'a Row<'stmt>);

impl SqlRow for Found<'_, '_> {
    fn int(&self, column: usize) -> Result<i64, StoreError> {
        match self.0.get_ref(column).map_err(unavailable)? {
            ValueRef::Integer(value) => Ok(value),
            _ => Err(StoreError::corrupt("a stored number is none")),
        }
    }

    fn blob(&self, column: usize) -> Result<Cow<'_, [u8]>, StoreError> {
        match self.0.get_ref(column).map_err(unavailable)? {
            ValueRef::Blob(bytes) => Ok(Cow::Borrowed(bytes)),
            _ => Err(StoreError::corrupt("stored bytes are none")),
        }
    }
}
