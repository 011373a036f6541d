use std::fmt;

use serde::{Serialize, Serializer};

use super::core::Service;
use super::error::ServiceError;
use crate::time_text::rfc3339_ms;

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
    /// Partitions held back because the store refuses them, as it does on a full disk.
    pub(crate) partitions_held_back: u64,
    /// Since when it has refused the one that it has refused longest, in milliseconds since 1970.
    #[serde(rename = "held_back_since", serialize_with = "as_time")]
    pub(crate) refused_since_ms: Option<u64>,
    /// Wakes that the audit had to set: each is a bug.
    pub(crate) wakes_repaired: u64,
}

fn as_time<S: Serializer>(at_ms: &Option<u64>, serializer: S) -> Result<S::Ok, S::Error> {
    at_ms.map(rfc3339_ms).serialize(serializer)
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
