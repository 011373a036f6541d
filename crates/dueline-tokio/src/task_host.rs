//! What runs beside the driver's own threads: the async runtime of the program, or a simulation.

use std::fmt;
use std::time::Duration;

use dueline::BoxFuture;
use dueline::store::Partition;
use dueline::timers::RunReport;
use tokio::runtime;

/// Ends a task that was spawned, wherever it stands. Called or not, it may be dropped at any time.
pub(crate) type Abort = Box<dyn FnOnce() + Send>;

/// Runs tasks beside the driver's own threads.
pub(crate) trait TaskHost: Send + Sync + fmt::Debug {
    /// Begins a task.
    fn spawn(&self, task: BoxFuture<'static, ()>) -> Abort;

    /// A tick has ended that began at this monotonic time.
    fn ticked(&self, _partition: &Partition, _began: Duration, _report: &RunReport) {}
}

impl TaskHost for runtime::Handle {
    fn spawn(&self, task: BoxFuture<'static, ()>) -> Abort {
        let task = Self::spawn(self, task);
        Box::new(move || task.abort())
    }
}
