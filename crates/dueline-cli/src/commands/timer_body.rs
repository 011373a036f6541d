//! The document that describes a timer, from the flags of `create` and `update`.

use std::io::Read;
use std::path::Path;

use serde_json::{Map, Value};

use crate::arguments::TimerFields;
use crate::failure::Failure;

/// Builds the document with the fields that were given, and no others: what is left out keeps its default
/// when a timer is created and its value when one is changed.
pub(crate) fn body(fields: TimerFields) -> Result<Value, Failure> {
    let mut body = Map::new();
    put(&mut body, "due_at", fields.at);
    put(&mut body, "delay", fields.delay);
    put(&mut body, "deadline", fields.deadline);
    let payload = match fields.payload_file {
        Some(path) => Some(read_payload(&path)?),
        None => fields.payload,
    };
    put(&mut body, "payload", payload);

    let mut target = Map::new();
    put(&mut target, "url", fields.url);
    let headers: Map<String, Value> = fields
        .headers
        .into_iter()
        .map(|(name, value)| (name, Value::String(value)))
        .collect();
    put(
        &mut target,
        "headers",
        Some(headers).filter(|headers| !headers.is_empty()),
    );
    put(
        &mut body,
        "target",
        Some(target).filter(|target| !target.is_empty()),
    );

    let mut retry = Map::new();
    put(&mut retry, "attempts_max", fields.attempts_max);
    put(&mut retry, "initial", fields.retry_initial);
    put(&mut retry, "max", fields.retry_max);
    put(
        &mut body,
        "retry",
        Some(retry).filter(|retry| !retry.is_empty()),
    );
    Ok(Value::Object(body))
}

fn put(object: &mut Map<String, Value>, name: &str, value: Option<impl Into<Value>>) {
    if let Some(value) = value {
        object.insert(name.to_owned(), value.into());
    }
}

fn read_payload(path: &Path) -> Result<Value, Failure> {
    let unreadable = |source| Failure::PayloadFile {
        path: path.to_owned(),
        source,
    };
    let mut bytes = Vec::new();
    if path == Path::new("-") {
        std::io::stdin()
            .lock()
            .read_to_end(&mut bytes)
            .map_err(unreadable)?;
    } else {
        bytes = std::fs::read(path).map_err(unreadable)?;
    }
    serde_json::from_slice(&bytes).map_err(|source| Failure::PayloadJson {
        path: path.to_owned(),
        source,
    })
}
