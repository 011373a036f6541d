//! Rules about the tree itself that no compiler checks. Each file here is one family of rules.

mod arrows;
mod files;
mod headings;
mod links;
mod manifest;
mod test_roots;
mod text;

use crate::checks::Note;
use crate::process::{Failure, root};

/// One broken rule: where, and what to do.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    pub(crate) place: String,
    pub(crate) complaint: String,
}

impl Finding {
    pub(crate) fn at_line(path: &str, line: usize, complaint: impl Into<String>) -> Self {
        Self {
            place: format!("{path}:{line}"),
            complaint: complaint.into(),
        }
    }

    pub(crate) fn in_file(path: &str, complaint: impl Into<String>) -> Self {
        Self {
            place: path.to_owned(),
            complaint: complaint.into(),
        }
    }
}

pub(crate) fn check() -> Result<Note, Failure> {
    let root = root();
    let files = files::read_tree(&root)?;
    let mut findings = Vec::new();
    for file in &files {
        findings.extend(text::check(file));
        findings.extend(headings::check(file));
        findings.extend(links::check(&root, file));
        findings.extend(test_roots::check(file));
    }
    findings.extend(arrows::check(&files));
    for finding in &findings {
        println!("{}: {}", finding.place, finding.complaint);
    }
    if findings.is_empty() {
        return Ok(Note::text(format!("{} files", files.len())));
    }
    Err(format!("{} places to mend, listed above", findings.len()).into())
}
