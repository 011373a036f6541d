use std::io;

/// Why a driver could not be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The store keeps no wakes, so nobody can tell what is due.
    #[error("the store keeps no wakes: a driver needs one that does")]
    NoWakes,
    /// There is no async runtime for detached calls.
    #[error("no tokio runtime: start the driver inside one, or name one with `runtime`")]
    NoRuntime,
    /// The system gives no thread.
    #[error("the system gives no thread for the driver")]
    NoThread(#[source] io::Error),
}
