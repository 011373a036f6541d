//! Goal: the store in memory keeps the whole contract. Method: the conformance suite that every
//! store must pass.
#![cfg(test)]

use std::sync::Arc;

use dueline::memory::MemoryStore;
use dueline_testkit::conformance::{Setup, Subject};

fn memory(setup: Setup) -> Subject {
    let store = MemoryStore::new(Arc::new(setup.clock.clone()));
    let store = if setup.small {
        store.with_capacity_limit(1 << 20)
    } else {
        store
    };
    Subject::with_wakes(Arc::new(store), setup.clock)
}

dueline_testkit::conformance_suite!(memory; wakes, capacity);
