//! Planted bugs that the simulator cannot show are caught by tests that it names: these run here, in the build
//! that holds the bugs.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use crate::checks::cargo;
use crate::process::{Failure, root, run_and_keep};
use crate::test_counts::TestCounts;

/// Where that build lies, and what makes it one.
pub(crate) const TARGET_DIR: &str = "target/mutants";
pub(crate) const RUSTFLAGS: (&str, &str) = ("RUSTFLAGS", "--cfg dueline_mutants");
/// A test that has not ended by then waits for what the bug has lost.
const ENDS_WITHIN: Duration = Duration::from_secs(30);
/// The random histories of the core, which plant by themselves what can show in them.
const HISTORIES: (&str, &str, &str) = (
    "dueline",
    "planted_bugs",
    "the_random_histories_catch_every_bug_that_can_show_in_them",
);

/// A bug and the test that catches it, as `sim elsewhere` tells them.
#[derive(Debug, PartialEq, Eq)]
struct Named {
    mutant: String,
    test: String,
}

/// The tests of one program: its package, and its file, which is empty for those of the library.
type Programs = BTreeMap<(String, String), Vec<Named>>;

/// Every named test passes without its bug and fails with it; and so do the random histories.
pub(crate) fn check() -> Result<String, Failure> {
    let mut sim = cargo(&["run", "--release", "--package", "dueline-sim", "--locked"]);
    sim.args(["--target-dir", TARGET_DIR, "--", "elsewhere"]);
    sim.env(RUSTFLAGS.0, RUSTFLAGS.1);
    let (lines, success) = run_and_keep(sim)?;
    let programs = read(&lines);
    if !success || programs.is_empty() {
        return Err("the simulator named no tests: it did not run"
            .to_owned()
            .into());
    }
    let (package, file, test) = HISTORIES;
    let histories = (package.to_owned(), file.to_owned());
    let all: Vec<_> = programs.keys().chain([&histories]).collect();
    build_all(&all)?;
    passes_without(package, &located(&all, package, file)?, &[test])?;
    let mut caught = 0;
    let mut escaped = Vec::new();
    for ((package, file), named) in &programs {
        let program = located(&all, package, file)?;
        let tests: Vec<&str> = named.iter().map(|named| named.test.as_str()).collect();
        passes_without(package, &program, &tests)?;
        for named in named {
            if fails_with(package, &program, named)? {
                caught += 1;
            } else {
                escaped.push(named.mutant.clone());
            }
        }
    }
    if escaped.is_empty() {
        return Ok(format!(
            "{caught} caught by the tests that are named for them"
        ));
    }
    let text = format!("not caught by the tests that are named for them: {escaped:?}");
    Err(text.into())
}

fn read(lines: &[String]) -> Programs {
    let mut programs = Programs::new();
    for line in lines {
        let fields: Vec<&str> = line.split('\t').collect();
        if let ["elsewhere", mutant, package, file, test] = fields.as_slice() {
            let program = ((*package).to_owned(), (*file).to_owned());
            programs.entry(program).or_default().push(Named {
                mutant: (*mutant).to_owned(),
                test: (*test).to_owned(),
            });
        }
    }
    programs
}

/// Builds all these programs at once. Each later look at one of them selects the same packages, so that cargo gives
/// the crates below them the same features and has nothing left to build.
fn build_all(programs: &[&(String, String)]) -> Result<(), Failure> {
    let files: BTreeSet<&str> = programs.iter().map(|(_, file)| file.as_str()).collect();
    let (_, success) = run_and_keep(building(programs, &files))?;
    if success {
        Ok(())
    } else {
        Err("the tests were not built".to_owned().into())
    }
}

/// Where a program lies that was built with all the others.
fn located(programs: &[&(String, String)], package: &str, file: &str) -> Result<PathBuf, Failure> {
    let (lines, success) = run_and_keep(building(programs, &BTreeSet::from([file])))?;
    let crate_name = package.replace('-', "_");
    // The tests within a library have the name of its crate.
    let name = if file.is_empty() {
        crate_name
    } else {
        file.to_owned()
    };
    let found = lines.iter().filter_map(|line| program_of(line));
    let mut found: Vec<&str> = found.filter(|path| name_of(path) == name).collect();
    match (success, found.pop(), found.pop()) {
        (true, Some(program), None) => Ok(root().join(program)),
        (true, Some(_), Some(_)) => {
            Err(format!("two packages have tests of the name {file}: rename one of them").into())
        }
        _ => Err(format!("the tests of {package} {file} were not built").into()),
    }
}

