use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::field_errors::{FieldErrors, pointer_to};

/// A JSON object with its members as texts, in order, names that appear twice included.
#[derive(Debug, Default)]
pub(crate) struct Members(pub(crate) Vec<(String, Box<RawValue>)>);

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct MembersVisitor;
        impl<'de> Visitor<'de> for MembersVisitor {
            type Value = Members;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(MembersVisitor)
    }
}

/// The members of an object that is being decoded: each is taken once, and what is left over is
/// unknown.
#[derive(Debug)]
pub(crate) struct Fields {
    pointer: String,
    members: Vec<(String, Box<RawValue>)>,
    known: Vec<&'static str>,
}

/// A member that was taken.
#[derive(Debug)]
pub(crate) struct Field {
    pub(crate) pointer: String,
    pub(crate) raw: Box<RawValue>,
}

impl Fields {
    /// The members of an object at this pointer; a name that appears twice is an error.
    pub(crate) fn new(pointer: &str, members: Members, errors: &mut FieldErrors) -> Self {
        let mut kept: Vec<(String, Box<RawValue>)> = Vec::with_capacity(members.0.len());
        let mut names = std::collections::BTreeSet::new();
        for (name, raw) in members.0 {
            if names.insert(name.clone()) {
                kept.push((name, raw));
            } else {
                errors.add(pointer_to(pointer, &name), "this name appears twice");
            }
        }
        Self {
            pointer: pointer.to_owned(),
            members: kept,
            known: Vec::new(),
        }
    }

    /// Where the object lies.
    pub(crate) fn pointer(&self) -> &str {
        &self.pointer
    }

    /// Takes a member; `null` counts as absent.
    pub(crate) fn take(&mut self, name: &'static str) -> Option<Field> {
        self.take_with_null(name)
            .filter(|field| field.raw.get() != "null")
    }

    /// Takes a member for which `null` is a value.
    pub(crate) fn take_with_null(&mut self, name: &'static str) -> Option<Field> {
        self.known.push(name);
        let at = self.members.iter().position(|(member, _)| member == name)?;
        let (_, raw) = self.members.remove(at);
        Some(Field {
            pointer: pointer_to(&self.pointer, name),
            raw,
        })
    }

    /// Takes a text.
    pub(crate) fn take_text(
        &mut self,
        name: &'static str,
        errors: &mut FieldErrors,
    ) -> Option<(String, String)> {
        let field = self.take(name)?;
        let text = field.decode("a string", errors)?;
        Some((field.pointer, text))
    }

    /// Takes a text and reads it.
    pub(crate) fn take_parsed<T>(
        &mut self,
        name: &'static str,
        errors: &mut FieldErrors,
        parse: impl FnOnce(&str) -> Result<T, String>,
    ) -> Option<T> {
        let (pointer, text) = self.take_text(name, errors)?;
        match parse(&text) {
            Ok(value) => Some(value),
            Err(detail) => {
                errors.add(pointer, detail);
                None
            }
        }
    }

    /// Takes an object.
    pub(crate) fn take_object(
        &mut self,
        name: &'static str,
        errors: &mut FieldErrors,
    ) -> Option<Self> {
        let field = self.take(name)?;
        let members = field.decode("an object", errors)?;
        Some(Self::new(&field.pointer, members, errors))
    }

    /// Whether a member is there; `null` counts as absent.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.members
            .iter()
            .any(|(member, raw)| member == name && raw.get() != "null")
    }

    /// Ends the decoding: members that nobody took are unknown.
    pub(crate) fn finish(self, errors: &mut FieldErrors) {
        for (name, _) in &self.members {
            let known = self.known.join(", ");
            errors.add(
                pointer_to(&self.pointer, name),
                format!("unknown field; known here: {known}"),
            );
        }
    }
}

impl Field {
    /// Decodes the value, or says what it should have been.
    pub(crate) fn decode<T: for<'de> Deserialize<'de>>(
        &self,
        expected: &str,
        errors: &mut FieldErrors,
    ) -> Option<T> {
        match serde_json::from_str(self.raw.get()) {
            Ok(value) => Some(value),
            Err(_) => {
                errors.add(self.pointer.clone(), format!("must be {expected}"));
                None
            }
        }
    }
}
