//! A timer as an answer shows it.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use dueline::rows::Failure;
use dueline::timers::{TimerState, TimerView};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::time_text::{rfc3339_ms, span_text};
use crate::webhook::{Payload, Retry, Target, WebhookRecord};

/// What changes over the life of a timer.
#[derive(Clone, Debug)]
pub(crate) struct Standing {
    /// The due as asked, in milliseconds since 1970.
    pub(crate) due_at_ms: u64,
    /// When it is looked at next, in milliseconds since 1970.
    pub(crate) next_at_ms: u64,
    pub(crate) state: TimerState,
    /// Failed or claimed runs.
    pub(crate) attempt: u16,
    pub(crate) generation: u64,
    pub(crate) last_error: Option<Failure>,
}

impl Standing {
    /// How a timer of the store stands at this time.
    pub(crate) fn of(view: &TimerView, now_ms: u64) -> Self {
        Self {
            due_at_ms: view.due_at_ms,
            next_at_ms: view.next_at_ms,
            state: view.state_at(now_ms),
            attempt: view.attempt,
            generation: view.generation,
            last_error: view.last_error.clone(),
        }
    }
}

/// A timer.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct TimerJson {
    pub(crate) id: String,
    pub(crate) partition: String,
    pub(crate) due_at: String,
    pub(crate) state: &'static str,
    /// When a retrying timer is tried again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) next_attempt_at: Option<String>,
    pub(crate) attempt: u16,
    /// A text: numbers of this size are not safe in JSON.
    pub(crate) generation: String,
    pub(crate) last_error: Option<LastErrorJson>,
    #[serde(flatten)]
    pub(crate) delivery: DeliveryJson,
}

/// The last failure of a timer.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct LastErrorJson {
    pub(crate) at: String,
    pub(crate) detail: String,
}

impl From<&Failure> for LastErrorJson {
    fn from(failure: &Failure) -> Self {
        Self {
            at: rfc3339_ms(failure.at_ms),
            detail: failure.error.clone(),
        }
    }
}

/// What is delivered, where and how.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct DeliveryJson {
    #[serde(skip_serializing_if = "Option::is_none")]
    payload: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    payload_base64: Option<String>,
    target: Option<TargetJson>,
    retry: Option<RetryJson>,
    deadline: Option<String>,
    envelope: Option<&'static str>,
}

#[derive(Clone, Debug, Serialize)]
struct TargetJson {
    url: String,
    headers: BTreeMap<String, String>,
}

#[derive(Clone, Debug, Serialize)]
struct RetryJson {
    attempts_max: u16,
    initial: String,
    max: String,
}

impl From<Target> for TargetJson {
    fn from(target: Target) -> Self {
        Self {
            url: target.url,
            headers: target.headers,
        }
    }
}

impl From<Retry> for RetryJson {
    fn from(retry: Retry) -> Self {
        Self {
            attempts_max: retry.attempts_max,
            initial: span_text(retry.initial_ms),
            max: span_text(retry.max_ms),
        }
    }
}

impl From<WebhookRecord> for DeliveryJson {
    fn from(record: WebhookRecord) -> Self {
        let (payload, payload_base64) = match record.payload {
            Payload::Json(text) => (Some(text), None),
            Payload::Base64(text) => (None, Some(text)),
        };
        Self {
            payload,
            payload_base64,
            target: Some(record.target.into()),
            retry: Some(record.retry.into()),
            deadline: Some(span_text(record.deadline_ms)),
            envelope: Some(record.envelope.as_str()),
        }
    }
}

impl DeliveryJson {
    /// What a stored payload delivers; one that does not decode is shown as the bytes it is.
    pub(crate) fn of_payload(payload: &[u8]) -> Self {
        match WebhookRecord::decode(payload) {
            Ok(record) => record.into(),
            Err(_) => Self {
                payload_base64: Some(STANDARD.encode(payload)),
                ..Self::default()
            },
        }
    }
}

impl TimerJson {
    pub(crate) fn new(
        partition: &str,
        id: &str,
        standing: &Standing,
        delivery: DeliveryJson,
    ) -> Self {
        let retrying = standing.state == TimerState::Retrying;
        Self {
            id: id.to_owned(),
            partition: partition.to_owned(),
            due_at: rfc3339_ms(standing.due_at_ms),
            state: standing.state.as_str(),
            next_attempt_at: retrying.then(|| rfc3339_ms(standing.next_at_ms)),
            attempt: standing.attempt,
            generation: standing.generation.to_string(),
            last_error: standing.last_error.as_ref().map(LastErrorJson::from),
            delivery,
        }
    }

    /// A timer of the store.
    pub(crate) fn of_view(partition: &str, view: &TimerView, now_ms: u64) -> Self {
        Self::new(
            partition,
            &String::from_utf8_lossy(&view.reference),
            &Standing::of(view, now_ms),
            DeliveryJson::of_payload(&view.payload),
        )
    }
}
