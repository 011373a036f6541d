//! `cargo xtask fuzz`: libFuzzer over the targets of `dueline-fuzz`, for as long as is asked for.
//!
//! It needs a nightly compiler, and fails where there is none: a hunt that was not made must not look
//! like one that found nothing. What it discovers stays under `fuzz/target`; what is worth keeping is
//! copied to `fuzz/corpus` by hand. The tests of `dueline-fuzz` run the same targets over the corpus with
//! any compiler.

use std::fs;
use std::path::Path;

use crate::checks::Note;
use crate::options::Options;
use crate::process::{Failure, command, output_of, root, run, run_and_keep, succeeds};

pub(crate) const USAGE: &str = "fuzz --seconds N [target]";
const SECONDS: &str = "--seconds";
const EXECUTED: &str = "stat::number_of_executed_units:";

pub(crate) fn run_targets(arguments: &[&str]) -> Result<Note, Failure> {
    let options = Options::read(arguments, &[SECONDS])?;
    let Some(seconds) = options.number(SECONDS) else {
        return Err(format!("usage: cargo xtask {USAGE}").into());
    };
    let targets = targets(options.word)?;
    let toolchain = nightly()?;
    if !succeeds("cargo", &["fuzz", "--version"]) {
        run(command("cargo", &["install", "--locked", "cargo-fuzz"]))?;
    }
    let mut told = Vec::new();
    let mut failed = Vec::new();
    for target in &targets {
        match one(&toolchain, target, seconds)? {
            Some(executed) => told.push(format!("{target} {executed}")),
            None => failed.push(target.as_str()),
        }
    }
    if failed.is_empty() {
        return Ok(Note::text(format!("executions: {}", told.join(", "))));
    }
    let failed = failed.join(", ");
    Err(format!("a finding in {failed}: its input is told above and kept in fuzz/artifacts").into())
}

/// Runs one target; how many inputs it executed, or nothing if it found something.
fn one(toolchain: &str, target: &str, seconds: u64) -> Result<Option<u64>, Failure> {
    let found = format!("fuzz/target/corpus/{target}");
    fs::create_dir_all(root().join(&found))
        .map_err(|error| format!("{found} cannot be made: {error}"))?;
    let kept = format!("fuzz/corpus/{target}");
    let time = format!("-max_total_time={seconds}");
    let dictionary = format!("fuzz/dictionaries/{target}.dict");
    let use_dictionary = format!("-dict={dictionary}");
    let mut words = vec!["run", toolchain, "cargo", "fuzz", "run", target];
    words.extend([&found, &kept, "--", &time, "-timeout=30", "-max_len=4096"]);
    words.push("-print_final_stats=1");
    if root().join(&dictionary).exists() {
        words.push(&use_dictionary);
    }
    let (lines, success) = run_and_keep(command("rustup", &words))?;
    if !success {
        return Ok(None);
    }
    let executed = lines
        .iter()
        .filter_map(|line| line.strip_prefix(EXECUTED))
        .find_map(|number| number.trim().parse().ok());
    match executed {
        Some(0) | None => {
            Err(format!("{target} executed nothing: its figures were not found").into())
        }
        executed => Ok(executed),
    }
}

/// The target of this name, or all of them.
fn targets(wanted: Option<&str>) -> Result<Vec<String>, Failure> {
    let all = in_folder(&root().join("fuzz/fuzz_targets"))?;
    match wanted {
        None => Ok(all),
        Some(name) if all.iter().any(|known| known == name) => Ok(vec![name.to_owned()]),
        Some(name) => {
            let all = all.join(", ");
            Err(format!("there is no target `{name}`; there is {all}").into())
        }
    }
}

fn in_folder(folder: &Path) -> Result<Vec<String>, Failure> {
    let broken = |error: std::io::Error| format!("{} cannot be read: {error}", folder.display());
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).map_err(broken)? {
        let name = entry.map_err(broken)?.file_name();
        if let Some(name) = name.to_string_lossy().strip_suffix(".rs") {
            names.push(name.to_owned());
        }
    }
    names.sort();
    Ok(names)
}

/// The name of a nightly toolchain.
fn nightly() -> Result<String, Failure> {
    let list = output_of("rustup", &["toolchain", "list"]).unwrap_or_default();
    let toolchain = list
        .lines()
        .filter_map(|line| line.split_whitespace().next())
        .find(|name| name.starts_with("nightly"));
    toolchain.map(str::to_owned).ok_or_else(|| {
        let text = "libFuzzer needs a nightly compiler, and rustup has none: `rustup toolchain install \
                    nightly --profile minimal`. The same targets run with the stable compiler over the \
                    corpus and near it: `cargo test --package dueline-fuzz`";
        text.to_owned().into()
    })
}
