//! The conformance suite for stores over the platform's database: one case per object.

use std::fmt;
use std::future::ready;
use std::sync::Arc;

use dueline::BoxFuture;
use dueline::sql::SizeLimit;
use dueline::store::StoreError;
use dueline::timers::Registry;
use dueline_testkit::conformance::{Case, Setup, Subject};
use dueline_testkit::test_runtime;
use dueline_worker::{AlarmWrite, ObjectDriver, ObjectOptions, ObjectStorage, SqlTask, Start};
use wasm_bindgen::prelude::*;

use crate::platform::{Host, Storage};
use crate::storage::PlatformStorage;

/// The platform's database with an alarm that answers at once: the cases wait for nothing.
struct WithoutAlarm(PlatformStorage);

impl fmt::Debug for WithoutAlarm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WithoutAlarm")
    }
}

impl ObjectStorage for WithoutAlarm {
    fn read(&self, task: &mut SqlTask<'_>) -> Result<(), StoreError> {
        self.0.read(task)
    }

    fn transaction(&self, task: &mut SqlTask<'_>) -> Result<(), StoreError> {
        self.0.transaction(task)
    }

    fn get_alarm(&self) -> BoxFuture<'static, Result<Option<u64>, StoreError>> {
        Box::pin(ready(Ok(None)))
    }

    fn set_alarm(&self, _: u64) -> Result<AlarmWrite, StoreError> {
        Ok(Box::pin(ready(Ok(()))))
    }

    fn delete_alarm(&self) -> Result<AlarmWrite, StoreError> {
        Ok(Box::pin(ready(Ok(()))))
    }

    fn sync(&self) -> BoxFuture<'static, Result<(), StoreError>> {
        Box::pin(ready(Ok(())))
    }
}

dueline_testkit::conformance_suite!(make; wakes, capacity);

fn cases() -> Vec<(&'static str, Case)> {
    let themes = [
        preconditions::CASES,
        time_bounds::CASES,
        sizes::CASES,
        writes::CASES,
        groups::CASES,
        reads::CASES,
        scans::CASES,
        put_wakes::CASES,
        pause_wakes::CASES,
        settle_wakes::CASES,
        group_wakes::CASES,
        malformed_wakes::CASES,
        wake_pages::CASES,
        partitions::CASES,
        audit::CASES,
        histories::CASES,
        capacity::CASES,
    ];
    themes.concat()
}

/// The names of all cases.
#[wasm_bindgen(js_name = conformanceCases)]
#[allow(unreachable_pub, reason = "the host calls it")]
pub fn conformance_cases() -> Vec<String> {
    cases().iter().map(|(name, _)| (*name).to_owned()).collect()
}

/// Runs a case over an object's database. `fresh` empties it: a case may make several stores. A case that
/// fails panics, behind `failed` with its message; the one called `fails` always does.
#[wasm_bindgen(js_name = runConformanceCase)]
#[allow(unreachable_pub, reason = "the host calls it")]
pub fn run_conformance_case(
    name: &str,
    storage: &Storage,
    host: &Host,
    fresh: &js_sys::Function,
    failed: js_sys::Function,
) -> bool {
    // The hook may be called by any thread, of which there is one: the function is kept beside it.
    FAILED.set(Some(failed));
    std::panic::set_hook(Box::new(|panic| {
        let message = JsValue::from_str(&panic.to_string());
        FAILED.with_borrow(|failed| {
            if let Some(failed) = failed {
                let _ = failed.call1(&JsValue::UNDEFINED, &message);
            }
        });
    }));
    assert!(name != "fails", "as asked");
    let Some((_, case)) = cases().into_iter().find(|(known, _)| *known == name) else {
        return false;
    };
    case(&|setup: Setup| {
        // An object's own function; what it throws is a failure of the case.
        let emptied = fresh.call0(&JsValue::UNDEFINED);
        assert!(emptied.is_ok(), "the database was not emptied");
        subject(storage, host, &setup)
    });
    true
}

thread_local! {
    static FAILED: std::cell::RefCell<Option<js_sys::Function>> =
        const { std::cell::RefCell::new(None) };
}

#[allow(clippy::expect_used, reason = "a case fails by panicking")]
fn subject(storage: &Storage, host: &Host, setup: &Setup) -> Subject {
    let clock = setup.clock.clone();
    let platform = PlatformStorage::new(storage.clone(), host.clone(), Arc::new(clock.clone()));
    let size_limit = setup
        .small
        .then(|| SizeLimit::new(8 << 20).with_reserve(2 << 20));
    let driver = ObjectDriver::open(
        Arc::new(WithoutAlarm(platform)),
        test_runtime(&clock),
        Registry::new(),
        Start::Fresh,
        ObjectOptions {
            size_limit,
            ..ObjectOptions::default()
        },
    );
    let driver = driver.expect("the store opens");
    Subject::with_wakes(Arc::clone(driver.store()), clock)
}
