use dueline::store::WakeStore;
use dueline::timers::{TimerError, TimerKind};

use super::ObjectDriver;

/// Partitions read at a time.
const PARTITIONS_PER_PAGE: usize = 64;
/// Dead timers looked at together.
const DEAD_PER_PAGE: usize = 64;

impl ObjectDriver {
    /// Brings back the timers that an earlier codec of a kind could not decode, in every partition, and
    /// says how many. For the constructor, behind [`restore`](Self::restore), after a codec has changed.
    /// Costs nothing while no kind has a codec version; else a read for each of those kinds and partition.
    ///
    /// # Errors
    /// What the store says; those that are back stay so.
    pub async fn requeue_undecodable(&self) -> Result<u64, TimerError> {
        let kinds: Vec<(TimerKind, u16)> = self
            .engine
            .registry()
            .iter()
            .map(|(kind, registration)| (kind, registration.codec()))
            .filter(|(_, version)| *version > 0)
            .collect();
        let mut requeued = 0;
        if kinds.is_empty() {
            return Ok(requeued);
        }
        let mut after = None;
        loop {
            let page = self
                .store
                .partitions(after.as_ref(), PARTITIONS_PER_PAGE)
                .await?;
            for partition in &page.partitions {
                for (kind, version) in &kinds {
                    let mut behind = None;
                    loop {
                        let done = self
                            .timers()
                            .requeue_undecodable(
                                partition,
                                *kind,
                                *version,
                                behind.as_ref(),
                                DEAD_PER_PAGE,
                            )
                            .await?;
                        requeued += done.requeued.len() as u64;
                        behind = done.next;
                        if behind.is_none() {
                            break;
                        }
                    }
                }
            }
            after = page.next;
            if after.is_none() {
                return Ok(requeued);
            }
        }
    }
}
