use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use dueline::Bytes;
use serde::Serialize;
use serde_json::value::RawValue;

use super::record::{Envelope, Payload, WebhookRecord};
use crate::time_text::rfc3339_ms;

/// Who is delivered, for the envelope.
pub(super) struct Occurrence<'a> {
    pub(super) partition: &'a str,
    pub(super) id: &'a str,
    pub(super) due_at_ms: u64,
    pub(super) attempt: u16,
}

#[derive(Serialize)]
struct Event<'a> {
    r#type: &'static str,
    timestamp: &'a str,
    data: Data<'a>,
}

#[derive(Serialize)]
struct Data<'a> {
    partition: &'a str,
    id: &'a str,
    due_at: &'a str,
    attempt: u16,
    #[serde(skip_serializing_if = "Option::is_none")]
    payload: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    payload_base64: Option<&'a str>,
}

/// The body of a delivery and its content type.
///
/// # Errors
/// A sentence, if the stored payload is not what it claims to be.
pub(super) fn body(
    record: &WebhookRecord,
    occurrence: &Occurrence<'_>,
) -> Result<(Bytes, &'static str), String> {
    const JSON: &str = "application/json";
    match (record.envelope, &record.payload) {
        (Envelope::Raw, Payload::Json(text)) => {
            Ok((Bytes::copy_from_slice(text.get().as_bytes()), JSON))
        }
        (Envelope::Raw, Payload::Base64(text)) => {
            let bytes = STANDARD
                .decode(text)
                .map_err(|error| format!("the stored payload is not base64: {error}"))?;
            Ok((Bytes::from(bytes), "application/octet-stream"))
        }
        (Envelope::Event, payload) => {
            let due_at = rfc3339_ms(occurrence.due_at_ms);
            let (payload, payload_base64) = match payload {
                Payload::Json(text) => (Some(text.as_ref()), None),
                Payload::Base64(text) => (None, Some(text.as_str())),
            };
            let event = Event {
                r#type: "timer.fired",
                timestamp: &due_at,
                data: Data {
                    partition: occurrence.partition,
                    id: occurrence.id,
                    due_at: &due_at,
                    attempt: occurrence.attempt,
                    payload,
                    payload_base64,
                },
            };
            let bytes = serde_json::to_vec(&event)
                .map_err(|error| format!("the event has no JSON form: {error}"))?;
            Ok((Bytes::from(bytes), JSON))
        }
    }
}
