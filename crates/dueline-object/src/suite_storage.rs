//! The storage for suites of tests: the platform's database, an alarm in memory, no host.

use std::cell::Cell;
use std::fmt;
use std::future::ready;
use std::sync::Arc;

use dueline::BoxFuture;
use dueline::runtime::Clock;
use dueline::store::StoreError;
use dueline_worker::{AlarmWrite, ObjectStorage, SqlTask};
use js_sys::{Array, JsString};
use wasm_bindgen::prelude::*;

use crate::clocks::PlatformClock;
use crate::platform::Storage;
use crate::storage::Database;

/// The tables of the engine, as they are called in an object.
const TABLES: [&str; 4] = ["dueline_meta", "dueline_part", "dueline_kv", "dueline_wake"];

/// The storage of an object for suites that drive the store by themselves and cannot wait. Not public API.
pub struct SuiteStorage {
    storage: Storage,
    database: Database,
    alarm_ms: Cell<Option<u64>>,
}

impl SuiteStorage {
    /// That of the object with this `ctx.storage`.
    pub fn new(storage: JsValue) -> Self {
        Self::of(storage.unchecked_into(), Arc::new(PlatformClock))
    }

    fn of(storage: Storage, clock: Arc<dyn Clock>) -> Self {
        Self {
            database: Database::new(storage.clone(), clock),
            storage,
            alarm_ms: Cell::new(None),
        }
    }

    /// The same database by another clock.
    #[must_use]
    pub fn with_clock(&self, clock: Arc<dyn Clock>) -> Self {
        Self::of(self.storage.clone(), clock)
    }

    /// Takes the engine's tables away.
    ///
    /// # Panics
    /// If the platform refuses.
    pub fn make_empty(&self) {
        for table in TABLES {
            let statement = JsString::from(format!("DROP TABLE IF EXISTS {table}"));
            let dropped = self.storage.sql().exec(&statement, &Array::new());
            assert!(dropped.is_ok(), "{table} could not be dropped");
        }
    }
}

impl fmt::Debug for SuiteStorage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SuiteStorage").finish_non_exhaustive()
    }
}

fn done() -> AlarmWrite {
    Box::pin(ready(Ok(())))
}

impl ObjectStorage for SuiteStorage {
    fn read(&self, task: &mut SqlTask<'_>) -> Result<(), StoreError> {
        self.database.read(task)
    }

    fn transaction(&self, task: &mut SqlTask<'_>) -> Result<(), StoreError> {
        self.database.transaction(task)
    }

    fn get_alarm(&self) -> BoxFuture<'static, Result<Option<u64>, StoreError>> {
        Box::pin(ready(Ok(self.alarm_ms.get())))
    }

    fn set_alarm(&self, at_ms: u64) -> Result<AlarmWrite, StoreError> {
        self.alarm_ms.set(Some(at_ms));
        Ok(done())
    }

    fn delete_alarm(&self) -> Result<AlarmWrite, StoreError> {
        self.alarm_ms.set(None);
        Ok(done())
    }

    fn sync(&self) -> BoxFuture<'static, Result<(), StoreError>> {
        done()
    }
}
