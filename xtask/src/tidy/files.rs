//! Finds and reads the text files of the tree.

use std::fs;
use std::path::Path;

use crate::process::Failure;

/// Folders that hold no source: what builds, tools and servers leave behind.
const SKIPPED_FOLDERS: &[&str] = &[
    ".git",
    "target",
    "node_modules",
    "dist",
    "dist-test",
    "generated",
    "dueline-data",
];
const TEXT_ENDINGS: &[&str] = &["rs", "md", "toml", "sh", "sql", "ts", "js", "json", "hex"];
/// Text files known by their name alone.
const TEXT_NAMES: &[&str] = &["run", ".gitignore", "LICENSE-MIT", "LICENSE-APACHE"];

/// A text file of the tree.
#[derive(Clone, Debug)]
pub(crate) struct TextFile {
    /// From the root of the tree, with `/` between its parts.
    pub(crate) path: String,
    pub(crate) text: String,
}

impl TextFile {
    pub(crate) fn has_ending(&self, ending: &str) -> bool {
        self.path
            .rsplit_once('.')
            .is_some_and(|(_, found)| found == ending)
    }
}

/// Every text file under `root`, in the order of its path.
pub(crate) fn read_tree(root: &Path) -> Result<Vec<TextFile>, Failure> {
    let mut files = Vec::new();
    read_folder(root, "", &mut files)?;
    files.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(files)
}

fn read_folder(folder: &Path, prefix: &str, files: &mut Vec<TextFile>) -> Result<(), Failure> {
    let broken = |error: std::io::Error| format!("{} cannot be read: {error}", folder.display());
    for entry in fs::read_dir(folder).map_err(broken)? {
        let entry = entry.map_err(broken)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = format!("{prefix}{name}");
        let kind = entry.file_type().map_err(broken)?;
        if kind.is_dir() && !SKIPPED_FOLDERS.contains(&name.as_str()) {
            read_folder(&entry.path(), &format!("{path}/"), files)?;
        } else if kind.is_file() && is_text(&name) {
            let text = fs::read_to_string(entry.path())
                .map_err(|error| format!("{path} is not readable text: {error}"))?;
            files.push(TextFile { path, text });
        }
    }
    Ok(())
}

fn is_text(name: &str) -> bool {
    let ending = name.rsplit_once('.').map(|(_, ending)| ending);
    TEXT_NAMES.contains(&name) || ending.is_some_and(|ending| TEXT_ENDINGS.contains(&ending))
}
