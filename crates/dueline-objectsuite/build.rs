//! Reads the lists of cases where they stand, so that a case that is added there runs here too: those of
//! the store contract in the testkit's `suite.rs`, those of the kinds in the tests of `dueline-kindsuite`.
#![allow(
    clippy::expect_used,
    reason = "a list that cannot be read ends the build"
)]

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

/// What an object cannot be asked for: it is never closed, it has one thread, and a panic is not caught in it.
const NOT_HERE: [(&str, &str); 6] = [
    ("reopen", "an_unclean_stop_is_known"),
    ("publication_recheck", "a_release_in_doubt_happens_once"),
    ("publication_recheck", "a_gate_that_panics_loses_nothing"),
    (
        "outcome_delivery",
        "a_panic_of_the_sink_is_a_failure_of_the_outcome",
    ),
    ("test_kind", "a_panic_is_a_failure"),
    (
        "ticket_expiry",
        "an_abort_that_panics_is_told_and_blocks_nothing",
    ),
];

/// A module of cases and the names of its functions.
type Theme = (String, Vec<String>);

fn main() {
    let crates = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("set by cargo"));
    let crates = crates.parent().expect("the folder of the crates");
    let contract = crates.join("dueline-testkit/src/conformance/suite.rs");
    let kinds = crates.join("dueline-kindsuite/tests");
    println!("cargo::rerun-if-changed={}", contract.display());
    println!("cargo::rerun-if-changed={}", kinds.display());

    let mut text = String::new();
    let contract = themes(&read(&contract), "conformance_cases! { $make;", '}');
    write_list(
        &mut text,
        "CONTRACT",
        "dueline_testkit::conformance",
        &contract,
    );
    let mut of_kinds = Vec::new();
    for file in rust_files(&kinds) {
        of_kinds.extend(themes(&read(&file), "on_stores!(", ')'));
    }
    write_list(&mut text, "KINDS", "dueline_kindsuite", &of_kinds);

    let out = PathBuf::from(env::var_os("OUT_DIR").expect("set by cargo"));
    fs::write(out.join("cases.rs"), text).expect("the list of cases is written");
}

/// What stands between each `opening` and the next `closing`: `theme; case, case, ...`.
fn themes(text: &str, opening: &str, closing: char) -> Vec<Theme> {
    let mut found = Vec::new();
    for behind in text.split(opening).skip(1) {
        let Some((inside, _)) = behind.split_once(closing) else {
            continue;
        };
        let Some((theme, cases)) = inside.split_once(';') else {
            continue;
        };
        let cases = cases.split(',').map(str::trim).filter(|case| is_name(case));
        let cases: Vec<String> = cases.map(str::to_owned).collect();
        if is_name(theme.trim()) && !cases.is_empty() {
            found.push((theme.trim().to_owned(), cases));
        }
    }
    found
}

fn is_name(text: &str) -> bool {
    !text.is_empty()
        && text
            .chars()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
}

/// The list as a table of names and functions. An empty one is a list whose form has changed.
fn write_list(text: &mut String, name: &str, path: &str, themes: &[Theme]) {
    assert!(!themes.is_empty(), "no cases of {path} were found");
    writeln!(
        text,
        "pub(crate) const {name}: &[(&str, fn({path}::Make<'_>))] = &["
    )
    .expect("a string takes it");
    for (theme, cases) in themes {
        for case in cases {
            if NOT_HERE.contains(&(theme, case)) {
                continue;
            }
            writeln!(text, "    (\"{theme}::{case}\", {path}::{theme}::{case}),")
                .expect("a string takes it");
        }
    }
    text.push_str("];\n");
}

fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("the folder of the tests");
    let mut files: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "rs"))
        .collect();
    files.sort();
    files
}

fn read(file: &Path) -> String {
    fs::read_to_string(file).expect("a list of cases")
}
