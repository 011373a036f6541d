//! Errors, from the platform's to those that the package turns into its own.

use std::error::Error as StdError;
use std::fmt;

use dueline::store::{StoreError, StoreErrorKind};
use dueline::timers::TimerError;
use dueline_worker::AlarmError;
use js_sys::{Error, Reflect};
use wasm_bindgen::prelude::*;

/// The text of something that was thrown.
pub(crate) fn text_of(thrown: &JsValue) -> String {
    if let Some(error) = thrown.dyn_ref::<Error>() {
        return error.message().into();
    }
    thrown
        .as_string()
        .unwrap_or_else(|| "something that is no Error was thrown".to_owned())
}

/// The platform's error behind one of ours, for logs.
struct Thrown(String);

// Without the escapes that the derived form would print: their tables are a part of the module.
impl fmt::Debug for Thrown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for Thrown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl StdError for Thrown {}

/// An error of the database by its code, which the platform writes into the message.
pub(crate) fn store_error(thrown: &JsValue) -> StoreError {
    let text = text_of(thrown);
    // The code is a word of the message, between signs.
    let is = |code: &str| {
        let mut words = text.split(|c: char| c != '_' && !c.is_ascii_alphanumeric());
        words.any(|word| word == code)
    };
    let (kind, detail) = if is("SQLITE_FULL") {
        (StoreErrorKind::Full, "the object's database is full")
    } else if is("SQLITE_TOOBIG") {
        (
            StoreErrorKind::Invalid,
            "a row is too large for the platform",
        )
    } else if is("SQLITE_CORRUPT") || is("SQLITE_NOTADB") {
        (StoreErrorKind::Corrupt, "the object's database is damaged")
    } else {
        (
            StoreErrorKind::Unavailable,
            "the object's database refused a statement",
        )
    };
    StoreError::new(kind, detail).with_source(Thrown(text))
}

/// An error of a call that wrote nothing.
pub(crate) fn unavailable(thrown: &JsValue) -> StoreError {
    StoreError::unavailable("the platform refused a call").with_source(Thrown(text_of(thrown)))
}

/// What is thrown to the package: an `Error` with `code`, and where they exist `current` (a generation)
/// and `endsAt`.
fn coded(code: &str, message: &str, more: &[(&str, JsValue)]) -> JsValue {
    let error = Error::new(message);
    let fields = [("duelineCode", JsValue::from_str(code))];
    for (name, value) in fields.iter().chain(more) {
        // A new error takes every property.
        let _ = Reflect::set(&error, &JsValue::from_str(name), value);
    }
    error.into()
}

pub(crate) fn invalid(message: &str) -> JsValue {
    coded("invalid", message, &[])
}

pub(crate) fn thrown_timer_error(error: &TimerError) -> JsValue {
    let message = error.to_string();
    match error {
        TimerError::NotFound => coded("not_found", &message, &[]),
        TimerError::GenerationMismatch { current } => {
            let current = JsValue::from_str(&current.to_string());
            coded("generation_mismatch", &message, &[("current", current)])
        }
        TimerError::Claimed { ends_at_ms } => {
            let ends_at = JsValue::from_f64(*ends_at_ms as f64);
            coded("claimed", &message, &[("endsAt", ends_at)])
        }
        TimerError::Contended => coded("contended", &message, &[]),
        TimerError::Store(error) => thrown_store_error(error),
        _ => invalid(&message),
    }
}

pub(crate) fn thrown_store_error(error: &StoreError) -> JsValue {
    let code = match error.kind() {
        StoreErrorKind::Invalid => "invalid",
        StoreErrorKind::Unsupported => "unsupported",
        StoreErrorKind::Corrupt => "corrupt",
        StoreErrorKind::Full => "full",
        StoreErrorKind::Unknown => "unknown_outcome",
        _ => "unavailable",
    };
    coded(code, &with_causes(error.to_string(), error.source()), &[])
}

pub(crate) fn thrown_alarm_error(error: &AlarmError) -> JsValue {
    let text = error.to_string();
    // The text has that of the store's error in it.
    let cause = error.source().and_then(StdError::source);
    coded("unavailable", &with_causes(text, cause), &[])
}

fn with_causes(mut text: String, mut cause: Option<&dyn StdError>) -> String {
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}
