//! The driver without threads, for a simulator that runs every part of it one step at a time.
//!
//! Not public API: it follows the driver's inner parts and changes with them.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use dueline::BoxFuture;
use dueline::store::{Partition, WakeStore};
use dueline::timers::RunReport;

use crate::builder::{DriverBuilder, Parts};
use crate::error::StartError;
use crate::handle::Handle;
use crate::scheduler::Scheduler;
use crate::shared::Shared;
use crate::store::DriverStore;
use crate::task_host::{Abort, TaskHost};
use crate::work::Stage;

/// Takes the tasks that would be the async runtime's. Each has a number, to be ended by.
pub trait SimulationHost: Send + Sync + fmt::Debug {
    /// Begins a task and returns its number.
    fn begin(&self, task: BoxFuture<'static, ()>) -> u64;

    /// Drops a task where it stands, if it still runs.
    fn end(&self, number: u64);

    /// A tick has ended that began at this monotonic time.
    fn ticked(&self, partition: &Partition, began: Duration, report: &RunReport);
}

#[derive(Clone, Debug)]
struct Hosted(Arc<dyn SimulationHost>);

impl TaskHost for Hosted {
    fn spawn(&self, task: BoxFuture<'static, ()>) -> Abort {
        let (number, host) = (self.0.begin(task), Arc::clone(&self.0));
        Box::new(move || host.end(number))
    }

    fn ticked(&self, partition: &Partition, began: Duration, report: &RunReport) {
        self.0.ticked(partition, began, report);
    }
}

/// A store whose cut commits are finished by this host instead of a thread.
pub fn simulated_store(store: Arc<dyn WakeStore>, host: Arc<dyn SimulationHost>) -> DriverStore {
    DriverStore::hosted(store, Some(Arc::new(Hosted(host))))
}

/// A driver whose threads are the caller's.
pub struct SimulatedDriver {
    /// What a program would hold.
    pub handle: Handle,
    /// The thread that decides. It ends when the driver has stopped.
    pub scheduler: BoxFuture<'static, ()>,
    /// What the threads that tick would do.
    pub jobs: Jobs,
}

/// The jobs of the threads that tick.
#[derive(Clone)]
pub struct Jobs {
    shared: Arc<Shared>,
}

/// One job: a tick, or anything else.
pub struct SimulatedJob {
    /// A tick is dropped once [`Jobs::drops_ticks`].
    pub is_tick: bool,
    /// Runs it.
    pub run: BoxFuture<'static, ()>,
}

impl Jobs {
    /// The next job that waits for a thread, if there is one.
    pub fn next(&self) -> Option<SimulatedJob> {
        if self.shared.pool.stage() == Stage::Stopped {
            return None;
        }
        let (run, is_tick, busy) = self.shared.pool.take(0, true)?.into_parts();
        let run = Box::pin(async move {
            run.await;
            drop(busy);
        });
        Some(SimulatedJob { is_tick, run })
    }

    /// Whether the driver is so far in stopping that ticks under way are dropped.
    pub fn drops_ticks(&self) -> bool {
        self.shared.pool.stage() >= Stage::Releasing
    }

    /// Whether nothing is run any more.
    pub fn has_stopped(&self) -> bool {
        self.shared.pool.stage() == Stage::Stopped
    }
}

impl fmt::Debug for Jobs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Jobs").finish_non_exhaustive()
    }
}

impl DriverBuilder {
    /// The driver without threads.
    ///
    /// # Errors
    /// Without a store that keeps wakes.
    pub fn simulate(self, host: Arc<dyn SimulationHost>) -> Result<SimulatedDriver, StartError> {
        let Parts {
            shared,
            handle,
            store,
            settings,
        } = self.parts(Arc::new(Hosted(host)))?;
        let scheduler = Scheduler::new(Arc::clone(&shared), store, settings);
        Ok(SimulatedDriver {
            handle,
            scheduler: Box::pin(scheduler.run_as_task()),
            jobs: Jobs { shared },
        })
    }
}

impl fmt::Debug for SimulatedDriver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SimulatedDriver")
            .field("handle", &self.handle)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for SimulatedJob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SimulatedJob")
            .field("is_tick", &self.is_tick)
            .finish_non_exhaustive()
    }
}
