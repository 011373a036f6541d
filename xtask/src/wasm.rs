//! The core and the driver of Durable Objects must build for wasm32-unknown-unknown, where they run.
//!
//! rustup's own target is used where it is installed or can be added. Elsewhere `scripts/wasm_toolchain.sh`
//! unpacks a second compiler under `$HOME/.cache/dueline-tools` and builds its standard library.

use std::path::PathBuf;

use crate::checks::Note;
use crate::process::{Failure, command, output_of, run};

const TARGET: &str = "wasm32-unknown-unknown";
const BUILD: &[&str] = &[
    "build",
    "--package",
    "dueline",
    "--package",
    "dueline-worker",
    "--locked",
    "--target",
    TARGET,
];

pub(crate) fn check() -> Result<Note, Failure> {
    if rustup_has_target() || run(command("rustup", &["target", "add", TARGET])).is_ok() {
        run(command("cargo", BUILD))?;
        return Ok(Note::text("with the target of rustup"));
    }
    println!("rustup has no {TARGET} and could not add it");
    run(command("bash", &["scripts/wasm_toolchain.sh"]))?;
    let compiler = tools_folder()?.join("bin/rustc-wasm");
    let mut arguments = BUILD.to_vec();
    // Artefacts of two compilers in one folder would make each of them build everything again.
    arguments.extend(["--target-dir", "target/wasm-toolchain"]);
    let mut build = command("cargo", &arguments);
    build.env("RUSTC", &compiler);
    run(build)?;
    Ok(Note::text(format!("with {}", compiler.display())))
}

fn rustup_has_target() -> bool {
    output_of("rustup", &["target", "list", "--installed"])
        .is_some_and(|list| list.lines().any(|line| line.trim() == TARGET))
}

fn tools_folder() -> Result<PathBuf, Failure> {
    if let Some(folder) = std::env::var_os("DUELINE_TOOLS") {
        return Ok(PathBuf::from(folder));
    }
    std::env::var_os("HOME")
        .map(|home| PathBuf::from(home).join(".cache/dueline-tools"))
        .ok_or_else(|| {
            Failure::from("neither DUELINE_TOOLS nor HOME is set: nowhere to put it".to_owned())
        })
}
