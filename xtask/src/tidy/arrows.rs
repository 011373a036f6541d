//! Arrows between crates point down only, and each outside technology has one room.

use super::Finding;
use super::files::TextFile;
use super::manifest::{dependencies, takes_workspace_lints};

/// What each crate of the workspace may build on. A new crate is added here, after a look at the map in
/// ARCHITECTURE.md.
const MAY_USE: &[(&str, &[&str])] = &[
    ("dueline", &[]),
    ("dueline-testkit", &["dueline"]),
    ("dueline-history", &[]),
    ("dueline-sqlite", &["dueline"]),
    ("dueline-tokio", &["dueline"]),
    (
        "dueline-server",
        &["dueline", "dueline-sqlite", "dueline-tokio"],
    ),
    (
        "dueline-cli",
        &["dueline", "dueline-sqlite", "dueline-server"],
    ),
    (
        "dueline-bench",
        &["dueline", "dueline-sqlite", "dueline-tokio"],
    ),
    (
        "dueline-fuzz",
        &[
            "dueline",
            "dueline-cli",
            "dueline-server",
            "dueline-testkit",
        ],
    ),
];

/// Crates from outside that only some rooms may name: no runtime and no database in the core, no HTTP below
/// the server. Tests may use more, and benchmarks, which are not published, measure against what they like.
const KEPT_TO: &[(&str, &[&str])] = &[
    (
        "tokio",
        &[
            "dueline-tokio",
            "dueline-server",
            "dueline-cli",
            "dueline-bench",
        ],
    ),
    ("rusqlite", &["dueline-sqlite", "dueline-bench"]),
    ("axum", &["dueline-server"]),
    ("reqwest", &["dueline-server", "dueline-cli"]),
    ("clap", &["dueline-cli", "dueline-bench"]),
];

pub(crate) fn check(files: &[TextFile]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in files {
        let Some(name) = crate_name(&file.path) else {
            continue;
        };
        if !takes_workspace_lints(&file.text) {
            let complaint = "`[lints] workspace = true` is missing";
            findings.push(Finding::in_file(&file.path, complaint));
        }
        match MAY_USE.iter().find(|(known, _)| *known == name) {
            Some((_, allowed)) => findings.extend(broken_arrows(file, name, allowed)),
            None => findings.push(Finding::in_file(
                &file.path,
                format!("`{name}` is not on the map: add it to ARCHITECTURE.md and to this check"),
            )),
        }
    }
    findings
}

fn broken_arrows(file: &TextFile, name: &str, allowed: &[&str]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for table in ["dependencies", "build-dependencies"] {
        for used in dependencies(&file.text, table) {
            if used.starts_with("dueline") && !allowed.contains(&used) {
                let complaint = format!("`{name}` may not build on `{used}`");
                findings.push(Finding::in_file(&file.path, complaint));
            }
            let rooms = KEPT_TO.iter().find(|(kept, _)| *kept == used);
            if rooms.is_some_and(|(_, rooms)| !rooms.contains(&name)) {
                let complaint = format!("`{used}` has no place in `{name}`");
                findings.push(Finding::in_file(&file.path, complaint));
            }
        }
    }
    findings
}

fn crate_name(path: &str) -> Option<&str> {
    let name = path.strip_prefix("crates/")?.strip_suffix("/Cargo.toml")?;
    (!name.contains('/')).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaints(name: &str, manifest: &str) -> Vec<String> {
        let path = format!("crates/{name}/Cargo.toml");
        let text = format!("{manifest}\n[lints]\nworkspace = true\n");
        check(&[TextFile { path, text }])
            .into_iter()
            .map(|finding| finding.complaint)
            .collect()
    }

    #[test]
    fn an_arrow_that_points_up_is_found_and_one_that_points_down_is_not() {
        let up = complaints("dueline", "[dependencies]\ndueline-sqlite.workspace = true");
        assert_eq!(up, ["`dueline` may not build on `dueline-sqlite`"]);
        assert!(
            complaints("dueline-sqlite", "[dependencies]\ndueline.workspace = true").is_empty()
        );
    }

    #[test]
    fn the_core_may_not_name_a_runtime_but_tests_may() {
        assert_eq!(
            complaints("dueline", "[dependencies]\ntokio = \"1\""),
            ["`tokio` has no place in `dueline`"]
        );
        assert!(complaints("dueline", "[dev-dependencies]\ntokio = \"1\"").is_empty());
    }

    #[test]
    fn a_crate_that_is_not_on_the_map_is_found() {
        assert_eq!(complaints("dueline-misc", "").len(), 1);
    }
}
