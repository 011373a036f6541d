//! `cargo xtask fuzz`: libFuzzer over the targets of `dueline-fuzz`, for as long as is asked for, and as
//! a check for a short time.
//!
//! It takes the compiler that everything else is built with: the flags that put libFuzzer's counters
//! into the code are stable. libFuzzer itself is C++, so a C++ compiler is needed, which is installed
//! where it is missing and apt is there. A hunt that cannot be made fails: it must not look like one
//! that found nothing. What is discovered stays under `target/fuzz`; what is worth keeping is merged
//! into `fuzz/corpus` by hand.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::checks::Note;
use crate::options::Options;
use crate::process::{Failure, command, output_of, root, run, succeeds};
use crate::test_counts::TestCounts;

pub(crate) const USAGE: &str = "fuzz --seconds N [target]";
const SECONDS: &str = "--seconds";
/// How long the check gives each target.
const CHECK_SECONDS: u64 = 20;
/// Targets that run at a time.
const AT_A_TIME: usize = 2;
const MANIFEST: &str = "fuzz/Cargo.toml";
/// Everything there is compiled with other flags than the product, so it has a folder of its own.
const TARGET_FOLDER: &str = "target/fuzz";
/// Where the inputs of findings are kept.
const FINDINGS: &str = "target/fuzz/findings";
/// How much of the log of a target is shown if it found something.
const LOG_LINES_SHOWN: usize = 80;
/// The counters, and the comparisons that the fuzzer is told of.
const COUNTERS: &[&str] = &[
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    "-Cllvm-args=-simplifycfg-branch-fold-threshold=0",
];

/// What a hunt of one target came to.
#[derive(Debug, Default, PartialEq, Eq)]
struct Figures {
    /// Inputs that were run.
    executed: u64,
    /// Counters of the program that some input reached.
    reached: u64,
    /// Inputs that reach all of them.
    corpus: u64,
}

/// Hunts for as long as the arguments say.
pub(crate) fn run_targets(arguments: &[&str]) -> Result<Note, Failure> {
    let options = Options::read(arguments, &[SECONDS])?;
    let Some(seconds) = options.number(SECONDS) else {
        return Err(format!("usage: cargo xtask {USAGE}").into());
    };
    hunt(&targets(options.word)?, seconds)
}

/// Every target for a short time.
pub(crate) fn check() -> Result<Note, Failure> {
    hunt(&targets(None)?, CHECK_SECONDS)
}

fn hunt(targets: &[String], seconds: u64) -> Result<Note, Failure> {
    let programs = build()?;
    let mut told = Vec::new();
    let mut failed = Vec::new();
    for together in targets.chunks(AT_A_TIME) {
        let started = together
            .iter()
            .map(|target| start(&programs, target, seconds));
        let started: Vec<Child> = started.collect::<Result<_, _>>()?;
        for (target, child) in together.iter().zip(started) {
            match finish(target, child)? {
                Some(figures) => told.push(format!(
                    "{target} {} (reached {}, corpus {})",
                    figures.executed, figures.reached, figures.corpus
                )),
                None => failed.push(target.as_str()),
            }
        }
    }
    let tests = Some(TestCounts {
        passed: told.len() as u64,
        failed: failed.len() as u64,
        ignored: 0,
    });
    if failed.is_empty() {
        return Ok(Note {
            text: format!("{seconds} s a target; executions: {}", told.join(", ")),
            warning: None,
            tests,
        });
    }
    let failed = failed.join(", ");
    let text = format!("a finding in {failed}, told above; its input is kept in {FINDINGS}");
    Err(Failure { text, tests })
}

/// Builds every target, and says where the programs are.
fn build() -> Result<String, Failure> {
    cpp_compiler()?;
    let host = host()?;
    let mut words = vec![
        "build",
        "--manifest-path",
        MANIFEST,
        "--release",
        "--locked",
    ];
    // With a target named, build scripts and macros are compiled without the counters.
    words.extend(["--target", &host, "--target-dir", TARGET_FOLDER]);
    let mut build = command("cargo", &words);
    build.env_remove("RUSTFLAGS");
    build.env("CARGO_ENCODED_RUSTFLAGS", COUNTERS.join("\u{1f}"));
    run(build)?;
    Ok(format!("{TARGET_FOLDER}/{host}/release"))
}

