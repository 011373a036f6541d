use std::collections::BTreeMap;

use http::header::{HeaderName, HeaderValue};

use super::field_errors::{FieldErrors, pointer_to};
use super::fields::{Field, Fields, Members};
use crate::guard::check_target_url;
use crate::webhook::Target;

const HEADERS_MAX: usize = 50;
const HEADERS_BYTES_MAX: usize = 16 * 1_024;

/// Headers that belong to the delivery or to the connection.
const RESERVED: [&str; 10] = [
    "connection",
    "content-length",
    "expect",
    "host",
    "keep-alive",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// Decodes `target`.
pub(super) fn target(
    mut fields: Fields,
    allow_private: bool,
    errors: &mut FieldErrors,
) -> Option<Target> {
    let url_is_there = fields.has("url");
    let url = fields.take_parsed("url", errors, |text| {
        check_target_url(text, allow_private)
            .map(String::from)
            .map_err(|error| error.to_string())
    });
    if !url_is_there {
        errors.add(pointer_to(fields.pointer(), "url"), "a target needs a url");
    }
    let headers = fields
        .take("headers")
        .map_or_else(|| Some(BTreeMap::new()), |field| headers(&field, errors));
    fields.finish(errors);
    Some(Target {
        url: url?,
        headers: headers?,
    })
}

fn headers(field: &Field, errors: &mut FieldErrors) -> Option<BTreeMap<String, String>> {
    let members: Members = field.decode("an object of texts", errors)?;
    let mut headers = BTreeMap::new();
    let mut bytes = 0usize;
    for (name, raw) in members.0 {
        let pointer = pointer_to(&field.pointer, &name);
        match header(&name, raw.get()) {
            Ok((name, value)) => {
                bytes = bytes.saturating_add(name.len()).saturating_add(value.len());
                if headers.insert(name, value).is_some() {
                    errors.add(pointer, "this header appears twice (names ignore case)");
                }
            }
            Err(detail) => errors.add(pointer, detail),
        }
    }
    if headers.len() > HEADERS_MAX || bytes > HEADERS_BYTES_MAX {
        errors.add(
            field.pointer.clone(),
            format!(
                "at most {HEADERS_MAX} headers of {HEADERS_BYTES_MAX} bytes together, these are \
                 {} of {bytes}",
                headers.len()
            ),
        );
    }
    Some(headers)
}

fn header(name: &str, raw: &str) -> Result<(String, String), String> {
    let name = HeaderName::try_from(name)
        .map_err(|_| "not a header name (letters, digits and -)".to_owned())?
        .as_str()
        .to_owned();
    if name.starts_with("webhook-") || RESERVED.contains(&name.as_str()) {
        return Err("this header is set by the server".to_owned());
    }
    let value: String =
        serde_json::from_str(raw).map_err(|_| "a header's value must be a string".to_owned())?;
    let sound = HeaderValue::from_str(&value).is_ok_and(|value| value.to_str().is_ok());
    if !sound {
        return Err("a header's value is printable ASCII".to_owned());
    }
    Ok((name, value))
}
