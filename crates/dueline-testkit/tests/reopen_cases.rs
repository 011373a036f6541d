//! Goal: the cases for stores that outlive their process pass on one that does, and notice one that
//! forgets. Method: a memory store handed on by a subject that pretends to stop it.
#![cfg(test)]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use dueline::memory::MemoryStore;
use dueline::store::WakeStore;
use dueline_testkit::conformance::{Setup, Stop, Subject, reopen};
use dueline_testkit::{FaultStore, ManualClock};

fn outliving(setup: Setup) -> Subject {
    let memory = Arc::new(MemoryStore::new(Arc::new(setup.clock.clone())));
    opened(memory, setup.clock, None)
}

fn opened(memory: Arc<MemoryStore>, clock: ManualClock, unclean_ms: Option<u64>) -> Subject {
    let store = FaultStore::new(Arc::clone(&memory) as Arc<dyn WakeStore>);
    store.set_unclean_opened_at_ms(unclean_ms);
    Subject::with_wakes(Arc::new(store), clock.clone()).reopened_by(move |stop| {
        let now_ms = dueline_testkit::test_runtime(&clock).now_ms();
        opened(memory, clock, (stop == Stop::Crash).then_some(now_ms))
    })
}

fn forgetful(setup: Setup) -> Subject {
    outliving(setup.clone()).reopened_by(|_| outliving(setup))
}

#[test]
fn a_store_that_outlives_its_process_passes() {
    reopen::rows_and_wakes_outlive_the_process(&outliving);
    reopen::a_reopened_store_keeps_setting_wakes(&outliving);
    reopen::an_unclean_stop_is_known(&outliving);
}

#[test]
fn a_store_that_forgets_is_noticed() {
    for case in [
        reopen::rows_and_wakes_outlive_the_process,
        reopen::a_reopened_store_keeps_setting_wakes,
        reopen::an_unclean_stop_is_known,
    ] {
        let result = catch_unwind(AssertUnwindSafe(|| case(&forgetful)));
        assert!(result.is_err(), "a case passed a store that forgets");
    }
}
