//! Paths of the API, with every name encoded so that it arrives as it was typed.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// Everything but what RFC 3986 calls unreserved. A colon in an id is encoded too: bare, it begins a verb.
const NAME: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// A path under the address of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Path(String);

impl Path {
    pub(crate) fn partitions() -> Self {
        Self("/v1/partitions".to_owned())
    }

    pub(crate) fn timers(partition: &str) -> Self {
        Self::partitions().name(partition).word("timers")
    }

    pub(crate) fn timer(partition: &str, id: &str) -> Self {
        Self::timers(partition).name(id)
    }

    pub(crate) fn dead_letters(partition: &str) -> Self {
        Self::partitions().name(partition).word("dead-letters")
    }

    pub(crate) fn dead_letter(partition: &str, dead_id: &str) -> Self {
        Self::dead_letters(partition).name(dead_id)
    }

    /// Appends a verb of the API: `...:verb`.
    pub(crate) fn verb(self, verb: &str) -> Self {
        Self(format!("{}:{verb}", self.0))
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    fn word(self, word: &str) -> Self {
        Self(format!("{}/{word}", self.0))
    }

    fn name(self, name: &str) -> Self {
        Self(format!("{}/{}", self.0, utf8_percent_encode(name, NAME)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_encoded_and_verbs_are_not() {
        let path = Path::timer("a b", "x:fire-now?%2F\u{e9}").verb("fire-now");
        assert_eq!(
            path.as_str(),
            "/v1/partitions/a%20b/timers/x%3Afire-now%3F%252F%C3%A9:fire-now"
        );
    }
}
