use super::commit::Commit;
use super::named::{corrupt, require_kind};
use crate::rows::{PauseKey, PauseRow, class, class_end, class_start};
use crate::store::{Batch, Partition, ScanRange};
use crate::timers::{TimerError, TimerKind, Timers};

/// There is a pause row per kind at most.
const PAUSES_MAX: usize = 256;

impl Timers {
    /// Pauses a kind of a partition: ticks that start after it fire none of its timers. It stops
    /// neither schedules nor cancels. Returns whether it was running; a pause that stands keeps its
    /// beginning. Works on a full store as long as its reserve lasts.
    ///
    /// Returns at once; [`Engine::pause_and_drain`](crate::timers::Engine::pause_and_drain) waits for
    /// what is under way.
    ///
    /// # Errors
    /// `Invalid` for kind 0; what the store says.
    pub async fn pause(&self, partition: &Partition, kind: TimerKind) -> Result<bool, TimerError> {
        require_kind(kind)?;
        let key = PauseKey { kind }.encode();
        let row = PauseRow {
            since_ms: self.runtime().now_ms(),
        };
        let mut batch = Batch::new()
            .require_absent(key.clone())
            .put(key, row.encode());
        batch.uses_reserve = true;
        let commit = self.commit(partition, batch).await?;
        Ok(matches!(commit, Commit::Written))
    }

    /// Resumes a kind of a partition; the store sets its wake in the same transaction. Returns
    /// whether it was paused.
    ///
    /// # Errors
    /// `Invalid` for kind 0; what the store says.
    pub async fn resume(&self, partition: &Partition, kind: TimerKind) -> Result<bool, TimerError> {
        require_kind(kind)?;
        let key = PauseKey { kind }.encode();
        let batch = Batch::new().require_present(key.clone()).delete(key);
        let commit = self.commit(partition, batch).await?;
        Ok(matches!(commit, Commit::Written))
    }

    /// The paused kinds of a partition, ascending, each with the time since when, in milliseconds
    /// since 1970.
    ///
    /// # Errors
    /// `Corrupt` if a pause row does not decode; what the store says.
    pub async fn paused(&self, partition: &Partition) -> Result<Vec<(TimerKind, u64)>, TimerError> {
        let mut paused = Vec::new();
        let mut cursor = None;
        loop {
            let (start, end) = (class_start(class::PAUSE), class_end(class::PAUSE));
            let range = ScanRange::new(start, end, PAUSES_MAX).after(cursor);
            let page = self.store().scan(partition, &range).await?;
            for (key, value) in &page.rows {
                let key = PauseKey::decode(key).map_err(|error| corrupt("a pause row", error))?;
                let row = PauseRow::decode(value).map_err(|error| corrupt("a pause row", error))?;
                paused.push((key.kind, row.since_ms));
            }
            cursor = page.next;
            if cursor.is_none() {
                return Ok(paused);
            }
        }
    }
}
