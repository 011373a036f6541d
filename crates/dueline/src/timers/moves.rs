//! The engine's own moves of a timer: a guarded delete and put that keeps its generation.
//!
//! A timer row never changes under its key, so every move guards `Present(old key)` and
//! `Absent(new key)`, and for a named timer the name row that belongs to the old one.

use super::DueTimer;
use crate::limits::{BATCH_BYTES_MAX, DUE_MS_MAX, KEY_BYTES_MAX};
use crate::mutants::{Mutant, planted};
use crate::rows::{
    DeadKey, DeadReason, DeadRow, Failure, Flags, Header, NameKey, NameRow, QuarantineKey,
    TimerKey, TimerRow,
};
use crate::store::{Batch, Key, Precondition, Value};

/// The due that a move gives a timer: no earlier than it was found due.
fn not_before_found(timer: &DueTimer, due_ms: u64) -> u64 {
    if planted(Mutant::SetBackMakesDueEarly) {
        return due_ms;
    }
    due_ms.max(timer.found_due_ms())
}

/// Where a timer goes.
#[derive(Clone, Debug)]
pub(crate) enum Move {
    /// To a later due, with this header.
    Later { due_ms: u64, header: Header },
    /// To the dead class.
    Dead {
        dead_at_ms: u64,
        header: Header,
        reason: DeadReason,
        codec_version: u16,
    },
}

impl Move {
    /// To the attempt after a failure: at this due, no longer claimed, with this many failed
    /// attempts.
    pub(crate) fn retry(timer: &DueTimer, due_ms: u64, attempt: u16, failure: Failure) -> Self {
        Self::Later {
            due_ms: not_before_found(timer, due_ms),
            header: Header {
                flags: Flags {
                    claimed: false,
                    ..timer.flags()
                },
                attempt,
                failure: Some(failure),
                original_due_ms: if planted(Mutant::RetryChangesDueAsAsked) {
                    due_ms
                } else {
                    timer.header().original_due_ms
                },
            },
        }
    }

    /// Claimed until this time, the run counted.
    pub(crate) fn claim(timer: &DueTimer, until_ms: u64) -> Self {
        let header = timer.header();
        Self::Later {
            due_ms: until_ms,
            header: Header {
                flags: Flags {
                    claimed: true,
                    ..timer.flags()
                },
                attempt: header
                    .attempt
                    .saturating_add(u16::from(!planted(Mutant::ClaimNotCounted))),
                ..header.clone()
            },
        }
    }

    /// Given back by a clean stop: due at this time, the run uncounted.
    pub(crate) fn release(timer: &DueTimer, due_ms: u64) -> Self {
        let header = timer.header();
        Self::Later {
            due_ms: not_before_found(timer, due_ms),
            header: Header {
                flags: Flags {
                    claimed: false,
                    ..timer.flags()
                },
                attempt: header
                    .attempt
                    .saturating_sub(u16::from(!planted(Mutant::ReleaseCharges))),
                ..header.clone()
            },
        }
    }

    /// To the dead class with this many failed attempts.
    pub(crate) fn dead(
        timer: &DueTimer,
        reason: DeadReason,
        codec_version: u16,
        attempt: u16,
        failure: Failure,
    ) -> Self {
        Self::Dead {
            dead_at_ms: failure.at_ms,
            header: Header {
                flags: Flags {
                    claimed: false,
                    ..timer.flags()
                },
                attempt,
                failure: Some(failure),
                ..timer.header().clone()
            },
            reason,
            codec_version,
        }
    }

    /// The same move one millisecond later: its place was taken.
    pub(crate) fn one_later(mut self) -> Self {
        match &mut self {
            Self::Later { due_ms: at, .. } | Self::Dead { dead_at_ms: at, .. } => {
                *at = at.saturating_add(1);
            }
        }
        self
    }

    /// The key and value that are put, and the name row that belongs to them.
    pub(crate) fn row(&self, timer: &DueTimer) -> (Key, Value, NameRow) {
        match self {
            Self::Later { due_ms, header } => {
                let key = TimerKey {
                    due_ms: (*due_ms).min(DUE_MS_MAX),
                    ..timer.key().clone()
                };
                let name = NameRow::of(&key, header);
                let kept = if planted(Mutant::MoveCutsPayload) {
                    1
                } else {
                    usize::MAX
                };
                let row = TimerRow {
                    header: header.clone(),
                    payload: timer.payload().slice(..timer.payload().len().min(kept)),
                };
                (key.encode(), row.encode(), name)
            }
            Self::Dead {
                dead_at_ms,
                header,
                reason,
                codec_version,
            } => {
                let from = timer.key();
                let key = DeadKey {
                    kind: from.kind,
                    dead_at_ms: *dead_at_ms,
                    generation: from.generation,
                    reference: from.reference.clone(),
                };
                let row = DeadRow {
                    header: header.clone(),
                    reason: *reason,
                    codec_version: *codec_version,
                    payload: timer.payload().clone(),
                };
                (key.encode(), row.encode(), NameRow::of_dead(&key))
            }
        }
    }
}

