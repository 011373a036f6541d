use bytes::Bytes;

use super::commit::{Commit, Tries};
use super::draft::{Draft, outcome_over};
use super::named::{NameEntry, corrupt, name_key};
use super::{Scheduled, TimerState};
use crate::rows::{DeadReason, DeadRow, Flags, Header, TimerRow};
use crate::store::{Partition, Value};
use crate::timers::timer::{validate_due, validate_payload};
use crate::timers::{TimerError, TimerKind, Timers};

/// What to change of a named timer; what is `None` stays.
///
/// ```
/// use dueline::timers::Change;
///
/// let later = Change { due_at_ms: Some(61_000), ..Change::default() };
/// assert_eq!(later.payload, None);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Change {
    /// The new due, in milliseconds since 1970.
    pub due_at_ms: Option<u64>,
    /// The new payload, at most 480 KiB.
    pub payload: Option<Bytes>,
}

impl Change {
    fn validate(&self) -> Result<(), TimerError> {
        if self.due_at_ms.is_none() && self.payload.is_none() {
            return Err(TimerError::invalid(
                "there is nothing to change: give a due, a payload or both",
            ));
        }
        if let Some(due_at_ms) = self.due_at_ms {
            validate_due(due_at_ms)?;
        }
        match &self.payload {
            Some(payload) => validate_payload(payload),
            None => Ok(()),
        }
    }

    fn draft(&self, seen: &NameEntry, value: &Value) -> Result<Draft, TimerError> {
        let old = read_old(seen, value)?;
        let (due_ms, header) = match (self.due_at_ms, seen.state()) {
            (Some(due_ms), _) => (due_ms, fresh(&old.header, due_ms)),
            (None, TimerState::Pending) => {
                let header = fresh(&old.header, old.header.original_due_ms);
                (seen.row.due_ms, header)
            }
            (None, TimerState::Retrying) => (seen.row.due_ms, old.header),
            (None, TimerState::Claimed) => {
                let due_ms = old.header.original_due_ms;
                (due_ms, fresh(&old.header, due_ms))
            }
            (None, TimerState::Dead) => {
                return Err(TimerError::invalid(
                    "the timer is dead: give it a due as well, or requeue it",
                ));
            }
        };
        Ok(Draft {
            kind: seen.name.kind,
            reference: seen.name.reference.clone(),
            due_ms,
            row: TimerRow {
                header,
                payload: self.payload.clone().unwrap_or(old.payload),
            },
            outcome: outcome_over(Some(seen)),
        })
    }
}

/// The header of a new scheduling that goes on from an old one.
fn fresh(old: &Header, original_due_ms: u64) -> Header {
    Header {
        flags: Flags {
            named: true,
            claimed: false,
            recurring: old.flags.recurring,
        },
        attempt: 0,
        original_due_ms,
        failure: None,
    }
}

fn read_old(seen: &NameEntry, value: &Value) -> Result<TimerRow, TimerError> {
    if seen.state() != TimerState::Dead {
        return TimerRow::decode(value).map_err(|error| corrupt("the timer's row", error));
    }
    let dead = DeadRow::decode(value).map_err(|error| corrupt("the dead timer's row", error))?;
    if dead.reason == DeadReason::UndecodableHeader {
        return Err(TimerError::invalid(
            "the timer was set aside because its row does not decode: requeue or purge it, or \
             schedule it anew",
        ));
    }
    Ok(TimerRow {
        header: dead.header,
        payload: dead.payload,
    })
}

impl Timers {
    /// Gives the timer of this name another due, its payload kept, as a new scheduling: attempts
    /// start over, a run in progress settles nothing, a dead one comes back to life.
    ///
    /// # Errors
    /// `NotFound`; `GenerationMismatch` if `if_match` names another generation; `Invalid` for a due
    /// or name over a limit; `Contended`; what the store says.
    pub async fn reschedule(
        &self,
        partition: &Partition,
        kind: TimerKind,
        reference: &Bytes,
        due_at_ms: u64,
        if_match: Option<u64>,
    ) -> Result<Scheduled, TimerError> {
        let change = Change {
            due_at_ms: Some(due_at_ms),
            payload: None,
        };
        self.update(partition, kind, reference, change, if_match)
            .await
    }

    /// Changes the due, the payload or both of the timer of this name, as a new scheduling.
    ///
    /// With a due: as [`reschedule`](Self::reschedule). With a payload alone a pending timer keeps
    /// its due, a retrying one its next attempt and its attempts, and one that is claimed is pending
    /// again at the due it was asked for; a dead one is refused as `Invalid`, for it has no due.
    ///
    /// # Errors
    /// As [`reschedule`](Self::reschedule); `Invalid` also for an empty change; `Corrupt` if the
    /// row does not decode.
    pub async fn update(
        &self,
        partition: &Partition,
        kind: TimerKind,
        reference: &Bytes,
        change: Change,
        if_match: Option<u64>,
    ) -> Result<Scheduled, TimerError> {
        change.validate()?;
        let name = name_key(kind, reference)?;
        let mut tries = Tries::default();
        loop {
            let Some((entry, value)) = self.read_named(partition, &name).await? else {
                return Err(TimerError::NotFound);
            };
            entry.require_generation(if_match)?;
            let plan = self.place(change.draft(&entry, &value)?, Some(&entry));
            match self.commit(partition, plan.batch).await? {
                Commit::Written => return Ok(plan.scheduled),
                Commit::Lost { index, .. } if plan.guards.is_collision(index) => {
                    tries.collided()?;
                }
                Commit::Lost { .. } => tries.changed()?,
            }
        }
    }
}
