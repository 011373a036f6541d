//! The conformance suite of the testkit, run over the store of a simulated object. A crash is a new
//! instance over the same storage: what an object is told is durable.
#![cfg(test)]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;

use dueline::sql::SizeLimit;
use dueline::timers::Registry;
use dueline_testkit::conformance::{Setup, Subject, reopen};
use dueline_testkit::{ManualClock, test_runtime};
use dueline_worker::simulated::{SimulatedObject, SimulatedStorage};
use dueline_worker::{ObjectDriver, ObjectOptions, Start};

fn subject(storage: SimulatedStorage, clock: ManualClock, small: bool) -> Subject {
    let size_limit = small.then(|| SizeLimit::new(8 << 20).with_reserve(2 << 20));
    let options = ObjectOptions {
        size_limit,
        ..ObjectOptions::default()
    };
    let driver = ObjectDriver::open(
        Arc::new(storage.clone()),
        test_runtime(&clock),
        Registry::new(),
        Start::Fresh,
        options,
    )
    .unwrap();
    let store = Arc::clone(driver.store());
    Subject::with_wakes(store, clock.clone()).reopened_by(move |_| subject(storage, clock, small))
}

fn make(setup: Setup) -> Subject {
    let object = SimulatedObject::new(Arc::new(setup.clock.clone())).unwrap();
    subject(object.storage().clone(), setup.clock, setup.small)
}

dueline_testkit::conformance_suite!(make; wakes, capacity);

/// Of the feature `reopen` all but `unclean_opened_at_ms`: an object is never closed, and what was cut is
/// known from the alarm.
#[test]
fn rows_and_wakes_outlive_the_instance() {
    reopen::rows_and_wakes_outlive_the_process(&make);
}

#[test]
fn a_new_instance_keeps_setting_wakes() {
    reopen::a_reopened_store_keeps_setting_wakes(&make);
}
