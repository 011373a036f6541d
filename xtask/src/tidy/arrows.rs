//! Arrows between crates point down only, and each outside technology has one room.

use super::Finding;
use super::files::TextFile;
use super::manifest::{dependencies, lint_lines, takes_workspace_lints};

/// What each crate of the workspace may build on. A new crate is added here, after a look at the map in
/// ARCHITECTURE.md.
const MAY_USE: &[(&str, &[&str])] = &[
    ("dueline", &[]),
    ("dueline-testkit", &["dueline"]),
    ("dueline-history", &["dueline"]),
    ("dueline-kindsuite", &["dueline", "dueline-testkit"]),
    ("dueline-sqlite", &["dueline"]),
    ("dueline-tokio", &["dueline"]),
    ("dueline-worker", &["dueline"]),
    ("dueline-object", &["dueline", "dueline-worker"]),
    (
        "dueline-objectsuite",
        &[
            "dueline",
            "dueline-kindsuite",
            "dueline-object",
            "dueline-testkit",
            "dueline-worker",
        ],
    ),
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
        "dueline-compare",
        &["dueline", "dueline-history", "dueline-testkit"],
    ),
    (
        "dueline-faultfs",
        &[
            "dueline",
            "dueline-history",
            "dueline-sqlite",
            "dueline-testkit",
        ],
    ),
    (
        "dueline-fuzz",
        &[
            "dueline",
            "dueline-cli",
            "dueline-history",
            "dueline-server",
            "dueline-testkit",
        ],
    ),
    (
        "dueline-sim",
        &[
            "dueline",
            "dueline-history",
            "dueline-kindsuite",
            "dueline-testkit",
            "dueline-tokio",
            "dueline-worker",
        ],
    ),
    ("dueline-weave", &["dueline", "dueline-testkit"]),
];

/// Crates whose manifest repeats the workspace's lints, because a `forbid` could not be lifted in them: with
/// the one file that may hold `unsafe`. The other lints must be the workspace's, line by line.
const OWN_LINTS: &[(&str, &str)] = &[("dueline-faultfs", "crates/dueline-faultfs/src/vfs.rs")];

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
            "dueline-weave",
        ],
    ),
    (
        "rusqlite",
        // In the worker's crate only for its simulated object, under a feature.
        &[
            "dueline-sqlite",
            "dueline-bench",
            "dueline-faultfs",
            "dueline-weave",
            "dueline-worker",
        ],
    ),
    ("loom", &["dueline-weave"]),
    ("shuttle", &["dueline-weave"]),
    ("axum", &["dueline-server"]),
    ("reqwest", &["dueline-server", "dueline-cli"]),
    (
        "clap",
        &[
            "dueline-cli",
            "dueline-bench",
            "dueline-faultfs",
            "dueline-sim",
        ],
    ),
];

pub(crate) fn check(files: &[TextFile]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in files {
        let Some(name) = crate_name(&file.path) else {
            continue;
        };
        if let Some((_, room)) = OWN_LINTS.iter().find(|(known, _)| *known == name) {
            findings.extend(own_lints(file, files, room));
        } else if !takes_workspace_lints(&file.text) {
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

/// A crate with lints of its own: they are the workspace's but for `unsafe_code`, which one file may lift.
fn own_lints(file: &TextFile, files: &[TextFile], room: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    let workspace = files.iter().find(|other| other.path == "Cargo.toml");
    for line in workspace.map_or(Vec::new(), |root| lint_lines(&root.text)) {
        let wanted = if line.starts_with("unsafe_code ") {
            "unsafe_code = \"deny\""
        } else {
            line
        };
        if !file.text.lines().any(|own| own == wanted) {
            let complaint = format!("`{wanted}` is missing: its lints are the workspace's");
            findings.push(Finding::in_file(&file.path, complaint));
        }
    }
    let folder = file.path.trim_end_matches("Cargo.toml");
    for source in files.iter().filter(|source| source.path != room) {
        let inside = source.path.starts_with(folder) && source.has_ending("rs");
        let lifted =
            |line: &str| line.contains("unsafe_code") && !line.contains("deny(unsafe_code)");
        if inside && source.text.lines().any(lifted) {
            let complaint = format!("only {room} may hold unsafe code");
            findings.push(Finding::in_file(&source.path, complaint));
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
    fn lints_of_a_crates_own_are_those_of_the_workspace() {
        let file = |path: &str, text: &str| TextFile {
            path: path.to_owned(),
            text: text.to_owned(),
        };
        let lints = "[workspace.lints.rust]\nunsafe_code = \"forbid\"\nmissing_docs = \"warn\"\n";
        let root = file("Cargo.toml", lints);
        let own = |text: &str| {
            let manifest = file("crates/dueline-faultfs/Cargo.toml", text);
            let outside = file(
                "crates/dueline-faultfs/src/other.rs",
                "#![allow(unsafe_code)]\n",
            );
            check(&[root.clone(), manifest, outside]).len()
        };
        let outside_only = 1;
        let same = "[lints.rust]\nunsafe_code = \"deny\"\nmissing_docs = \"warn\"\n";
        assert_eq!(own(same), outside_only);
        assert_eq!(
            own("[lints.rust]\nunsafe_code = \"deny\"\n"),
            outside_only + 1
        );
        assert_eq!(own(""), outside_only + 2);
    }

    #[test]
    fn a_crate_that_is_not_on_the_map_is_found() {
        assert_eq!(complaints("dueline-misc", "").len(), 1);
    }
}
