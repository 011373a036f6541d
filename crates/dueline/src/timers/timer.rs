use bytes::Bytes;
use serde::Serialize;

use super::{TimerError, TimerKind};
use crate::limits::{DUE_MS_MAX, PAYLOAD_BYTES_MAX, REFERENCE_BYTES_MAX};
use crate::rows::NameKey;

/// A timer to be scheduled: what, when, and for whom.
///
/// ```
/// use dueline::timers::{Timer, TimerKind};
///
/// const HOLD: TimerKind = TimerKind(16);
/// let timer = Timer::new(HOLD, "seat-12A").due_at(1_767_225_600_000).payload("hold-77").named();
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct Timer {
    pub(crate) kind: TimerKind,
    pub(crate) reference: Bytes,
    pub(crate) due_at_ms: u64,
    pub(crate) payload: Bytes,
    pub(crate) named: bool,
}

impl Timer {
    /// A timer of this kind, due at once, without a payload. The reference is the caller's identity
    /// of it, 0 to 512 bytes.
    pub fn new(kind: TimerKind, reference: impl Into<Bytes>) -> Self {
        Self {
            kind,
            reference: reference.into(),
            due_at_ms: 0,
            payload: Bytes::new(),
            named: false,
        }
    }

    /// Due at this time, in milliseconds since 1970; at most 9999-12-31T23:59:59.999Z. A time in
    /// the past is due at once, and its lateness counts from it.
    pub fn due_at(mut self, due_at_ms: u64) -> Self {
        self.due_at_ms = due_at_ms;
        self
    }

    /// Carries these bytes, at most 480 KiB. The engine never looks at them.
    pub fn payload(mut self, payload: impl Into<Bytes>) -> Self {
        self.payload = payload.into();
        self
    }

    /// Carries this value as JSON, for a [`TypedHandler`](super::TypedHandler).
    ///
    /// # Errors
    /// `Invalid` if the value has no JSON form.
    pub fn json<T: Serialize>(self, payload: &T) -> Result<Self, TimerError> {
        let bytes = serde_json::to_vec(payload).map_err(|error| {
            TimerError::invalid(format!("the payload has no JSON form: {error}"))
        })?;
        Ok(self.payload(bytes))
    }

    /// Makes (kind, reference) unique in the partition: the timer can be read, replaced and
    /// cancelled by name.
    pub fn named(mut self) -> Self {
        self.named = true;
        self
    }

    /// Where its name lies, if it has one.
    pub(crate) fn name(&self) -> NameKey {
        NameKey {
            kind: self.kind,
            reference: self.reference.clone(),
        }
    }

    pub(crate) fn validate(&self) -> Result<(), TimerError> {
        if !self.kind.is_valid() {
            return Err(TimerError::invalid("a timer needs a kind from 1 to 255"));
        }
        if self.reference.len() > REFERENCE_BYTES_MAX {
            return Err(TimerError::invalid(format!(
                "a reference has at most {REFERENCE_BYTES_MAX} bytes, this one has {}",
                self.reference.len()
            )));
        }
        validate_payload(&self.payload)?;
        validate_due(self.due_at_ms)
    }
}

pub(crate) fn validate_payload(payload: &Bytes) -> Result<(), TimerError> {
    if payload.len() > PAYLOAD_BYTES_MAX {
        return Err(TimerError::invalid(format!(
            "a payload has at most {PAYLOAD_BYTES_MAX} bytes, this one has {}",
            payload.len()
        )));
    }
    Ok(())
}

pub(crate) fn validate_due(due_at_ms: u64) -> Result<(), TimerError> {
    if due_at_ms > DUE_MS_MAX {
        return Err(TimerError::invalid(format!(
            "a due time is at most {DUE_MS_MAX} ms (9999-12-31T23:59:59.999Z), this one is \
             {due_at_ms} ms"
        )));
    }
    Ok(())
}
