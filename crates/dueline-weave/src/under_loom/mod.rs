//! Pieces under loom.

pub(crate) mod sync;

mod gate;
mod looks;
mod pool;
mod queue;

pub(crate) use loom::thread;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::model::{Effort, Model};

/// The pieces of the driver.
#[allow(
    warnings,
    reason = "copied: the product's own files, of which not all is used here"
)]
pub(crate) mod driver {
    include!(concat!(env!("OUT_DIR"), "/under_loom/driver/lib.rs"));
}

/// The pieces of the SQLite store.
#[allow(
    warnings,
    reason = "copied: the product's own files, of which not all is used here"
)]
pub(crate) mod store {
    include!(concat!(env!("OUT_DIR"), "/under_loom/store/lib.rs"));
}

pub(crate) const MODELS: &[Model] = &[
    looks::A_RAISED_SIGNAL_IS_SEEN,
    looks::NO_LOOK_IS_SLEPT_OVER,
    looks::A_COMMIT_BESIDE_A_READING_IS_FOUND,
    gate::WHO_WAITS_AT_THE_GATE_GOES_ON,
    queue::AN_ANSWER_OR_ITS_END_ARRIVES,
    queue::WHAT_IS_QUEUED_IS_SERVED,
    queue::A_CLOSED_QUEUE_SERVES_OR_REFUSES,
    pool::A_JOB_RUNS_OR_IS_DROPPED,
    pool::A_WOKEN_JOB_IS_POLLED,
    pool::ALL_WHO_WAIT_FOR_IDLE_GO_ON,
];

/// Runs a model under all interleavings with at most so many preemptions; how many there were.
fn explore(preemptions: usize, effort: Effort, model: fn()) -> u64 {
    let explored = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&explored);
    let mut checker = loom::model::Builder::new();
    checker.preemption_bound = Some(preemptions + effort.more_preemptions);
    checker.max_branches = 20_000;
    checker.check(move || {
        counted.fetch_add(1, Ordering::Relaxed);
        model();
    });
    explored.load(Ordering::Relaxed)
}
