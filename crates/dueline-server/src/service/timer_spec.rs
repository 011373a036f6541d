use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use dueline::limits::{DUE_MS_MAX, PAYLOAD_BYTES_MAX};
use serde_json::value::RawValue;

use super::field_errors::{FieldErrors, pointer_to};
use super::fields::Fields;
use super::json_text::compact;
use super::target_spec::target;
use crate::time_text::{parse_rfc3339_ms, parse_span_ms};
use crate::webhook::{DEADLINE_MS_DEFAULT, Envelope, Payload, RETRY_DEFAULT, Retry, WebhookRecord};

const DEADLINE_MS_MAX: u64 = 600_000;
const RETRY_MS_MAX: u64 = 30 * 24 * 3_600_000;

/// When a timer is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DueWish {
    /// At this time, in milliseconds since 1970.
    At(u64),
    /// This long after it is first accepted, in milliseconds.
    Delay(u64),
}

impl DueWish {
    /// The due, if the timer is accepted now.
    pub(crate) fn due_at_ms(self, now_ms: u64) -> u64 {
        match self {
            Self::At(at_ms) => at_ms,
            Self::Delay(delay_ms) => now_ms.saturating_add(delay_ms).min(DUE_MS_MAX),
        }
    }

    fn delay_ms(self) -> Option<u64> {
        match self {
            Self::At(_) => None,
            Self::Delay(delay_ms) => Some(delay_ms),
        }
    }
}

/// A timer as a request describes it.
#[derive(Clone, Debug)]
pub(crate) struct TimerSpec {
    /// When; absent only from a change that leaves the due as it is.
    pub(crate) due: Option<DueWish>,
    /// What is delivered, where and how.
    pub(crate) record: WebhookRecord,
}

/// Decodes the fields of a timer. The fields are left for the caller to finish: a batch has an `id`
/// beside them.
pub(crate) fn timer_spec(
    fields: &mut Fields,
    now_ms: u64,
    allow_private: bool,
    errors: &mut FieldErrors,
) -> Option<TimerSpec> {
    let due = due(fields, now_ms, errors);
    let payload = payload(fields, errors);
    if !fields.has("target") {
        let pointer = pointer_to(fields.pointer(), "target");
        errors.add(
            pointer,
            "a timer needs a target: {\"url\": \"https://...\"}",
        );
    }
    let target = fields
        .take_object("target", errors)
        .and_then(|fields| target(fields, allow_private, errors));
    let retry = match fields.take_object("retry", errors) {
        Some(fields) => retry(fields, errors),
        None => Some(RETRY_DEFAULT),
    };
    let deadline_ms = fields
        .take_parsed("deadline", errors, |text| {
            span_within(text, DEADLINE_MS_MAX)
        })
        .unwrap_or(DEADLINE_MS_DEFAULT);
    let envelope = fields
        .take_parsed("envelope", errors, envelope)
        .unwrap_or_default();
    let mut record = WebhookRecord::new(target?, payload?);
    record.retry = retry?;
    record.deadline_ms = deadline_ms;
    record.envelope = envelope;
    record.delay_ms = due.and_then(DueWish::delay_ms);
    Some(TimerSpec { due, record })
}

/// Adds the error of a timer without a due.
pub(crate) fn require_due(fields: &Fields, had_due: bool, errors: &mut FieldErrors) {
    if !had_due {
        errors.add(
            fields.pointer(),
            "a timer needs due_at (\"2027-01-31T09:00:00Z\") or delay (\"30m\")",
        );
    }
}

