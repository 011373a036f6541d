//! Just enough of a Cargo.toml: which names stand in which table.

/// The crates named in one dependency table of a manifest, in its order.
///
/// Understands `name = ...`, `name.workspace = true` and tables of their own (`[dependencies.name]`), with
/// or without a target in front (`[target.'cfg(..)'.dependencies]`).
pub(crate) fn dependencies<'a>(manifest: &'a str, table: &str) -> Vec<&'a str> {
    let mut names = Vec::new();
    let mut inside = false;
    for line in manifest.lines().map(str::trim) {
        if let Some(header) = line
            .strip_prefix('[')
            .and_then(|line| line.strip_suffix(']'))
        {
            inside = header == table || header.ends_with(&format!(".{table}"));
            if let Some((before, name)) = header.rsplit_once('.')
                && (before == table || before.ends_with(&format!(".{table}")))
            {
                names.push(name);
            }
        } else if inside
            && !line.starts_with('#')
            && let Some((left, _)) = line.split_once('=')
        {
            names.push(left.split('.').next().unwrap_or(left).trim());
        }
    }
    names
}

/// Whether the manifest takes its lints from the workspace.
pub(crate) fn takes_workspace_lints(manifest: &str) -> bool {
    let mut lines = manifest
        .lines()
        .map(str::trim)
        .skip_while(|line| *line != "[lints]");
    lines.next().is_some() && lines.next() == Some("workspace = true")
}

/// The lines of the lint tables of the workspace, without their headers and comments.
pub(crate) fn lint_lines(manifest: &str) -> Vec<&str> {
    let mut inside = false;
    let mut lines = Vec::new();
    for line in manifest.lines() {
        if line.starts_with('[') {
            inside = line.starts_with("[workspace.lints.");
        } else if inside && !line.is_empty() && !line.starts_with('#') {
            lines.push(line);
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    const MANIFEST: &str = "[package]\nname = \"x\"\n[dependencies]\n# note = 1\na.workspace = true\n\
        b = { version = \"1\" }\n[dependencies.c]\nversion = \"1\"\n[dev-dependencies]\nd = \"1\"\n\
        [target.'cfg(unix)'.dependencies]\ne = \"1\"\n[lints]\nworkspace = true\n";

    #[test]
    fn every_way_to_name_a_dependency_is_read() {
        assert_eq!(dependencies(MANIFEST, "dependencies"), ["a", "b", "c", "e"]);
        assert_eq!(dependencies(MANIFEST, "dev-dependencies"), ["d"]);
        assert!(dependencies(MANIFEST, "build-dependencies").is_empty());
    }

    #[test]
    fn the_lints_of_the_workspace_are_seen() {
        assert!(takes_workspace_lints(MANIFEST));
        assert!(!takes_workspace_lints("[package]\nworkspace = true\n"));
    }
}
