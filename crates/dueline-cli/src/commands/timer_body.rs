//! The document that describes a timer, from the flags of `create` and `update`.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;

use serde::Serialize;

use crate::arguments::{Envelope, TimerFields};
use crate::document::Document;
use crate::failure::Failure;

/// The fields that were given, and no others: what is left out keeps its default when a timer is created
/// and its value when one is changed.
#[derive(Debug, Default, Serialize)]
pub(crate) struct TimerBody {
    #[serde(skip_serializing_if = "Option::is_none")]
    due_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    delay: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    payload: Option<Document>,
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<Target>,
    #[serde(skip_serializing_if = "Option::is_none")]
    retry: Option<Retry>,
    #[serde(skip_serializing_if = "Option::is_none")]
    envelope: Option<Envelope>,
    #[serde(skip_serializing_if = "Option::is_none")]
    deadline: Option<String>,
}

#[derive(Debug, Serialize)]
struct Target {
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    headers: BTreeMap<String, String>,
}

#[derive(Debug, Serialize)]
struct Retry {
    #[serde(skip_serializing_if = "Option::is_none")]
    attempts_max: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    initial: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max: Option<String>,
}

impl TimerBody {
    /// Puts the flags together and reads the payload's file, if one is named.
    pub(crate) fn of(fields: TimerFields) -> Result<Self, Failure> {
        let payload = match fields.payload_file {
            Some(path) => Some(read_payload(&path)?),
            None => fields.payload,
        };
        let target = Target {
            url: fields.url,
            headers: fields.headers.into_iter().collect(),
        };
        let retry = Retry {
            attempts_max: fields.attempts_max,
            initial: fields.retry_initial,
            max: fields.retry_max,
        };
        let has_retry =
            retry.attempts_max.is_some() || retry.initial.is_some() || retry.max.is_some();
        Ok(Self {
            due_at: fields.at,
            delay: fields.delay,
            payload,
            target: Some(target).filter(|t| t.url.is_some() || !t.headers.is_empty()),
            retry: has_retry.then_some(retry),
            envelope: fields.envelope,
            deadline: fields.deadline,
        })
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.due_at.is_none()
            && self.delay.is_none()
            && self.payload.is_none()
            && self.target.is_none()
            && self.retry.is_none()
            && self.envelope.is_none()
            && self.deadline.is_none()
    }
}

fn read_payload(path: &Path) -> Result<Document, Failure> {
    let unreadable = |source| Failure::PayloadFile {
        path: path.to_owned(),
        source,
    };
    let mut text = String::new();
    if path == Path::new("-") {
        std::io::stdin()
            .lock()
            .read_to_string(&mut text)
            .map_err(unreadable)?;
    } else {
        text = std::fs::read_to_string(path).map_err(unreadable)?;
    }
    Document::parse(&text).map_err(|source| Failure::PayloadJson {
        path: path.to_owned(),
        source,
    })
}
