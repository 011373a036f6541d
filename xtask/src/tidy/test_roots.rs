//! Every integration test says that it is test code, to clippy too.

use super::Finding;
use super::files::TextFile;

const MARK: &str = "#![cfg(test)]";

/// clippy lets test code use `unwrap`, `expect` and indexing, but takes only what is under `cfg(test)` for
/// test code: a helper function of an integration test is not, unless its file says so.
pub(crate) fn check(file: &TextFile) -> Option<Finding> {
    let marked = file.text.lines().any(|line| line == MARK);
    (is_root(&file.path) && !marked).then(|| {
        let complaint = format!("`{MARK}` is missing behind the file's first comment");
        Finding::in_file(&file.path, complaint)
    })
}

/// Whether cargo makes a test program of this file.
fn is_root(path: &str) -> bool {
    let Some((_, inside)) = path.split_once("/tests/") else {
        return false;
    };
    match inside.split_once('/') {
        None => path.ends_with(".rs"),
        Some((_, file)) => file == "main.rs",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roots_are_told_from_modules() {
        assert!(is_root("crates/a/tests/b.rs"));
        assert!(is_root("crates/a/tests/b/main.rs"));
        assert!(!is_root("crates/a/tests/b/c.rs"));
        assert!(!is_root("crates/a/src/tests.rs"));
        assert!(!is_root("crates/a/tests/golden/v1/x.hex"));
    }

    #[test]
    fn a_root_without_the_mark_is_found() {
        let file = |text: &str| TextFile {
            path: "crates/a/tests/b.rs".to_owned(),
            text: text.to_owned(),
        };
        assert!(check(&file("//! goal\nuse x;\n")).is_some());
        assert!(check(&file("//! goal\n#![cfg(test)]\n")).is_none());
    }
}
