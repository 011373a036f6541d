//! SQL over `ctx.storage.sql`.

use std::borrow::Cow;
use std::ops::ControlFlow;
use std::sync::Arc;

use dueline::runtime::Clock;
use dueline::sql::{RowSink, SqlConn, SqlParam, SqlRow, with_table_prefix};
use dueline::store::StoreError;
use js_sys::{Array, JsString, Uint8Array};
use wasm_bindgen::prelude::*;

use crate::errors::{store_error, unavailable};
use crate::literals::Literals;
use crate::platform::{
    Cursor, Sql, exec_numbers, last_thrown, next_rows, write_key, write_row, write_row_beside,
};

/// In front of the names of the engine's tables: the object's application has tables too.
const PREFIX: &str = "dueline_";
/// 2^53: up to it every integer is a number of its own.
const EXACT_MAX: f64 = 9_007_199_254_740_992.0;

thread_local! {
    /// The statements with the names of the object's tables: there are a few dozen.
    static STATEMENTS: Literals = const { Literals::new() };
}

/// The database of an object for the length of one call.
pub(crate) struct Connection<'a> {
    sql: &'a Sql,
    clock: &'a Arc<dyn Clock>,
}

impl<'a> Connection<'a> {
    pub(crate) fn new(sql: &'a Sql, clock: &'a Arc<dyn Clock>) -> Self {
        Self { sql, clock }
    }

    fn run(&self, sql: &'static str, params: &[SqlParam<'_>]) -> Result<Cursor, StoreError> {
        let statement = statement(sql);
        let mut numbers = Vec::with_capacity(params.len());
        let mut bindings = None;
        for param in params {
            match (*param, &bindings) {
                (SqlParam::Int(value), None) => numbers.push(exact(value)?),
                // With bytes among them each costs calls of its own.
                (param, _) => {
                    let bindings = bindings.get_or_insert_with(|| {
                        let before = numbers.iter().copied().map(JsValue::from_f64);
                        before.collect::<Array>()
                    });
                    bindings.push(&bound(param)?);
                }
            }
        }
        let done = match bindings {
            Some(bindings) => self.sql.exec(&statement, &bindings),
            None => exec_numbers(self.sql, &statement, &numbers),
        };
        done.map_err(|error| store_error(&error))
    }
}

fn statement(sql: &'static str) -> JsString {
    STATEMENTS.with(|statements| {
        statements.of(sql, |sql| {
            JsString::from(with_table_prefix(sql, PREFIX).as_str())
        })
    })
}

fn exact(value: i64) -> Result<f64, StoreError> {
    let number = value as f64;
    if number.abs() > EXACT_MAX {
        return Err(StoreError::invalid("a number beyond 2^53 cannot be stored"));
    }
    Ok(number)
}

fn bound(param: SqlParam<'_>) -> Result<JsValue, StoreError> {
    match param {
        SqlParam::Int(value) => exact(value).map(JsValue::from_f64),
        SqlParam::Blob(bytes) => Ok(Uint8Array::from(bytes).into()),
    }
}

impl SqlConn for Connection<'_> {
    fn execute(&self, sql: &'static str, params: &[SqlParam<'_>]) -> Result<u64, StoreError> {
        // Rows of indexes are counted with those of tables. Whoever asks wants to know whether a row
        // with a key was there, and each of those tables is one tree.
        let written = match *params {
            [SqlParam::Int(part), SqlParam::Blob(key)] => {
                write_key(self.sql, &statement(sql), exact(part)?, key)
            }
            [
                SqlParam::Int(part),
                SqlParam::Blob(key),
                SqlParam::Blob(value),
            ] => write_row(self.sql, &statement(sql), exact(part)?, key, value),
            [
                SqlParam::Int(part),
                SqlParam::Blob(key),
                SqlParam::Blob(value),
                SqlParam::Int(kind),
                SqlParam::Int(at),
            ] => write_row_beside(
                self.sql,
                &statement(sql),
                exact(part)?,
                key,
                value,
                exact(kind)?,
                exact(at)?,
            ),
            _ => self.run(sql, params)?.rows_written(),
        };
        if written < 0.0 {
            return Err(store_error(&last_thrown()));
        }
        Ok(written as u64)
    }

    fn query(
        &self,
        sql: &'static str,
        params: &[SqlParam<'_>],
        row: &mut RowSink<'_>,
    ) -> Result<(), StoreError> {
        let cursor = self.run(sql, params)?;
        loop {
            let page = next_rows(&cursor).map_err(|error| store_error(&error))?;
            let (is_last, mut rows) = page.split_first().ok_or_else(unreadable)?;
            while !rows.is_empty() {
                let (found, behind) = sized(rows).ok_or_else(unreadable)?;
                rows = behind;
                if row(&Found(found))? == ControlFlow::Break(()) {
                    return Ok(());
                }
            }
            if *is_last != 0 {
                return Ok(());
            }
        }
    }

    fn now_ms(&self) -> i64 {
        self.clock.wall_ms()
    }

    fn size_bytes(&self) -> Result<u64, StoreError> {
        let size = self
            .sql
            .database_size()
            .map_err(|error| unavailable(&error))?;
        Ok(size as u64)
    }
}

/// The columns of a row in their order, which is that of a row's properties: none has the name of a number
/// beside others. As `nextRows` packs them.
struct Found<'a>(&'a [u8]);

/// A column as it is packed.
enum Column<'a> {
    Number(f64),
    Bytes(&'a [u8]),
    Other,
}

/// What stands behind its own length, and the rest.
fn sized(packed: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = packed.split_first_chunk::<4>()?;
    rest.split_at_checked(u32::from_le_bytes(*length) as usize)
}

fn first_column(packed: &[u8]) -> Option<(Column<'_>, &[u8])> {
    let (mark, rest) = packed.split_first()?;
    match mark {
        0 => {
            let (number, rest) = rest.split_first_chunk::<8>()?;
            Some((Column::Number(f64::from_le_bytes(*number)), rest))
        }
        1 => {
            let (bytes, rest) = sized(rest)?;
            Some((Column::Bytes(bytes), rest))
        }
        _ => Some((Column::Other, rest)),
    }
}

fn unreadable() -> StoreError {
    StoreError::corrupt("the rows of a statement could not be read")
}

impl<'a> Found<'a> {
    fn column(&self, index: usize) -> Option<Column<'a>> {
        let mut packed = self.0;
        for _ in 0..index {
            packed = first_column(packed)?.1;
        }
        first_column(packed).map(|(column, _)| column)
    }
}

impl SqlRow for Found<'_> {
    fn int(&self, column: usize) -> Result<i64, StoreError> {
        match self.column(column) {
            Some(Column::Number(number)) if number.fract() == 0.0 && number.abs() <= EXACT_MAX => {
                Ok(number as i64)
            }
            _ => Err(StoreError::corrupt("a stored number is none")),
        }
    }

    fn blob(&self, column: usize) -> Result<Cow<'_, [u8]>, StoreError> {
        match self.column(column) {
            Some(Column::Bytes(bytes)) => Ok(Cow::Borrowed(bytes)),
            _ => Err(StoreError::corrupt("stored bytes are none")),
        }
    }
}