fn due(fields: &mut Fields, now_ms: u64, errors: &mut FieldErrors) -> Option<DueWish> {
    let both = fields.has("due_at") && fields.has("delay");
    let at = fields.take_parsed("due_at", errors, parse_rfc3339_ms);
    let delay = fields.take_parsed("delay", errors, |text| {
        let delay_ms = parse_span_ms(text)?;
        match now_ms.checked_add(delay_ms) {
            Some(due_at_ms) if due_at_ms <= DUE_MS_MAX => Ok(delay_ms),
            _ => Err("this delay ends after 9999-12-31T23:59:59.999Z".to_owned()),
        }
    });
    match (at, delay) {
        (Some(_), Some(_)) if both => {
            let pointer = pointer_to(fields.pointer(), "delay");
            errors.add(pointer, "give due_at or delay, not both");
            None
        }
        (at, delay) => at.map(DueWish::At).or(delay.map(DueWish::Delay)),
    }
}

fn payload(fields: &mut Fields, errors: &mut FieldErrors) -> Option<Payload> {
    let json = fields.take_with_null("payload");
    let base64 = fields.take_text("payload_base64", errors);
    let (pointer, payload) = match (json, base64) {
        (Some(_), Some((pointer, _))) => {
            errors.add(pointer, "give payload or payload_base64, not both");
            return None;
        }
        (Some(field), None) => match compact(&field.raw) {
            Ok(text) => (field.pointer, Payload::Json(text)),
            Err(detail) => {
                errors.add(field.pointer, detail);
                return None;
            }
        },
        (None, Some((pointer, text))) => match STANDARD.decode(&text) {
            Ok(_) => (pointer, Payload::Base64(text)),
            Err(error) => {
                errors.add(
                    pointer,
                    format!("not standard base64 with padding: {error}"),
                );
                return None;
            }
        },
        (None, None) => return Some(Payload::Json(RawValue::NULL.to_owned())),
    };
    let bytes = match &payload {
        Payload::Json(text) => text.get().len(),
        Payload::Base64(text) => text.len(),
    };
    if bytes > PAYLOAD_BYTES_MAX {
        errors.add(pointer, too_large(bytes));
        return None;
    }
    Some(payload)
}

/// The sentence for a timer whose stored form is over the limit.
pub(crate) fn too_large(bytes: usize) -> String {
    format!(
        "a timer takes at most {PAYLOAD_BYTES_MAX} bytes with its payload and target as stored, \
         this one takes {bytes}; keep the payload elsewhere and send its address"
    )
}

fn retry(mut fields: Fields, errors: &mut FieldErrors) -> Option<Retry> {
    let attempts_max = match fields.take("attempts_max") {
        None => Some(RETRY_DEFAULT.attempts_max),
        Some(field) => {
            let attempts: Option<u16> = field.decode("a whole number from 1 to 65535", errors);
            if attempts == Some(0) {
                errors.add(field.pointer, "must be a whole number from 1 to 65535");
            }
            attempts
        }
    };
    let given_max = fields.has("max");
    let initial_ms = fields
        .take_parsed("initial", errors, |text| span_within(text, RETRY_MS_MAX))
        .unwrap_or(RETRY_DEFAULT.initial_ms);
    let max_ms = fields
        .take_parsed("max", errors, |text| span_within(text, RETRY_MS_MAX))
        .unwrap_or(RETRY_DEFAULT.max_ms.max(initial_ms));
    if given_max && max_ms < initial_ms {
        let pointer = pointer_to(fields.pointer(), "max");
        errors.add(pointer, "must not be shorter than initial");
    }
    fields.finish(errors);
    Some(Retry {
        attempts_max: attempts_max?,
        initial_ms,
        max_ms,
    })
}

fn span_within(text: &str, most_ms: u64) -> Result<u64, String> {
    let span_ms = parse_span_ms(text)?;
    if (1..=most_ms).contains(&span_ms) {
        Ok(span_ms)
    } else {
        Err(format!(
            "must be from 1ms to {}",
            crate::time_text::span_text(most_ms)
        ))
    }
}

fn envelope(text: &str) -> Result<Envelope, String> {
    match text {
        "event" => Ok(Envelope::Event),
        "raw" => Ok(Envelope::Raw),
        _ => Err("must be \"event\" or \"raw\"".to_owned()),
    }
}
