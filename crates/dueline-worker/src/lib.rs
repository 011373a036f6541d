//! Dueline's driver for a Durable Object.
#![forbid(unsafe_code)]

mod alarm;
mod driver;
mod error;
mod hold;
mod mutants;
mod report;
mod storage;
mod store;
mod yielding;

#[cfg(feature = "simulated")]
pub mod simulated;

pub use driver::{ObjectDriver, ObjectOptions, Start};
pub use error::AlarmError;
pub use report::{AlarmInfo, AlarmReport, Restored};
pub use storage::{AlarmWrite, ObjectStorage, SqlTask};
pub use store::ObjectStore;
