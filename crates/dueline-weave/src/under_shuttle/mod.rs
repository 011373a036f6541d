//! The whole store and the whole driver under shuttle.

pub(crate) mod commits;
pub(crate) mod sync;

mod driver_runs;
mod driver_stops;
mod driver_world;
mod store_closes;
mod store_serves;
mod store_world;

pub(crate) use shuttle::thread_local;

use shuttle::scheduler::{PctScheduler, RandomScheduler};
use shuttle::{Config, FailurePersistence, MaxSteps, Runner};

use crate::model::{Effort, Model};

/// What takes the place of `std::thread` in the copies.
pub(crate) mod thread {
    pub(crate) use shuttle::thread::*;

    /// The models say themselves how many threads they want.
    pub(crate) fn available_parallelism() -> std::io::Result<std::num::NonZeroUsize> {
        std::thread::available_parallelism()
    }
}

/// The driver.
#[allow(
    warnings,
    reason = "copied: the product's own files, of which not all is used here"
)]
pub(crate) mod driver {
    include!(concat!(env!("OUT_DIR"), "/under_shuttle/driver/lib.rs"));
}

/// The SQLite store.
#[allow(
    warnings,
    reason = "copied: the product's own files, of which not all is used here"
)]
pub(crate) mod store {
    include!(concat!(env!("OUT_DIR"), "/under_shuttle/store/lib.rs"));
}

pub(crate) const MODELS: &[Model] = &[
    store_serves::EVERY_APPLY_IS_ANSWERED,
    store_serves::NOBODY_WAITS_FOR_TIME,
    store_closes::A_CLOSING_STORE_KEEPS_WHAT_IT_ACKNOWLEDGED,
    store_closes::A_FAILED_STORE_OPENS_AGAIN,
    driver_runs::NO_TIMER_IS_SLEPT_OVER,
    driver_runs::DRIVER_AND_STORE_WAKE_EACH_OTHER,
    driver_stops::A_STOP_LOSES_NOTHING,
    driver_stops::CALLS_ARE_SETTLED_OR_GIVEN_BACK,
    driver_stops::EVERY_STOP_ENDS,
];

/// A turn of the scheduler ends long before so many steps; what goes on beyond them goes in circles.
const STEPS_MAX: usize = 200_000;
/// Frames of SQLite need room.
const STACK_BYTES: usize = 1 << 20;
/// Changes of priority in one schedule of PCT.
const PRIORITY_CHANGES: usize = 3;

/// Runs a model under schedules drawn at random and under as many by PCT; how many there were.
fn explore(time_passes: bool, effort: Effort, model: fn()) -> u64 {
    sync::let_time_pass(time_passes);
    let mut config = Config::new();
    config.stack_size = STACK_BYTES;
    config.max_steps = MaxSteps::FailAfter(STEPS_MAX);
    config.failure_persistence = FailurePersistence::None;
    config.silence_warnings = true;
    let random = RandomScheduler::new_from_seed(effort.first_seed, effort.schedules);
    let drawn = Runner::new(random, config.clone()).run(model);
    let by_priority =
        PctScheduler::new_from_seed(effort.first_seed, PRIORITY_CHANGES, effort.schedules);
    let drawn = drawn + Runner::new(by_priority, config).run(model);
    u64::try_from(drawn).unwrap_or(u64::MAX)
}
