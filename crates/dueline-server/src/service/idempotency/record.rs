use dueline::rows::{Failure, NameKey, NameRow, NameState, TimerRow, class, is_of_class};
use dueline::store::{Batch, Precondition, StoreError, Value, Write};
use dueline::timers::{TimerState, TimerView};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::service::answer::Outcome;
use crate::service::shown::Standing;

const RECORD_VERSION: u8 = 1;

/// What is remembered of a request that was carried out.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Record {
    v: u8,
    pub(super) fingerprint: String,
    pub(super) expires_at_ms: u64,
    /// The answer; absent for a batch, whose requests have records of their own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) answer: Option<Recorded>,
}

/// The part of an answer that the same request would not lead to again.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Recorded {
    pub(crate) outcome: Outcome,
    pub(crate) id: String,
    due_at_ms: u64,
    next_at_ms: u64,
    state: StoredState,
    attempt: u16,
    generation: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    last_error: Option<StoredFailure>,
    /// The webhook record, where the request does not hold all of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    record: Option<Box<RawValue>>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct StoredFailure {
    at_ms: u64,
    error: String,
}

impl From<Failure> for StoredFailure {
    fn from(failure: Failure) -> Self {
        Self {
            at_ms: failure.at_ms,
            error: failure.error,
        }
    }
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum StoredState {
    Pending,
    Retrying,
    Claimed,
    Dead,
}

impl From<TimerState> for StoredState {
    fn from(state: TimerState) -> Self {
        match state {
            TimerState::Pending => Self::Pending,
            TimerState::Retrying => Self::Retrying,
            TimerState::Claimed => Self::Claimed,
            TimerState::Dead => Self::Dead,
        }
    }
}

impl From<StoredState> for TimerState {
    fn from(state: StoredState) -> Self {
        match state {
            StoredState::Pending => Self::Pending,
            StoredState::Retrying => Self::Retrying,
            StoredState::Claimed => Self::Claimed,
            StoredState::Dead => Self::Dead,
        }
    }
}

impl Record {
    pub(super) fn new(fingerprint: &str, expires_at_ms: u64, answer: Option<Recorded>) -> Self {
        Self {
            v: RECORD_VERSION,
            fingerprint: fingerprint.to_owned(),
            expires_at_ms,
            answer,
        }
    }

    pub(super) fn encode(&self) -> Result<Value, StoreError> {
        encode(self)
    }

    pub(super) fn decode(value: &Value) -> Result<Self, StoreError> {
        let record: Self = decode(value)?;
        if record.v != RECORD_VERSION {
            return Err(StoreError::unsupported(
                "an idempotency record was written by a newer server",
            ));
        }
        Ok(record)
    }
}

impl Recorded {
    /// The answer that a batch of the engine's verbs leads to; `None` if it schedules nothing.
    pub(super) fn of_batch(batch: &Batch, moved: bool, keep_record: bool) -> Option<Self> {
        let (name, row) = batch.writes.iter().find_map(|write| match write {
            Write::Put(key, value) if is_of_class(key, class::NAME) => {
                Some((NameKey::decode(key).ok()?, NameRow::decode(value).ok()?))
            }
            _ => None,
        })?;
        let timer = batch.writes.iter().find_map(|write| match write {
            Write::Put(key, value) if is_of_class(key, class::TIMER) => {
                TimerRow::decode(value).ok()
            }
            _ => None,
        })?;
        let replaces = batch.preconditions.iter().any(|guard| match guard {
            Precondition::Equals(key, value) if is_of_class(key, class::NAME) => {
                NameRow::decode(value).is_ok_and(|row| row.state != NameState::Dead)
            }
            _ => false,
        });
        let outcome = match (moved, replaces) {
            (true, _) => Outcome::Moved,
            (false, true) => Outcome::Replaced,
            (false, false) => Outcome::Created,
        };
        Some(Self {
            outcome,
            id: String::from_utf8_lossy(&name.reference).into_owned(),
            due_at_ms: timer.header.original_due_ms,
            next_at_ms: row.due_ms,
            state: TimerState::from(row.state).into(),
            attempt: timer.header.attempt,
            generation: row.generation,
            last_error: timer.header.failure.map(StoredFailure::from),
            record: keep_record.then(|| raw(&timer.payload)).flatten(),
        })
    }

    /// The answer of a request that found nothing to do.
    pub(super) fn of_view(view: &TimerView, now_ms: u64, keep_record: bool) -> Self {
        Self {
            outcome: Outcome::Unchanged,
            id: String::from_utf8_lossy(&view.reference).into_owned(),
            due_at_ms: view.due_at_ms,
            next_at_ms: view.next_at_ms,
            state: view.state_at(now_ms).into(),
            attempt: view.attempt,
            generation: view.generation,
            last_error: view.last_error.clone().map(StoredFailure::from),
            record: keep_record.then(|| raw(&view.payload)).flatten(),
        }
    }

    /// How the timer stood.
    pub(crate) fn standing(&self) -> Standing {
        Standing {
            due_at_ms: self.due_at_ms,
            next_at_ms: self.next_at_ms,
            state: self.state.into(),
            attempt: self.attempt,
            generation: self.generation,
            last_error: self
                .last_error
                .as_ref()
                .map(|failure| Failure::new(failure.at_ms, &failure.error)),
        }
    }

    /// The webhook record, if it was kept.
    pub(crate) fn record(&self) -> Option<&RawValue> {
        self.record.as_deref()
    }

    pub(super) fn encode(&self) -> Result<Value, StoreError> {
        encode(self)
    }

    pub(super) fn decode(value: &Value) -> Result<Self, StoreError> {
        decode(value)
    }
}

fn raw(payload: &[u8]) -> Option<Box<RawValue>> {
    serde_json::from_slice(payload).ok()
}

fn encode<T: Serialize>(value: &T) -> Result<Value, StoreError> {
    serde_json::to_vec(value)
        .map(Value::from)
        .map_err(|_| StoreError::invalid("an idempotency record has no JSON form"))
}

fn decode<T: for<'de> Deserialize<'de>>(value: &Value) -> Result<T, StoreError> {
    serde_json::from_slice(value).map_err(|error| {
        StoreError::corrupt("an idempotency record does not decode").with_source(error)
    })
}
