//! `cargo xtask weave`: the models of `dueline-weave`. Alone it is the check of that name, their tests; with
//! options it explores further, for as long as that takes.

use crate::checks::{Note, cargo, counted};
use crate::options::Options;
use crate::process::{Failure, run_and_keep};

pub(crate) const USAGE: &str =
    "weave --schedules N [--first-seed S] [--more-preemptions P] [model]";
const SCHEDULES: &str = "--schedules";
const FIRST_SEED: &str = "--first-seed";
const MORE_PREEMPTIONS: &str = "--more-preemptions";

/// Each model holds, and finds its bugs. `cargo test` also where nextest is installed: the models run beside
/// each other as threads, and the slowest decides.
pub(crate) fn check() -> Result<Note, Failure> {
    let tests = cargo(&[
        "test",
        "--package",
        "dueline-weave",
        "--locked",
        "--no-fail-fast",
    ]);
    counted(tests, "cargo test")
}

pub(crate) fn run(arguments: &[&str]) -> Result<Note, Failure> {
    let known = [SCHEDULES, FIRST_SEED, MORE_PREEMPTIONS];
    let options = Options::read(arguments, &known)?;
    if options.number(SCHEDULES).is_none() {
        return Err(format!("usage: cargo xtask {USAGE}").into());
    }
    let mut explore = cargo(&["run", "--package", "dueline-weave", "--locked", "--"]);
    for name in known {
        if let Some(number) = options.number(name) {
            explore.args([name, &number.to_string()]);
        }
    }
    explore.args(options.word);
    let (lines, success) = run_and_keep(explore)?;
    if !success {
        let text = "a model did not hold, or there is none of that name: see above. The same command \
                    with the same seed finds it again";
        return Err(text.to_owned().into());
    }
    let total = lines.iter().find_map(|line| line.strip_prefix("all: "));
    let total = total.ok_or_else(|| "the models told no figures: they did not run".to_owned())?;
    Ok(Note::text(total))
}
