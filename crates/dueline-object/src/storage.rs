//! `ctx.storage` as the storage of the object driver.

use std::fmt;
use std::future::ready;
use std::sync::Arc;

use dueline::BoxFuture;
use dueline::runtime::Clock;
use dueline::sql::SqlConn;
use dueline::store::StoreError;
use dueline_worker::{AlarmWrite, ObjectStorage, SqlTask};
use js_sys::Promise;
use wasm_bindgen::JsValue;
use wasm_bindgen_futures::JsFuture;

use crate::connection::Connection;
use crate::errors::{store_error, unavailable};
use crate::platform::{Host, Sql, Storage};

/// The database of one object.
pub(crate) struct Database {
    storage: Storage,
    sql: Sql,
    clock: Arc<dyn Clock>,
}

impl Database {
    pub(crate) fn new(storage: Storage, clock: Arc<dyn Clock>) -> Self {
        let sql = storage.sql();
        Self {
            storage,
            sql,
            clock,
        }
    }

    fn connection(&self) -> Connection<'_> {
        Connection::new(&self.sql, &self.clock)
    }

    pub(crate) fn read(&self, task: &mut SqlTask<'_>) -> Result<(), StoreError> {
        task(&self.connection())
    }

    pub(crate) fn transaction(&self, task: &mut SqlTask<'_>) -> Result<(), StoreError> {
        let mut refused = None;
        let done = self.storage.transaction_sync(&mut || {
            task(&self.connection()).map_or_else(
                |error| {
                    refused = Some(error);
                    // Whatever is thrown rolls back.
                    Err(JsValue::from_str("rolled back"))
                },
                |()| Ok(JsValue::UNDEFINED),
            )
        });
        match (refused, done) {
            (Some(error), _) => Err(error),
            (None, Ok(_)) => Ok(()),
            (None, Err(error)) => Err(store_error(&error)),
        }
    }
}

/// The platform's storage of one object.
pub(crate) struct PlatformStorage {
    storage: Storage,
    database: Database,
    host: Host,
}

impl PlatformStorage {
    pub(crate) fn new(storage: Storage, host: Host, clock: Arc<dyn Clock>) -> Self {
        Self {
            database: Database::new(storage.clone(), clock),
            storage,
            host,
        }
    }
}

impl fmt::Debug for PlatformStorage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PlatformStorage")
    }
}

/// The rest of a write of the platform's.
fn written(promise: Result<Promise, JsValue>) -> Result<AlarmWrite, StoreError> {
    let promise = promise.map_err(|error| unavailable(&error))?;
    Ok(Box::pin(async move {
        let done = JsFuture::from(promise).await;
        done.map(drop).map_err(|error| unavailable(&error))
    }))
}

impl ObjectStorage for PlatformStorage {
    fn read(&self, task: &mut SqlTask<'_>) -> Result<(), StoreError> {
        self.database.read(task)
    }

    fn transaction(&self, task: &mut SqlTask<'_>) -> Result<(), StoreError> {
        self.database.transaction(task)
    }

    fn get_alarm(&self) -> BoxFuture<'static, Result<Option<u64>, StoreError>> {
        match self.storage.get_alarm() {
            Ok(promise) => Box::pin(async move {
                let at_ms = JsFuture::from(promise)
                    .await
                    .map_err(|error| unavailable(&error))?;
                Ok(at_ms.as_f64().map(|at_ms| at_ms as u64))
            }),
            Err(error) => Box::pin(ready(Err(unavailable(&error)))),
        }
    }

    fn set_alarm(&self, at_ms: u64) -> Result<AlarmWrite, StoreError> {
        written(self.storage.set_alarm(at_ms as f64))
    }

    fn delete_alarm(&self) -> Result<AlarmWrite, StoreError> {
        written(self.storage.delete_alarm())
    }

    fn sync(&self) -> BoxFuture<'static, Result<(), StoreError>> {
        written(self.storage.sync()).unwrap_or_else(|error| Box::pin(ready(Err(error))))
    }

    fn effect(&self, number: u64, _: &dyn SqlConn) -> Result<(), String> {
        if self.host.effect(number as f64) {
            return Ok(());
        }
        Err(self.host.refusal())
    }
}