/// libFuzzer is compiled from C++.
fn cpp_compiler() -> Result<(), Failure> {
    let named = std::env::var("CXX").unwrap_or_else(|_| "c++".to_owned());
    if succeeds(&named, &["--version"]) {
        return Ok(());
    }
    let is_root = output_of("id", &["-u"]).is_some_and(|id| id.trim() == "0");
    if is_root && succeeds("apt-get", &["--version"]) {
        run(command("apt-get", &["update"]))?;
        let install = ["install", "--yes", "--no-install-recommends", "g++"];
        run(command("apt-get", &install))?;
    }
    if succeeds(&named, &["--version"]) {
        return Ok(());
    }
    Err(
        format!("libFuzzer needs a C++ compiler, and `{named}` is none: install g++ or clang")
            .into(),
    )
}

/// The triple of this machine.
fn host() -> Result<String, Failure> {
    let version = output_of("rustc", &["-vV"]).unwrap_or_default();
    let host = version.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned)
        .ok_or_else(|| "rustc does not say what machine this is".to_owned().into())
}

/// Starts one target, its output into a file.
fn start(programs: &str, target: &str, seconds: u64) -> Result<Child, Failure> {
    let found = format!("{TARGET_FOLDER}/corpus/{target}");
    let findings = format!("{FINDINGS}/{target}/");
    for folder in [&found, &findings] {
        fs::create_dir_all(root().join(folder))
            .map_err(|error| format!("{folder} cannot be made: {error}"))?;
    }
    let program = format!("{programs}/{target}");
    let kept = format!("fuzz/corpus/{target}");
    let mut words = vec![found, kept, format!("-max_total_time={seconds}")];
    words.push(format!("-artifact_prefix={findings}"));
    words.extend(["-timeout=30", "-max_len=4096", "-print_final_stats=1"].map(str::to_owned));
    let dictionary = format!("fuzz/dictionaries/{target}.dict");
    if root().join(&dictionary).exists() {
        words.push(format!("-dict={dictionary}"));
    }
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let log = File::create(root().join(log_of(target)))
        .map_err(|error| format!("{} cannot be written: {error}", log_of(target)))?;
    let program = root().join(program);
    let mut hunt: Command = command(&program.to_string_lossy(), &words);
    hunt.stdin(Stdio::null()).stderr(log);
    let child = hunt.spawn();
    child.map_err(|error| format!("{target} could not be started: {error}").into())
}

/// Waits for one target; nothing if it found something, which is shown.
fn finish(target: &str, mut child: Child) -> Result<Option<Figures>, Failure> {
    let ended = child
        .wait()
        .map_err(|error| format!("{target} could not be awaited: {error}"))?;
    let log = fs::read(root().join(log_of(target)))
        .map_err(|error| format!("{} cannot be read: {error}", log_of(target)))?;
    let log = String::from_utf8_lossy(&log);
    let lines: Vec<&str> = log.lines().collect();
    if !ended.success() {
        let shown = lines.len().saturating_sub(LOG_LINES_SHOWN);
        println!("{target} ended with {ended}, and told:");
        println!("{}", lines.get(shown..).unwrap_or_default().join("\n"));
        return Ok(None);
    }
    match figures(&lines) {
        Some(figures) if figures.executed > 0 && figures.reached > 0 => Ok(Some(figures)),
        figures => Err(format!(
            "{target} hunted nothing: {figures:?}, see {}",
            log_of(target)
        )
        .into()),
    }
}

fn log_of(target: &str) -> String {
    format!("{TARGET_FOLDER}/{target}.log")
}

/// Reads `#266622 DONE cov: 4969 ft: 27336 corp: 2155/768Kb ...`.
fn figures(lines: &[&str]) -> Option<Figures> {
    let line = lines.iter().rev().find(|line| line.contains("DONE"))?;
    let mut words = line.split_whitespace();
    let executed = words.next()?.strip_prefix('#')?.parse().ok()?;
    let mut number_behind = |name| {
        let number = words.by_ref().skip_while(|word| *word != name).nth(1)?;
        number.split('/').next()?.parse().ok()
    };
    Some(Figures {
        executed,
        reached: number_behind("cov:")?,
        corpus: number_behind("corp:")?,
    })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_of_a_hunt_is_read() {
        let lines = [
            "#2\tINITED cov: 1 ft: 2 corp: 1/1b exec/s: 0 rss: 26Mb",
            "#266622\tDONE   cov: 4969 ft: 27336 corp: 2155/768Kb lim: 504 exec/s: 443 rss: 45Mb",
            "Done 266622 runs in 601 second(s)",
        ];
        let read = Figures {
            executed: 266_622,
            reached: 4_969,
            corpus: 2_155,
        };
        assert_eq!(figures(&lines), Some(read));
        assert_eq!(figures(&lines[..1]), None);
        let uncounted = ["#8\tDONE   corp: 1/1b lim: 4 exec/s: 0 rss: 26Mb"];
        assert_eq!(figures(&uncounted), None, "a program without counters");
    }
}
