//! Building for wasm32-unknown-unknown, where a Durable Object runs. The core and the object driver must build
//! for it with their default features.
//!
//! rustup's own target is used where it is installed or can be added. Elsewhere `scripts/wasm_toolchain.sh`
//! unpacks a second compiler under `$HOME/.cache/dueline-tools` and builds its standard library.

use std::path::PathBuf;

use crate::checks::Note;
use crate::process::{Failure, command, output_of, root, run};

const TARGET: &str = "wasm32-unknown-unknown";

/// A compiler for the target.
pub(crate) struct Compiler {
    /// `None` is cargo's own.
    rustc: Option<PathBuf>,
    target_dir: &'static str,
}

pub(crate) fn check() -> Result<Note, Failure> {
    let compiler = Compiler::find()?;
    compiler.cargo(
        "build",
        &["--package", "dueline", "--package", "dueline-worker"],
    )?;
    Ok(Note::text(format!("with {}", compiler.name())))
}

impl Compiler {
    /// Finds a compiler, or sets one up.
    pub(crate) fn find() -> Result<Self, Failure> {
        if rustup_has_target() || run(command("rustup", &["target", "add", TARGET])).is_ok() {
            return Ok(Self {
                rustc: None,
                target_dir: "target",
            });
        }
        println!("rustup has no {TARGET} and could not add it");
        run(command("bash", &["scripts/wasm_toolchain.sh"]))?;
        Ok(Self {
            rustc: Some(tools_folder()?.join("bin/rustc-wasm")),
            // Artefacts of two compilers in one folder would make each of them build everything again.
            target_dir: "target/wasm-toolchain",
        })
    }

    pub(crate) fn name(&self) -> String {
        match &self.rustc {
            Some(rustc) => rustc.display().to_string(),
            None => "the target of rustup".to_owned(),
        }
    }

    /// Runs one of cargo's commands for the target, with further arguments.
    pub(crate) fn cargo(&self, subcommand: &str, arguments: &[&str]) -> Result<(), Failure> {
        let mut words = vec![subcommand, "--locked", "--target", TARGET];
        words.extend(["--target-dir", self.target_dir]);
        words.extend(arguments);
        let mut build = command("cargo", &words);
        if let Some(rustc) = &self.rustc {
            build.env("RUSTC", rustc);
        }
        run(build)
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
