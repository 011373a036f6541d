//! The stores of the cases, in the object that has been entered.

use std::cell::RefCell;
use std::sync::Arc;

use dueline::sql::SizeLimit;
use dueline::store::WakeStore;
use dueline::timers::Registry;
use dueline_object::SuiteStorage;
use dueline_testkit::conformance::{Setup, Subject};
use dueline_testkit::{ManualClock, test_runtime};
use dueline_worker::{ObjectDriver, ObjectOptions, ObjectStore, Start};

thread_local! {
    /// The storage of the object in which a case runs.
    static ENTERED: RefCell<Option<SuiteStorage>> = const { RefCell::new(None) };
}

/// The cases to come are run in the object with this storage.
pub(crate) fn enter(storage: SuiteStorage) {
    ENTERED.set(Some(storage));
}

/// A fresh store with wakes, as the cases of the kinds want it.
pub(crate) fn store(clock: ManualClock) -> Arc<dyn WakeStore> {
    emptied();
    opened(&clock, false)
}

/// A fresh store as the cases of the contract want it. It is opened again over what it has written.
pub(crate) fn subject(setup: Setup) -> Subject {
    emptied();
    subject_over(setup)
}

fn subject_over(setup: Setup) -> Subject {
    let Setup { clock, small } = setup.clone();
    Subject::with_wakes(opened(&clock, small), clock).reopened_by(move |_| subject_over(setup))
}

fn emptied() {
    ENTERED.with_borrow(|entered| {
        let storage = entered.as_ref().expect("an object has been entered");
        storage.make_empty();
    });
}

fn opened(clock: &ManualClock, small: bool) -> Arc<ObjectStore> {
    let storage = ENTERED.with_borrow(|entered| {
        let storage = entered.as_ref().expect("an object has been entered");
        storage.with_clock(Arc::new(clock.clone()))
    });
    let options = ObjectOptions {
        size_limit: small.then(|| SizeLimit::new(8 << 20).with_reserve(2 << 20)),
        ..ObjectOptions::default()
    };
    let runtime = test_runtime(clock);
    let driver = ObjectDriver::open(
        Arc::new(storage),
        runtime,
        Registry::new(),
        Start::Fresh,
        options,
    );
    Arc::clone(driver.expect("the store is opened").store())
}
