use std::collections::BTreeMap;

use dueline::Bytes;
use dueline::timers::RetryPolicy;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// Deadline of a delivery unless the timer says otherwise, in milliseconds.
pub(crate) const DEADLINE_MS_DEFAULT: u64 = 30_000;

/// How a delivery is retried unless the timer says otherwise.
pub(crate) const RETRY_DEFAULT: Retry = Retry {
    attempts_max: 20,
    initial_ms: 5_000,
    max_ms: 600_000,
};

const RECORD_VERSION: u8 = 1;

/// What a webhook timer carries as its payload: a JSON record, written with its version in front so
/// that a later binary can read what an earlier one wrote.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct WebhookRecord {
    v: u8,
    pub(crate) target: Target,
    #[serde(default, skip_serializing_if = "is_default_retry")]
    pub(crate) retry: Retry,
    #[serde(
        default = "deadline_default",
        skip_serializing_if = "is_default_deadline"
    )]
    pub(crate) deadline_ms: u64,
    #[serde(default, skip_serializing_if = "is_default_envelope")]
    pub(crate) envelope: Envelope,
    /// The delay that the due was asked for with, so that the same request is known again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) delay_ms: Option<u64>,
    pub(crate) payload: Payload,
}

/// Where a webhook goes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Target {
    /// The normalised URL.
    pub(crate) url: String,
    /// Names in lower case.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) headers: BTreeMap<String, String>,
}

/// How a delivery is retried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Retry {
    pub(crate) attempts_max: u16,
    pub(crate) initial_ms: u64,
    pub(crate) max_ms: u64,
}

impl Default for Retry {
    fn default() -> Self {
        RETRY_DEFAULT
    }
}

impl Retry {
    /// The engine's policy of this.
    pub(crate) fn policy(self) -> RetryPolicy {
        RetryPolicy {
            attempts_max: Some(self.attempts_max),
            initial_ms: self.initial_ms,
            max_ms: self.max_ms,
            ..RetryPolicy::default()
        }
    }
}

/// What the body of a delivery is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Envelope {
    /// `{"type": "timer.fired", "timestamp": ..., "data": {...}}`.
    #[default]
    Event,
    /// The payload alone.
    Raw,
}

impl Envelope {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Event => "event",
            Self::Raw => "raw",
        }
    }
}

/// What the timer carries for its receiver.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Payload {
    /// A JSON text, kept as it was written but for blanks: numbers of any size and the order of
    /// fields stay.
    Json(Box<RawValue>),
    /// The standard base64 of bytes.
    Base64(String),
}

impl WebhookRecord {
    /// A record with nothing but its target and payload.
    pub(crate) fn new(target: Target, payload: Payload) -> Self {
        Self {
            v: RECORD_VERSION,
            target,
            retry: RETRY_DEFAULT,
            deadline_ms: DEADLINE_MS_DEFAULT,
            envelope: Envelope::default(),
            delay_ms: None,
            payload,
        }
    }

    /// The record's bytes.
    ///
    /// # Errors
    /// What the encoder says; a record that was built here always has a JSON form.
    pub(crate) fn encode(&self) -> Result<Bytes, serde_json::Error> {
        serde_json::to_vec(self).map(Bytes::from)
    }

    /// Reads a record.
    ///
    /// # Errors
    /// A sentence, if the bytes are no record or one of a later version.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, String> {
        let record: Self = serde_json::from_slice(bytes)
            .map_err(|error| format!("not a webhook record: {error}"))?;
        if record.v != RECORD_VERSION {
            return Err(format!(
                "a webhook record of version {}, this server reads version {RECORD_VERSION}",
                record.v
            ));
        }
        Ok(record)
    }
}

/// The part of a record that says how its delivery is run; reads nothing else.
#[derive(Clone, Copy, Debug, Deserialize)]
pub(super) struct Running {
    #[serde(default)]
    pub(super) retry: Retry,
    #[serde(default = "deadline_default")]
    pub(super) deadline_ms: u64,
}

impl Running {
    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        serde_json::from_slice(bytes).ok()
    }
}

fn deadline_default() -> u64 {
    DEADLINE_MS_DEFAULT
}

fn is_default_deadline(deadline_ms: &u64) -> bool {
    *deadline_ms == DEADLINE_MS_DEFAULT
}

fn is_default_retry(retry: &Retry) -> bool {
    *retry == RETRY_DEFAULT
}

fn is_default_envelope(envelope: &Envelope) -> bool {
    *envelope == Envelope::default()
}
