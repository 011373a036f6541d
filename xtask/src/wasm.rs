//! Building for wasm32-unknown-unknown, where a Durable Object runs. The core and the object driver must build
//! for it with their default features, and clippy looks there at everything that is compiled for it: much of that
//! is compiled for nothing else, so the lints of the workspace never see it.
//!
//! rustup's own target is used where it is installed or can be added. Elsewhere `scripts/wasm_toolchain.sh`
//! unpacks a second compiler with its clippy under `$HOME/.cache/dueline-tools` and builds its standard library.

use std::path::PathBuf;

use crate::checks::{Note, component};
use crate::process::{Failure, command, output_of, root, run};

const TARGET: &str = "wasm32-unknown-unknown";

/// What clippy looks at: each module with all that it is built of. In one run the features of all would count
/// for each.
const LINTED: &[&[&str]] = &[
    &["--package", "dueline", "--package", "dueline-worker"],
    &["--package", "dueline-object"],
    &["--package", "dueline-object", "--features", "kinds"],
    &["--package", "dueline-objectsuite"],
];

/// A compiler for the target.
pub(crate) struct Compiler {
    /// Where the unpacked compiler lies; `None` is cargo's own.
    unpacked: Option<PathBuf>,
    target_dir: &'static str,
}

pub(crate) fn check() -> Result<Note, Failure> {
    let compiler = Compiler::find()?;
    compiler.cargo(
        "build",
        &["--package", "dueline", "--package", "dueline-worker"],
    )?;
    for linted in LINTED {
        compiler.clippy(linted)?;
    }
    Ok(Note::text(format!(
        "built and linted with {}",
        compiler.name()
    )))
}

impl Compiler {
    /// Finds a compiler, or sets one up.
    pub(crate) fn find() -> Result<Self, Failure> {
        if rustup_has_target() || run(command("rustup", &["target", "add", TARGET])).is_ok() {
            return Ok(Self {
                unpacked: None,
                target_dir: "target",
            });
        }
        println!("rustup has no {TARGET} and could not add it");
        run(command("bash", &["scripts/wasm_toolchain.sh"]))?;
        Ok(Self {
            unpacked: Some(tools_folder()?),
            // Artefacts of two compilers in one folder would make each of them build everything again.
            target_dir: "target/wasm-toolchain",
        })
    }

    pub(crate) fn name(&self) -> String {
        match &self.unpacked {
            Some(tools) => tools.join("bin/rustc-wasm").display().to_string(),
            None => "the target of rustup".to_owned(),
        }
    }

    /// Runs one of cargo's commands for the target, with further arguments.
    pub(crate) fn cargo(&self, subcommand: &str, arguments: &[&str]) -> Result<(), Failure> {
        let mut build = command("cargo", &self.words(subcommand, arguments));
        if let Some(tools) = &self.unpacked {
            build.env("RUSTC", tools.join("bin/rustc-wasm"));
        }
        run(build)
    }

    /// Runs clippy for the target; a warning is an error.
    fn clippy(&self, arguments: &[&str]) -> Result<(), Failure> {
        let mut words = self.words("clippy", arguments);
        words.extend(["--keep-going", "--", "-D", "warnings"]);
        let Some(tools) = &self.unpacked else {
            component("clippy")?;
            return run(command("cargo", &words));
        };
        // The clippy of another compiler cannot read what this one has built, and it knows the compiler that it
        // stands in for by the name `rustc` alone.
        let clippy = tools.join("bin/cargo-clippy-wasm");
        let mut lint = command(&clippy.to_string_lossy(), &words);
        lint.env("RUSTC", tools.join("clippy/rustc"));
        run(lint)
    }

    fn words<'a>(&'a self, subcommand: &'a str, arguments: &[&'a str]) -> Vec<&'a str> {
        let mut words = vec![subcommand, "--locked", "--target", TARGET];
        words.extend(["--target-dir", self.target_dir]);
        words.extend(arguments);
        words
    }

    /// Where the artefacts of a profile lie.
    pub(crate) fn artefacts(&self, profile: &str) -> PathBuf {
        root().join(self.target_dir).join(TARGET).join(profile)
    }
}

fn rustup_has_target() -> bool {
    output_of("rustup", &["target", "list", "--installed"])
        .is_some_and(|list| list.lines().any(|line| line.trim() == TARGET))
}

/// Where tools are put that the machine does not have.
pub(crate) fn tools_folder() -> Result<PathBuf, Failure> {
    if let Some(folder) = std::env::var_os("DUELINE_TOOLS") {
        return Ok(PathBuf::from(folder));
    }
    std::env::var_os("HOME")
        .map(|home| PathBuf::from(home).join(".cache/dueline-tools"))
        .ok_or_else(|| {
            Failure::from("neither DUELINE_TOOLS nor HOME is set: nowhere to put it".to_owned())
        })
}
