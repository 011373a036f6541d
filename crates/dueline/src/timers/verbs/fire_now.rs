use bytes::Bytes;

use super::commit::Tries;
use super::moves::Move;
use super::named::name_key;
use super::{Scheduled, TimerState};
use crate::rows::TimerKey;
use crate::store::Partition;
use crate::timers::{TimerError, TimerKind, Timers};

impl Timers {
    /// Makes the timer of this name due now: the same scheduling, so its generation, occurrence id,
    /// payload, attempts and the due as asked stay.
    ///
    /// A retrying one skips the rest of its back-off; a dead one is requeued. One that is due
    /// already, or claimed, is running or about to: it is left alone (`Kept`).
    ///
    /// # Errors
    /// `NotFound`; `Invalid` for kind 0 or a reference over 512 bytes; `Contended`; what the store
    /// says.
    pub async fn fire_now(
        &self,
        partition: &Partition,
        kind: TimerKind,
        reference: &Bytes,
    ) -> Result<Scheduled, TimerError> {
        let name = name_key(kind, reference)?;
        let mut tries = Tries::default();
        loop {
            let Some((entry, value)) = self.read_named(partition, &name).await? else {
                return Err(TimerError::NotFound);
            };
            let now_ms = self.runtime().now_ms();
            let planned = match entry.state() {
                TimerState::Dead => {
                    super::requeue::plan(super::requeue::DeadRead::named(entry, value), now_ms)?
                }
                TimerState::Claimed => return Ok(Scheduled::kept(&entry)),
                _ if entry.row.due_ms <= now_ms => return Ok(Scheduled::kept(&entry)),
                state => Move {
                    from: entry.target(),
                    to: TimerKey {
                        kind,
                        due_ms: now_ms,
                        generation: entry.row.generation,
                        reference: reference.clone(),
                    },
                    value,
                    state,
                    name: Some(entry),
                },
            };
            if let Some(scheduled) = self.run_move(partition, planned).await? {
                return Ok(scheduled);
            }
            tries.changed()?;
        }
    }
}
