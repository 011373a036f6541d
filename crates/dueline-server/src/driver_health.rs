use dueline_tokio::Handle;

use crate::service::{DriverCounts, DriverHealth};

/// The native driver as the service sees it.
#[derive(Debug)]
pub(crate) struct HandleHealth(pub(crate) Handle);

impl DriverHealth for HandleHealth {
    fn is_running(&self) -> bool {
        let status = self.0.status();
        !status.stopping && !status.paused
    }

    fn counts(&self) -> DriverCounts {
        let status = self.0.status();
        DriverCounts {
            fired: status.totals.fired,
            failed: status.totals.failed,
            dead: status.totals.dead,
            quarantined: status.quarantined,
            calls_running: u64::try_from(status.calls_running).unwrap_or(u64::MAX),
            wakes_repaired: status.wakes_repaired,
        }
    }
}
