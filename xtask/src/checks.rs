//! The checks that make up `cargo xtask test`, in the order in which they run: the quick ones first, the
//! tests last, so that their counts close the output.

use std::process::Command;

use crate::process::{Failure, command, output_of, run, run_and_keep, succeeds};
use crate::test_counts::TestCounts;
use crate::{fuzz, object, sim, tidy, wasm, weave};

/// One check: its name on the command line, what it does, and the function that does it.
#[derive(Debug)]
pub(crate) struct Check {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    pub(crate) run: fn() -> Result<Note, Failure>,
}

/// What a check that passed has to tell in the closing table.
#[derive(Debug, Default)]
pub(crate) struct Note {
    pub(crate) text: String,
    pub(crate) warning: Option<String>,
    pub(crate) tests: Option<TestCounts>,
}

impl Note {
    pub(crate) fn text(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            ..Self::default()
        }
    }
}

pub(crate) const CHECKS: &[Check] = &[
    Check {
        name: "fmt",
        about: "every Rust file is formatted by rustfmt",
        run: fmt,
    },
    Check {
        name: "tidy",
        about: "sizes, characters, headings, crate arrows",
        run: tidy::check,
    },
    Check {
        name: "lint",
        about: "clippy on every target, warnings are errors",
        run: lint,
    },
    Check {
        name: "docs",
        about: "the documentation builds without a warning",
        run: docs,
    },
    Check {
        name: "deny",
        about: "licences, bans, sources and advisories of dependencies",
        run: deny,
    },
    Check {
        name: "wasm",
        about: "core and object driver build for wasm32-unknown-unknown; clippy on all that runs there",
        run: wasm::check,
    },
    Check {
        name: "object",
        about: "the package for Durable Objects: its module, its types, its tests in workerd",
        run: object::check,
    },
    Check {
        name: "compare",
        about: "the engine beside the reference implementation, a workspace of its own",
        run: compare,
    },
    Check {
        name: "fuzz",
        about: "libFuzzer over every target, 20 s each",
        run: fuzz::check,
    },
    Check {
        name: "sim",
        about: "the simulator: 2,000 seeds, ten of them in two builds, every planted bug",
        run: sim::check,
    },
    Check {
        name: "doctest",
        about: "the examples in the documentation run",
        run: doctest,
    },
    Check {
        name: "weave",
        about: "locks, queues and wake-ups under model checkers, and the bugs that these must find",
        run: weave::check,
    },
    Check {
        name: "unit",
        about: "every other test of the workspace",
        run: unit,
    },
];

fn fmt() -> Result<Note, Failure> {
    component("rustfmt")?;
    run(cargo(&["fmt", "--all", "--check"]))?;
    Ok(Note::default())
}

fn lint() -> Result<Note, Failure> {
    component("clippy")?;
    run(cargo(&[
        "clippy",
        "--workspace",
        "--all-targets",
        "--locked",
        "--keep-going",
        "--",
        "-D",
        "warnings",
    ]))?;
    Ok(Note::default())
}

fn docs() -> Result<Note, Failure> {
    let mut docs = cargo(&["doc", "--workspace", "--no-deps", "--locked"]);
    docs.env("RUSTDOCFLAGS", "-D warnings");
    run(docs)?;
    Ok(Note::default())
}

/// The rules that need nothing but the lock file must hold. The advisories need a database from the
/// network: where it cannot be had the run says so in its last lines, because a check that was not made
/// must not look like one that passed.
fn deny() -> Result<Note, Failure> {
    if !succeeds("cargo", &["deny", "--version"]) {
        run(cargo(&["install", "--locked", "cargo-deny"]))?;
    }
    run(cargo(&[
        "deny", "--locked", "check", "bans", "licenses", "sources",
    ]))?;
    if run(cargo(&["deny", "--locked", "fetch", "db"])).is_err() {
        return Ok(Note {
            text: "bans, licences, sources; advisories NOT checked".to_owned(),
            warning: Some(
                "the advisories were NOT checked: their database could not be fetched. Run \
                 `cargo xtask deny` where the network allows it."
                    .to_owned(),
            ),
            tests: None,
        });
    }
    run(cargo(&[
        "deny",
        "--locked",
        "check",
        "--disable-fetch",
        "advisories",
    ]))?;
    Ok(Note::text("bans, licences, sources, advisories"))
}

/// The comparison has its own lock file, so that the reference's dependencies are none of the product's.
/// Its target folder is the product's: what both are built of is built once.
fn compare() -> Result<Note, Failure> {
    const MANIFEST: &str = "crates/dueline-compare/Cargo.toml";
    run(cargo(&["fmt", "--check", "--manifest-path", MANIFEST]))?;
    run(cargo(&[
        "clippy",
        "--manifest-path",
        MANIFEST,
        "--target-dir",
        "target",
        "--all-targets",
        "--locked",
        "--",
        "-D",
        "warnings",
    ]))?;
    let tests = cargo(&[
        "test",
        "--manifest-path",
        MANIFEST,
        "--target-dir",
        "target",
        "--locked",
        "--no-fail-fast",
    ]);
    counted(tests, "cargo test")
}

fn doctest() -> Result<Note, Failure> {
    counted(
        // The copies of the product in `dueline-weave` have its examples too, out of their place.
        cargo(&[
            "test",
            "--workspace",
            "--exclude",
            "dueline-weave",
            "--doc",
            "--locked",
            "--no-fail-fast",
        ]),
        "cargo test",
    )
}

/// nextest where it is installed (a process per test, a time limit for each), else `cargo test`: compiling
/// nextest on a new machine costs more than it saves. The tests hold under both.
fn unit() -> Result<Note, Failure> {
    if succeeds("cargo", &["nextest", "--version"]) {
        let run = cargo(&[
            "nextest",
            "run",
            "--workspace",
            "--exclude",
            "dueline-weave",
            "--locked",
            "--profile",
            "ci",
        ]);
        return counted(run, "cargo nextest");
    }
    println!("cargo-nextest is not installed: `cargo test` runs the same tests");
    let targets = ["--lib", "--bins", "--tests", "--examples"];
    let mut words = vec!["test", "--workspace", "--locked", "--no-fail-fast"];
    words.extend(["--exclude", "dueline-weave"]);
    words.extend(targets);
    counted(cargo(&words), "cargo test")
}

pub(crate) fn counted(command: Command, tool: &str) -> Result<Note, Failure> {
    let (lines, success) = run_and_keep(command)?;
    let counts = TestCounts::read(&lines);
    if !success || counts.failed > 0 {
        return Err(Failure {
            text: format!("{tool} failed; {counts}"),
            tests: Some(counts),
        });
    }
    if counts.passed == 0 {
        return Err(format!("{tool} ran no test: its summary was not found").into());
    }
    Ok(Note {
        text: format!("{tool}; {counts}"),
        warning: None,
        tests: Some(counts),
    })
}

/// Formatter and linter come with rustup's default profile; a minimal one lacks them.
pub(crate) fn component(name: &str) -> Result<(), Failure> {
    let tool = if name == "rustfmt" { "fmt" } else { name };
    if succeeds("cargo", &[tool, "--version"]) {
        return Ok(());
    }
    if output_of("rustup", &["--version"]).is_none() {
        return Err(format!("{name} is missing, and so is rustup, which would install it").into());
    }
    run(command("rustup", &["component", "add", name]))
}

pub(crate) fn cargo(arguments: &[&str]) -> Command {
    command("cargo", arguments)
}
