//! A document has one title, on its first line.

use super::Finding;
use super::files::TextFile;

pub(crate) fn check(file: &TextFile) -> Vec<Finding> {
    if !file.has_ending("md") {
        return Vec::new();
    }
    let mut findings = Vec::new();
    let titles = title_lines(&file.text);
    if titles.first() != Some(&1) {
        findings.push(Finding::at_line(
            &file.path,
            1,
            "the first line must be the title: `# ...`",
        ));
    }
    for line in titles.iter().skip(1) {
        findings.push(Finding::at_line(
            &file.path,
            *line,
            "a second title: use `##`",
        ));
    }
    findings
}

/// The lines, counted from 1, that are titles; what looks like one inside a code block is none.
fn title_lines(text: &str) -> Vec<usize> {
    let mut in_code = false;
    let mut lines = Vec::new();
    for (index, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            in_code = !in_code;
        } else if !in_code && line.starts_with("# ") {
            lines.push(index + 1);
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_comment_in_a_code_block_is_no_title() {
        assert_eq!(
            title_lines("# Title\n```sh\n# comment\n```\n# Second\n## Section\n"),
            [1, 5]
        );
    }

    #[test]
    fn a_document_without_a_title_is_found() {
        let file = TextFile {
            path: "a.md".to_owned(),
            text: "text\n".to_owned(),
        };
        assert_eq!(check(&file).len(), 1);
    }
}
