//! What a partition and a timer may be called over HTTP.

use std::fmt;

use dueline::Bytes;
use dueline::limits::{PARTITION_BYTES_MAX, REFERENCE_BYTES_MAX};
use dueline::store::Partition;

/// A name that is not allowed, as a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NameError(String);

impl fmt::Display for NameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A partition that can be addressed over HTTP.
#[derive(Clone, Debug)]
pub(crate) struct PartitionName {
    text: String,
    partition: Partition,
}

impl PartitionName {
    pub(crate) fn new(text: &str) -> Result<Self, NameError> {
        check(text, "a partition", PARTITION_BYTES_MAX)?;
        let partition = Partition::new(text.to_owned())
            .map_err(|error| NameError(error.detail().to_owned()))?;
        Ok(Self {
            text: text.to_owned(),
            partition,
        })
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.text
    }

    pub(crate) fn partition(&self) -> &Partition {
        &self.partition
    }
}

/// The id of a timer that can be addressed over HTTP.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct TimerId(String);

impl TimerId {
    pub(crate) fn new(text: &str) -> Result<Self, NameError> {
        check(text, "a timer id", REFERENCE_BYTES_MAX)?;
        Ok(Self(text.to_owned()))
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// The id as the engine's reference.
    pub(crate) fn reference(&self) -> Bytes {
        Bytes::copy_from_slice(self.0.as_bytes())
    }
}

/// Checks a prefix of ids: like an id, but it may be empty, `.` or `..`.
pub(crate) fn check_prefix(text: &str) -> Result<(), NameError> {
    if text.is_empty() {
        return Ok(());
    }
    check_characters(text, "a prefix", REFERENCE_BYTES_MAX)
}

fn check(text: &str, what: &str, bytes_max: usize) -> Result<(), NameError> {
    if text.is_empty() {
        return Err(NameError(format!("{what} has at least 1 byte")));
    }
    if text == "." || text == ".." {
        return Err(NameError(format!(
            "{what} must not be \"{text}\": clients and proxies resolve it as a folder"
        )));
    }
    check_characters(text, what, bytes_max)
}

fn check_characters(text: &str, what: &str, bytes_max: usize) -> Result<(), NameError> {
    if text.len() > bytes_max {
        return Err(NameError(format!(
            "{what} has at most {bytes_max} bytes of UTF-8, this one has {}",
            text.len()
        )));
    }
    if text.contains('/') {
        return Err(NameError(format!("{what} must not contain \"/\"")));
    }
    if let Some(control) = text.chars().find(|c| c.is_control()) {
        return Err(NameError(format!(
            "{what} must not contain control characters, this one has U+{:04X}",
            u32::from(control)
        )));
    }
    Ok(())
}
