use bytes::Bytes;

use super::TimerState;
use crate::rows::{DeadKey, DeadRow, Failure, TimerKey, TimerRow};
use crate::store::{Key, Value};
use crate::timers::TimerKind;

/// A timer as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimerView {
    /// The kind of the timer.
    pub kind: TimerKind,
    /// The caller's identity of it.
    pub reference: Bytes,
    /// Whether it has a name.
    pub named: bool,
    /// The due as it was asked for, in milliseconds since 1970.
    pub due_at_ms: u64,
    /// When it is looked at next, in milliseconds since 1970: its due, its next attempt, or the end
    /// of its claim. Of a dead timer: when it died.
    pub next_at_ms: u64,
    /// What it is doing, as stored; see [`state_at`](Self::state_at).
    pub state: TimerState,
    /// Failed or claimed runs so far.
    pub attempt: u16,
    /// Which scheduling it is. Opaque: compare it for equality only.
    pub generation: u64,
    /// The caller's bytes. Of a row whose header does not decode: the whole value as found, and
    /// `last_error` says so.
    pub payload: Bytes,
    /// The last failure, if any. A requeued timer still shows the one it died of.
    pub last_error: Option<Failure>,
}

impl TimerView {
    /// What it is doing at this time: a claim that has ended counts as retrying, for the run it was
    /// made for was cut and the timer is due again.
    pub fn state_at(&self, now_ms: u64) -> TimerState {
        if self.state == TimerState::Claimed && self.next_at_ms <= now_ms {
            TimerState::Retrying
        } else {
            self.state
        }
    }

    /// Reads a row of the timer or the dead class; `None` if its key does not decode.
    pub(super) fn read(key: &Key, value: &Value) -> Option<Self> {
        if let Ok(key) = TimerKey::decode(key) {
            return Some(Self::of_timer(key, value));
        }
        DeadKey::decode(key)
            .ok()
            .map(|key| Self::of_dead(key, value))
    }

    fn of_timer(key: TimerKey, value: &Value) -> Self {
        match TimerRow::decode(value) {
            Ok(row) => Self {
                kind: key.kind,
                reference: key.reference,
                named: row.header.flags.named,
                due_at_ms: row.header.original_due_ms,
                next_at_ms: key.due_ms,
                state: TimerState::of_row(&row.header),
                attempt: row.header.attempt,
                generation: key.generation,
                payload: row.payload,
                last_error: row.header.failure,
            },
            Err(error) => Self {
                kind: key.kind,
                reference: key.reference,
                named: false,
                due_at_ms: key.due_ms,
                next_at_ms: key.due_ms,
                state: TimerState::Pending,
                attempt: 0,
                generation: key.generation,
                payload: value.clone(),
                last_error: Some(Failure::new(key.due_ms, &error.to_string())),
            },
        }
    }

    fn of_dead(key: DeadKey, value: &Value) -> Self {
        let (named, due_at_ms, attempt, payload, last_error) = match DeadRow::decode(value) {
            Ok(row) => (
                row.header.flags.named,
                row.header.original_due_ms,
                row.header.attempt,
                row.payload,
                row.header.failure,
            ),
            Err(error) => (
                false,
                key.dead_at_ms,
                0,
                value.clone(),
                Some(Failure::new(key.dead_at_ms, &error.to_string())),
            ),
        };
        Self {
            kind: key.kind,
            reference: key.reference,
            named,
            due_at_ms,
            next_at_ms: key.dead_at_ms,
            state: TimerState::Dead,
            attempt,
            generation: key.generation,
            payload,
            last_error,
        }
    }

    /// The same timer, known by its name row: whatever its header says or fails to say.
    pub(super) fn under_name(mut self, state: TimerState) -> Self {
        self.named = true;
        self.state = state;
        self
    }
}
