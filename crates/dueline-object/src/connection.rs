//! SQL over `ctx.storage.sql`.

use std::borrow::Cow;
use std::ops::ControlFlow;
use std::sync::Arc;

use dueline::runtime::Clock;
use dueline::sql::{RowSink, SqlConn, SqlParam, SqlRow, with_table_prefix};
use dueline::store::StoreError;
use js_sys::{Array, JsString, Object, Uint8Array};
use wasm_bindgen::prelude::*;

use crate::errors::{store_error, unavailable};
use crate::literals::Literals;
use crate::platform::{Cursor, Sql};

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
        let bindings = Array::new();
        for param in params {
            bindings.push(&bound(*param)?);
        }
        self.sql
            .exec(&statement, &bindings)
            .map_err(|error| store_error(&error))
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
        let done = match *params {
            [SqlParam::Int(number), SqlParam::Blob(key)] => {
                self.sql.exec_key(&statement(sql), exact(number)?, key)
            }
            [
                SqlParam::Int(number),
                SqlParam::Blob(key),
                SqlParam::Blob(value),
            ] => self
                .sql
                .exec_entry(&statement(sql), exact(number)?, key, value),
            _ => return Ok(self.run(sql, params)?.rows_written() as u64),
        };
        let done = done.map_err(|error| store_error(&error))?;
        Ok(done.rows_written() as u64)
    }

    fn query(
        &self,
        sql: &'static str,
        params: &[SqlParam<'_>],
        row: &mut RowSink<'_>,
    ) -> Result<(), StoreError> {
        let rows = self.run(sql, params)?;
        loop {
            let next = rows.next().map_err(|error| store_error(&error))?;
            if next.done() {
                return Ok(());
            }
            let found = Found(Object::values(&next.value().unchecked_into()));
            if row(&found)? == ControlFlow::Break(()) {
                // Most such queries have one row: one step more ends the statement.
                let _ = rows.next();
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
/// beside others.
struct Found(Array);

impl SqlRow for Found {
    fn int(&self, column: usize) -> Result<i64, StoreError> {
        let number = self.0.get(index(column)).as_f64();
        match number {
            Some(number) if number.fract() == 0.0 && number.abs() <= EXACT_MAX => Ok(number as i64),
            _ => Err(StoreError::corrupt("a stored number is none")),
        }
    }

    fn blob(&self, column: usize) -> Result<Cow<'_, [u8]>, StoreError> {
        let value = self.0.get(index(column));
        if !value.is_instance_of::<js_sys::ArrayBuffer>() {
            return Err(StoreError::corrupt("stored bytes are none"));
        }
        Ok(Cow::Owned(Uint8Array::new(&value).to_vec()))
    }
}

fn index(column: usize) -> u32 {
    u32::try_from(column).unwrap_or(u32::MAX)
}
