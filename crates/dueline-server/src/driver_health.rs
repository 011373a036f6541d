use dueline_tokio::{Handle, Status};

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
        counts(&self.0.status())
    }
}

fn counts(status: &Status) -> DriverCounts {
    let count = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
    DriverCounts {
        fired: status.totals.fired,
        failed: status.totals.failed,
        dead: status.totals.dead,
        quarantined: status.quarantined,
        calls_running: count(status.calls_running),
        partitions_held_back: count(status.partitions_held_back),
        refused_since_ms: status.refused_since_ms,
        wakes_repaired: status.wakes_repaired,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_store_refuses_is_shown_with_its_time() {
        let mut status = Status::default();
        let shown = |status: &Status| {
            let shown = serde_json::to_value(counts(status)).expect("JSON");
            (
                shown["partitions_held_back"].clone(),
                shown["held_back_since"].clone(),
            )
        };
        assert_eq!(shown(&status), (0.into(), serde_json::Value::Null));
        status.partitions_held_back = 2;
        status.refused_since_ms = Some(1_000);
        let since = "1970-01-01T00:00:01.000Z";
        assert_eq!(shown(&status), (2.into(), since.into()));
    }
}
