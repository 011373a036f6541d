//! The native driver of Dueline.

mod builder;
mod busy;
mod error;
mod handle;
mod host;
mod looks;
mod plan;
mod scheduler;
mod shared;
mod shutdown;
mod signal;
mod status;
mod store;
mod wall;
mod work;

pub use builder::{Driver, DriverBuilder};
pub use error::StartError;
pub use handle::Handle;
pub use host::{OsEntropy, PreciseSleep, SystemClock, system_runtime};
pub use status::{DrainReport, ShutdownReport, Status};
pub use store::DriverStore;

/// The program on the front page of the repository must compile.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
