//! Rules for single files: length, characters, leftovers.

use super::Finding;
use super::files::TextFile;

/// A longer file hides a second room: split it.
const LINES_MAX: usize = 500;
const BYTES_MAX: usize = 256 * 1024;
const SOURCE_ENDINGS: &[&str] = &["rs", "toml", "sh", "sql", "ts", "js"];
/// Words of unfinished work. Each is put together so that this file passes its own rule.
const LEFTOVERS: &[&str] = &[
    concat!("TO", "DO"),
    concat!("FIX", "ME"),
    concat!("XX", "X"),
    concat!("<<<<", "<<<"),
    concat!(">>>>", ">>>"),
];
/// Folders of somebody's own machine: a path that begins like this works nowhere else.
const MACHINE_PATHS: &[&str] = &[
    concat!("/ho", "me/"),
    concat!("/ro", "ot/"),
    concat!("/Us", "ers/"),
    concat!("/wo", "rk/"),
];

pub(crate) fn check(file: &TextFile) -> Vec<Finding> {
    let mut findings = Vec::new();
    if file.text.len() > BYTES_MAX {
        findings.push(Finding::in_file(
            &file.path,
            format!("larger than {BYTES_MAX} bytes"),
        ));
    }
    if !file.text.is_empty() && !file.text.ends_with('\n') {
        findings.push(Finding::in_file(
            &file.path,
            "the last line has no line end",
        ));
    }
    let source = SOURCE_ENDINGS.iter().any(|ending| file.has_ending(ending));
    let line_count = file.text.lines().count();
    if source && line_count > LINES_MAX {
        let complaint = format!("{line_count} lines, {LINES_MAX} at most: split it");
        findings.push(Finding::in_file(&file.path, complaint));
    }
    let mut in_tests = is_test_file(&file.path);
    for (index, line) in file.text.lines().enumerate() {
        in_tests |= line.trim_start().starts_with("#[cfg(test)]");
        let complaints = line_complaints(line, source && !in_tests);
        findings.extend(
            complaints
                .into_iter()
                .map(|c| Finding::at_line(&file.path, index + 1, c)),
        );
    }
    findings
}

/// Tests may hold any text on purpose: references with emoji, right-to-left words.
fn is_test_file(path: &str) -> bool {
    path.contains("/tests/") || path.ends_with("/tests.rs")
}

fn line_complaints(line: &str, ascii_only: bool) -> Vec<String> {
    let mut complaints = Vec::new();
    if line.ends_with([' ', '\t', '\r']) {
        complaints.push("white space at the end of the line".to_owned());
    }
    if ascii_only && let Some(character) = line.chars().find(|c| !c.is_ascii()) {
        complaints.push(format!(
            "U+{:04X} is not ASCII: write an escape",
            u32::from(character)
        ));
    }
    for word in LEFTOVERS.iter().filter(|word| line.contains(**word)) {
        complaints.push(format!("`{word}` is unfinished work"));
    }
    for path in MACHINE_PATHS.iter().filter(|path| line.contains(**path)) {
        complaints.push(format!("`{path}` is a path of one machine"));
    }
    complaints
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(path: &str, text: &str) -> Vec<String> {
        let file = TextFile {
            path: path.to_owned(),
            text: text.to_owned(),
        };
        check(&file)
            .into_iter()
            .map(|finding| finding.place)
            .collect()
    }

    #[test]
    fn five_hundred_lines_are_allowed_and_one_more_is_not() {
        let line = "x\n";
        assert!(findings("a.rs", &line.repeat(500)).is_empty());
        assert_eq!(findings("a.rs", &line.repeat(501)), ["a.rs"]);
        assert!(findings("a.md", &line.repeat(501)).is_empty());
    }

    #[test]
    fn sources_are_ascii_but_tests_and_documents_need_not_be() {
        assert_eq!(findings("src/a.rs", "// caf\u{e9}\n"), ["src/a.rs:1"]);
        assert!(findings("src/a.rs", "#[cfg(test)]\n// caf\u{e9}\n").is_empty());
        assert!(findings("crates/a/tests/b.rs", "// caf\u{e9}\n").is_empty());
        assert!(findings("a.md", "caf\u{e9}\n").is_empty());
    }

    #[test]
    fn leftovers_and_paths_of_one_machine_are_found() {
        let text = format!(
            "ok\n// {}: later\nsee {}me/file\n",
            LEFTOVERS[0], MACHINE_PATHS[0]
        );
        assert_eq!(findings("a.rs", &text), ["a.rs:2", "a.rs:3"]);
    }

    #[test]
    fn white_space_at_a_line_end_and_a_missing_line_end_are_found() {
        assert_eq!(findings("a.md", "one \ntwo"), ["a.md", "a.md:1"]);
    }
}
