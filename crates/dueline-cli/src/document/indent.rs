//! Lays valid JSON out over lines without reading its values.

/// Two spaces for each level; empty objects and arrays stay on their line.
pub(super) fn indent(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    let mut depth = 0_usize;
    let mut in_string = false;
    let mut escaped = false;
    let mut characters = json.chars().filter(|c| *c != '\n').peekable();
    while let Some(character) = characters.next() {
        if in_string {
            out.push(character);
            in_string = escaped || character != '"';
            escaped = character == '\\' && !escaped;
            continue;
        }
        match character {
            ' ' | '\t' | '\r' => {}
            '"' => {
                in_string = true;
                out.push('"');
            }
            '{' | '[' => {
                while characters
                    .next_if(|next| next.is_ascii_whitespace())
                    .is_some()
                {}
                out.push(character);
                if let Some(end) = characters.next_if(|next| matches!(next, '}' | ']')) {
                    out.push(end);
                } else {
                    depth += 1;
                    break_line(&mut out, depth);
                }
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                break_line(&mut out, depth);
                out.push(character);
            }
            ',' => {
                out.push(',');
                break_line(&mut out, depth);
            }
            ':' => out.push_str(": "),
            other => out.push(other),
        }
    }
    out
}

fn break_line(out: &mut String, depth: usize) {
    out.push('\n');
    out.extend(std::iter::repeat_n("  ", depth));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_laid_out_and_strings_are_left_alone() {
        let json = "{ \"a\":[1, {}, [ ]],\n\"b\": \"x,{\\\"y\\\\\", \"c\":{\"d\":null} }";
        let expected = "{\n  \"a\": [\n    1,\n    {},\n    []\n  ],\n  \"b\": \"x,{\\\"y\\\\\",\n  \
            \"c\": {\n    \"d\": null\n  }\n}";
        assert_eq!(indent(json), expected);
    }

    #[test]
    fn what_is_laid_out_already_stays_as_it_is() {
        let json = serde_json::json!({"a": [1, "two", {"three": [true]}], "b": {}});
        let pretty = format!("{json:#}");
        assert_eq!(indent(&pretty), pretty);
        assert_eq!(indent(&json.to_string()), pretty);
    }
}
