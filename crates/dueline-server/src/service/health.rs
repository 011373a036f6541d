use std::fmt;

use serde::Serialize;

use super::core::Service;
use super::error::ServiceError;

/// What the service asks of the driver.
pub(crate) trait DriverHealth: Send + Sync + fmt::Debug {
    /// Whether due timers are being fired.
    fn is_running(&self) -> bool;

    /// Counts since the start.
    fn counts(&self) -> DriverCounts;
}

/// What the driver has done since the server started, and is doing now.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(crate) struct DriverCounts {
    /// Deliveries that were accepted, and other timers done.
    pub(crate) fired: u64,
    /// Attempts that failed and are tried again.
    pub(crate) failed: u64,
    /// Timers that went to the dead letters.
    pub(crate) dead: u64,
    /// Malformed rows set aside.
    pub(crate) quarantined: u64,
    /// Deliveries under way.
    pub(crate) calls_running: u64,
    /// Wakes that the audit had to set: each is a bug.
    pub(crate) wakes_repaired: u64,
}

/// Why the server is not ready.
#[derive(Clone, Debug)]
pub(crate) enum NotReady {
    /// The store does not answer.
    Store(ServiceError),
    /// Nothing fires due timers.
    Driver,
}

impl Service {
    /// Whether timers can be scheduled and are fired.
    ///
    /// # Errors
    /// Why not.
    pub(crate) async fn ready(&self) -> Result<(), NotReady> {
        self.store
            .probe()
            .await
            .map_err(|error| NotReady::Store(error.into()))?;
        if self.driver.is_running() {
            Ok(())
        } else {
            Err(NotReady::Driver)
        }
    }
}
