//! JSON as text: kept as it was written, but for blanks, so that numbers of any size and the order
//! of fields pass through unchanged.

use serde_json::value::RawValue;

/// Deepest nesting that is taken. What reads our answers (and adds a few levels of its own) often
/// stops at 128.
pub(crate) const DEPTH_MAX: usize = 100;

/// A JSON text without blanks between its tokens.
///
/// # Errors
/// A sentence, if it is nested too deeply.
pub(crate) fn compact(raw: &RawValue) -> Result<Box<RawValue>, String> {
    let mut text = String::with_capacity(raw.get().len());
    let mut in_string = false;
    let mut escaped = false;
    let mut depth = 0usize;
    for c in raw.get().chars() {
        if in_string {
            in_string = escaped || c != '"';
            escaped = !escaped && c == '\\';
            text.push(c);
            continue;
        }
        match c {
            ' ' | '\t' | '\n' | '\r' => continue,
            '"' => in_string = true,
            '{' | '[' => depth += 1,
            '}' | ']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > DEPTH_MAX {
            return Err(format!(
                "JSON is nested at most {DEPTH_MAX} levels deep here"
            ));
        }
        text.push(c);
    }
    RawValue::from_string(text).map_err(|error| format!("not JSON: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compacted(text: &str) -> Result<String, String> {
        let raw = RawValue::from_string(text.to_owned()).unwrap();
        compact(&raw).map(|raw| raw.get().to_owned())
    }

    #[test]
    fn only_blanks_between_tokens_go() {
        for (text, compact) in [
            (
                r#"{ "b" : 1.0e400 , "a" : [ 1 , 2 ] }"#,
                r#"{"b":1.0e400,"a":[1,2]}"#,
            ),
            (r#"" a \" b \\""#, r#"" a \" b \\""#),
            (r#"["\\" , " "]"#, r#"["\\"," "]"#),
            (
                "123456789012345678901234567890",
                "123456789012345678901234567890",
            ),
        ] {
            assert_eq!(compacted(text).as_deref(), Ok(compact));
        }
    }

    #[test]
    fn nesting_is_limited() {
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert!(compacted(&nested(DEPTH_MAX)).is_ok());
        assert!(compacted(&nested(DEPTH_MAX + 1)).is_err());
        assert!(compacted(&format!("\"{}\"", "[".repeat(500))).is_ok());
    }
}
