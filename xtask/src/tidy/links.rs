//! What a document of the repository points at is there: files it links to, and paths it names.

use std::path::Path;

use super::Finding;
use super::files::TextFile;

/// Folders whose paths are named in documents from the root of the tree.
const NAMED_FROM_ROOT: &[&str] = &["crates/", "xtask/", "scripts/"];

pub(crate) fn check(root: &Path, file: &TextFile) -> Vec<Finding> {
    if !file.has_ending("md") {
        return Vec::new();
    }
    let folder = root.join(&file.path);
    let folder = folder.parent().unwrap_or(root);
    let mut findings = Vec::new();
    for (index, line) in file.text.lines().enumerate() {
        let links = links(line)
            .into_iter()
            .map(|link| (link, folder.join(link)));
        let paths = paths(line).into_iter().map(|path| (path, root.join(path)));
        for (shown, target) in links.chain(paths) {
            if !target.exists() {
                let complaint = format!("`{shown}` is not there");
                findings.push(Finding::at_line(&file.path, index + 1, complaint));
            }
        }
    }
    findings
}

/// The files that Markdown links of this line lead to, without their fragment; other sites are left out.
fn links(line: &str) -> Vec<&str> {
    line.split("](")
        .skip(1)
        .filter_map(|rest| rest.split(')').next())
        .filter_map(|target| target.split('#').next())
        .filter(|target| !target.is_empty() && !target.contains("://"))
        .collect()
}

/// The paths named in backticks on this line; one with a placeholder (`<name>`) or a star is a pattern.
fn paths(line: &str) -> Vec<&str> {
    line.split('`')
        .skip(1)
        .step_by(2)
        .filter(|code| {
            NAMED_FROM_ROOT
                .iter()
                .any(|folder| code.starts_with(folder))
        })
        .filter(|code| !code.contains(['<', '*', ' ']))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_to_files_are_found_and_links_to_sites_are_not() {
        let line = "see [a](A.md), [b](docs/B.md#part), [c](#here) and [d](https://example.com/x)";
        assert_eq!(links(line), ["A.md", "docs/B.md"]);
    }

    #[test]
    fn paths_in_backticks_are_found_and_patterns_are_not() {
        let line =
            "`crates/a/b.rs`, `crates/<crate>/tests`, `cargo x crates/`, `xtask/src` and `a/b`";
        assert_eq!(paths(line), ["crates/a/b.rs", "xtask/src"]);
    }

    #[test]
    fn a_document_that_points_at_nothing_is_found() {
        let text = "# T\n[a](missing.md) `crates/missing.rs`\n".to_owned();
        let file = TextFile {
            path: "A.md".to_owned(),
            text,
        };
        assert_eq!(check(Path::new("."), &file).len(), 2);
    }
}
