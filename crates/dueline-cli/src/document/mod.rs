//! JSON as the server sent it: numbers of any size, the order of fields and the text of payloads pass
//! through unchanged, because they are never read into numbers and maps of ours.

mod indent;

use std::fmt;

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

/// One JSON value.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(transparent)]
pub(crate) struct Document(Box<RawValue>);

impl Document {
    /// Reads a value and keeps its text.
    pub(crate) fn parse(text: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(text)
    }

    /// The fields of an object, read once; none if it is something else.
    pub(crate) fn fields(&self) -> Fields {
        serde_json::from_str(self.0.get()).unwrap_or_default()
    }

    /// The items of an array; none if it is something else.
    pub(crate) fn items(&self) -> Vec<Self> {
        serde_json::from_str(self.0.get()).unwrap_or_default()
    }

    /// The text of a string, or nothing.
    pub(crate) fn as_text(&self) -> Option<String> {
        serde_json::from_str(self.0.get()).ok()
    }

    /// The number, if it is one that fits.
    pub(crate) fn as_u64(&self) -> Option<u64> {
        serde_json::from_str(self.0.get()).ok()
    }

    pub(crate) fn is_null(&self) -> bool {
        self.0.get() == "null"
    }

    /// The text for a cell: words without quotes, everything else as JSON.
    pub(crate) fn cell(&self) -> String {
        if self.is_null() {
            return String::new();
        }
        self.as_text().unwrap_or_else(|| self.0.get().to_owned())
    }
}

/// Indented by two spaces.
impl fmt::Display for Document {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&indent::indent(self.0.get()))
    }
}

/// The fields of an object, in its order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fields(Vec<(String, Document)>);

impl Fields {
    pub(crate) fn get(&self, name: &str) -> Option<&Document> {
        self.0
            .iter()
            .find(|(found, _)| found == name)
            .map(|(_, value)| value)
    }

    /// The text for a cell, or nothing.
    pub(crate) fn cell(&self, name: &str) -> String {
        self.get(name).map(Document::cell).unwrap_or_default()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &Document)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<'de> Deserialize<'de> for Fields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;
        impl<'de> Visitor<'de> for InOrder {
            type Value = Fields;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields, A::Error> {
                let mut fields = Vec::new();
                while let Some(field) = map.next_entry()? {
                    fields.push(field);
                }
                Ok(Fields(fields))
            }
        }
        deserializer.deserialize_map(InOrder)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_any_size_and_the_order_of_fields_pass_through() {
        let text = r#"{"z":12345678901234567890123,"a":1.10}"#;
        let document = Document::parse(text).unwrap();
        assert_eq!(serde_json::to_string(&document).unwrap(), text);
        let names: Vec<String> = document
            .fields()
            .iter()
            .map(|(name, _)| name.to_owned())
            .collect();
        assert_eq!(names, ["z", "a"]);
        assert_eq!(document.fields().cell("a"), "1.10");
    }

    #[test]
    fn cells_show_words_without_quotes_and_nothing_for_null() {
        let fields = Document::parse(r#"{"text":"a\"b","none":null,"list":[1]}"#)
            .unwrap()
            .fields();
        let cells: Vec<String> = fields.iter().map(|(_, value)| value.cell()).collect();
        assert_eq!(cells, ["a\"b", "", "[1]"]);
        assert_eq!(fields.cell("absent"), "");
    }
}
