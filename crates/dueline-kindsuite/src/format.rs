//! FORMAT.md shows the bytes of every row.

use std::collections::BTreeSet;

use dueline::store::{Key, Value};

const FORMAT: &str = include_str!("../../../FORMAT.md");

/// Panics unless FORMAT.md shows every one of these rows, as lines `key ...` and `value ...` one behind the
/// other, in hexadecimal with spaces between the fields.
#[track_caller]
pub fn assert_shown(rows: &[(Key, Value)]) {
    let shown = shown();
    for (key, value) in rows {
        let row = (hex(key), hex(value));
        assert!(
            shown.contains(&row),
            "FORMAT.md does not show\nkey {}\nvalue {}",
            row.0,
            row.1
        );
    }
}

fn shown() -> BTreeSet<(String, String)> {
    let digits = |line: &str, name: &str| {
        let fields = line.strip_prefix(name)?;
        Some(fields.split_whitespace().collect::<String>())
    };
    let lines: Vec<&str> = FORMAT.lines().collect();
    lines
        .windows(2)
        .filter_map(|pair| Some((digits(pair[0], "key ")?, digits(pair[1], "value ")?)))
        .collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