/// Building these files, of the packages of all programs.
fn building(programs: &[&(String, String)], files: &BTreeSet<&str>) -> Command {
    let mut build = cargo(&["test", "--no-run", "--locked"]);
    build.args(["--target-dir", TARGET_DIR]);
    let packages: BTreeSet<&str> = programs
        .iter()
        .map(|(package, _)| package.as_str())
        .collect();
    for package in packages {
        build.args(["--package", package]);
    }
    for file in files {
        if file.is_empty() {
            build.arg("--lib");
        } else {
            build.args(["--test", file]);
        }
    }
    build.env(RUSTFLAGS.0, RUSTFLAGS.1);
    build
}

/// The path in a line such as `Executable tests/clock.rs (target/mutants/debug/deps/clock-0123)`.
fn program_of(line: &str) -> Option<&str> {
    let (_, path) = line
        .trim_start()
        .strip_prefix("Executable ")?
        .rsplit_once('(')?;
    path.strip_suffix(')')
}

/// What a program is called: its file without the folder and the hash.
fn name_of(path: &str) -> &str {
    let file = path.rsplit('/').next().unwrap_or(path);
    file.rsplit_once('-').map_or(file, |(name, _)| name)
}

fn tests(package: &str, program: &Path, tests: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.arg("--exact").args(tests);
    // As cargo does: tests look for their files from there.
    command.current_dir(root().join("crates").join(package));
    command
}

fn passes_without(package: &str, program: &Path, names: &[&str]) -> Result<(), Failure> {
    let (lines, success) = run_and_keep(tests(package, program, names))?;
    let counts = TestCounts::read(&lines);
    if success && counts.passed == names.len() as u64 {
        return Ok(());
    }
    let text = format!(
        "without a bug: {counts}, of {} in {package}: {names:?}",
        names.len()
    );
    Err(text.into())
}

/// Whether the test fails, or does not end, with its bug planted.
fn fails_with(package: &str, program: &Path, named: &Named) -> Result<bool, Failure> {
    let mut command = tests(package, program, &[&named.test]);
    command.env("DUELINE_MUTANT", &named.mutant);
    command.stdout(Stdio::piped()).stderr(Stdio::null());
    let cannot = |error| format!("the tests of {package} cannot be run: {error}");
    let mut child = command.spawn().map_err(cannot)?;
    // Its output ends with it.
    let (says_end, end) = mpsc::channel();
    let output = child.stdout.take();
    let reader = thread::spawn(move || {
        let read = output.map(|mut output| io::copy(&mut output, &mut io::sink()));
        drop(says_end.send(read));
    });
    let ends = end.recv_timeout(ENDS_WITHIN).is_ok();
    if !ends {
        child.kill().map_err(cannot)?;
    }
    let status = child.wait().map_err(cannot)?;
    drop(reader.join());
    let (is_caught, how) = match (ends, status.success()) {
        (false, _) => (true, "caught, for it does not end, by"),
        (true, false) => (true, "caught by"),
        (true, true) => (false, "ESCAPED"),
    };
    println!("{:<34} {how} {package}: {}", named.mutant, named.test);
    Ok(is_caught)
}

#[cfg(test)]
mod tests_of_reading {
    use super::*;

    #[test]
    fn what_the_simulator_names_is_read_and_nothing_else() {
        let lines = [
            "elsewhere\tone-bug\tdueline\tbehaviour\tmoves::it_moves",
            "elsewhere\tother-bug\tdueline\tbehaviour\tmoves::it_stays",
            "elsewhere\tthird-bug\tdueline-sqlite\t\tlock::tests::it_ends",
            "   Compiling dueline v0.1.0",
        ];
        let programs = read(&lines.map(str::to_owned));
        let sizes: Vec<usize> = programs.values().map(Vec::len).collect();
        assert_eq!(sizes, [2, 1]);
        let named = &programs[&("dueline".to_owned(), "behaviour".to_owned())];
        assert_eq!(named[0].mutant, "one-bug");
        assert_eq!(named[1].test, "moves::it_stays");
    }

    #[test]
    fn the_program_is_read_from_what_cargo_says() {
        let line = "  Executable unittests src/lib.rs (target/mutants/debug/deps/dueline-01)";
        assert_eq!(
            program_of(line),
            Some("target/mutants/debug/deps/dueline-01")
        );
        assert_eq!(name_of("target/mutants/debug/deps/dueline-01"), "dueline");
        assert_eq!(program_of("   Compiling dueline v0.1.0 (/a)"), None);
    }
}