/// The guards that a timer is the one that was read: its row, and its name row if it is named.
pub(crate) fn guards(timer: &DueTimer, name: &NameGuard) -> Vec<Precondition> {
    let mut guards = vec![Precondition::Present(timer.key().encode())];
    if planted(Mutant::FireWithoutPresent) {
        guards.clear();
    }
    if let NameGuard::Row { key, value, .. } = name
        && !planted(Mutant::MoveWithoutNameGuard)
    {
        guards.push(Precondition::Equals(key.clone(), value.clone()));
    }
    guards
}

/// How many guards that are.
pub(crate) fn guard_count(name: &NameGuard) -> usize {
    let row = usize::from(!planted(Mutant::FireWithoutPresent));
    match name {
        NameGuard::Row { .. } if !planted(Mutant::MoveWithoutNameGuard) => row + 1,
        NameGuard::Row { .. } | NameGuard::None => row,
    }
}

/// What stands behind a timer's name, guarded by whatever moves it.
#[derive(Clone, Debug)]
pub(crate) enum NameGuard {
    /// The timer has no name, or its name row belongs to another.
    None,
    /// The name row, as it must be.
    Row { key: Key, value: Value },
}

impl NameGuard {
    /// The name row that belongs to the timer as it was read, without reading it.
    pub(crate) fn expected(timer: &DueTimer) -> Self {
        if !timer.is_named() {
            return Self::None;
        }
        Self::Row {
            key: name_key(timer),
            value: NameRow::of(timer.key(), timer.header()).encode(),
        }
    }

    /// From the name row as found, for a timer whose own was not as expected.
    pub(crate) fn found(timer: &DueTimer, value: Option<Value>) -> Self {
        let key = NameKey {
            kind: timer.kind(),
            reference: timer.reference().clone(),
        };
        match value {
            Some(value)
                if NameRow::decode(&value)
                    .is_ok_and(|row| row.target(&key) == timer.key().encode()) =>
            {
                Self::Row {
                    key: key.encode(),
                    value,
                }
            }
            _ => Self::None,
        }
    }
}

/// The key of a timer's name.
pub(crate) fn name_key(timer: &DueTimer) -> Key {
    NameKey {
        kind: timer.kind(),
        reference: timer.reference().clone(),
    }
    .encode()
}

/// The batch of a move. `front` are time bounds, checked first; `effects` ride along.
///
/// Order of preconditions: time bounds, timer row, name row, the effects' own, the new place.
pub(crate) fn move_batch(
    timer: &DueTimer,
    name: &NameGuard,
    to: &Move,
    front: Vec<Precondition>,
    effects: Batch,
) -> Batch {
    let (key, value, name_row) = to.row(timer);
    let mut batch = Batch {
        preconditions: front,
        writes: effects.writes,
        uses_reserve: true,
    };
    batch.preconditions.extend(guards(timer, name));
    batch.preconditions.extend(effects.preconditions);
    if !planted(Mutant::MoveWithoutAbsent) {
        batch = batch.require_absent(key.clone());
    }
    batch = batch.delete(timer.key().encode()).put(key, value);
    if let NameGuard::Row { key, .. } = name
        && !planted(Mutant::MoveLeavesNameBehind)
    {
        batch = batch.put(key.clone(), name_row.encode());
    }
    batch
}

/// The batch that sets a malformed row aside, byte for byte. Its value is guarded unless guard and
/// copy together are more than a batch can hold.
pub(crate) fn quarantine_batch(key: &Key, value: &Value, place: &QuarantineKey) -> Batch {
    let fits = 2 * value.len() + 4 * KEY_BYTES_MAX <= BATCH_BYTES_MAX;
    let guard = if fits {
        Precondition::Equals(key.clone(), value.clone())
    } else {
        Precondition::Present(key.clone())
    };
    let mut batch = Batch::new()
        .require(guard)
        .require_absent(place.encode())
        .delete(key.clone())
        .put(
            place.encode(),
            if planted(Mutant::QuarantineLosesBytes) {
                Value::new()
            } else {
                value.clone()
            },
        );
    batch.uses_reserve = true;
    batch
}
