//! RFC 7396 merge patch over JSON texts, so that what a patch does not touch stays byte for byte.

use serde_json::value::RawValue;

use super::fields::Members;

/// The members of an object after a patch: `null` removes, objects merge, all else replaces.
///
/// # Errors
/// What the encoder says; the parts are JSON already.
pub(crate) fn merge(target: Members, patch: Members) -> Result<Members, serde_json::Error> {
    let mut merged = target.0;
    for (name, value) in patch.0 {
        let at = merged.iter().position(|(member, _)| *member == name);
        if value.get() == "null" {
            if let Some(at) = at {
                merged.remove(at);
            }
            continue;
        }
        let current = at
            .and_then(|at| merged.get(at))
            .map(|(_, current)| current.as_ref());
        let value = merge_value(current, value)?;
        match at.and_then(|at| merged.get_mut(at)) {
            Some((_, slot)) => *slot = value,
            None => merged.push((name, value)),
        }
    }
    Ok(Members(merged))
}

fn merge_value(
    current: Option<&RawValue>,
    patch: Box<RawValue>,
) -> Result<Box<RawValue>, serde_json::Error> {
    let Ok(patch_members) = serde_json::from_str::<Members>(patch.get()) else {
        return Ok(patch);
    };
    // A patch over something that is no object starts from an empty one, and loses its nulls too.
    let members = current
        .and_then(|current| serde_json::from_str::<Members>(current.get()).ok())
        .unwrap_or_default();
    object_text(&merge(members, patch_members)?)
}

/// An object's text.
pub(crate) fn object_text(members: &Members) -> Result<Box<RawValue>, serde_json::Error> {
    let mut text = "{".to_owned();
    for (index, (name, value)) in members.0.iter().enumerate() {
        if index > 0 {
            text.push(',');
        }
        text.push_str(&serde_json::to_string(name)?);
        text.push(':');
        text.push_str(value.get());
    }
    text.push('}');
    RawValue::from_string(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The cases of RFC 7396, appendix A, whose target and patch are objects, and two of ours.
    #[test]
    fn the_cases_of_the_standard_hold() {
        for (target, patch, result) in [
            (r#"{"a":"b"}"#, r#"{"a":"c"}"#, r#"{"a":"c"}"#),
            (r#"{"a":"b"}"#, r#"{"b":"c"}"#, r#"{"a":"b","b":"c"}"#),
            (r#"{"a":"b"}"#, r#"{"a":null}"#, "{}"),
            (r#"{"a":"b","b":"c"}"#, r#"{"a":null}"#, r#"{"b":"c"}"#),
            (r#"{"a":["b"]}"#, r#"{"a":"c"}"#, r#"{"a":"c"}"#),
            (r#"{"a":"c"}"#, r#"{"a":["b"]}"#, r#"{"a":["b"]}"#),
            (
                r#"{"a":{"b":"c"}}"#,
                r#"{"a":{"b":"d","c":null}}"#,
                r#"{"a":{"b":"d"}}"#,
            ),
            (r#"{"a":[{"b":"c"}]}"#, r#"{"a":[1]}"#, r#"{"a":[1]}"#),
            (r#"{"e":null}"#, r#"{"a":1}"#, r#"{"e":null,"a":1}"#),
            ("{}", r#"{"a":{"bb":{"ccc":null}}}"#, r#"{"a":{"bb":{}}}"#),
            (
                r#"{"z":1e400,"a":{"k":1}}"#,
                r#"{"a":{"l":2}}"#,
                r#"{"z":1e400,"a":{"k":1,"l":2}}"#,
            ),
        ] {
            let target: Members = serde_json::from_str(target).unwrap();
            let patch: Members = serde_json::from_str(patch).unwrap();
            assert_eq!(
                object_text(&merge(target, patch).unwrap()).unwrap().get(),
                result
            );
        }
    }
}
