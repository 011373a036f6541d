//! Where detached work runs: the async runtime of the program, or a simulation.

use std::fmt;

use dueline::BoxFuture;
use tokio::runtime;

/// Ends a task that was spawned, wherever it stands. Called or not, it may be dropped at any time.
pub(crate) type Abort = Box<dyn FnOnce() + Send>;

/// Runs tasks beside the driver's own threads.
pub(crate) trait Spawn: Send + Sync + fmt::Debug {
    /// Begins a task.
    fn spawn(&self, task: BoxFuture<'static, ()>) -> Abort;
}

impl Spawn for runtime::Handle {
    fn spawn(&self, task: BoxFuture<'static, ()>) -> Abort {
        let task = Self::spawn(self, task);
        Box::new(move || task.abort())
    }
}
