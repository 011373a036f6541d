//! `cargo xtask crash`: the kill loop for as long as is asked for. The test of the same name is its short
//! form.

use crate::checks::Note;
use crate::options::Options;
use crate::process::{Failure, command, run_and_keep};

pub(crate) const USAGE: &str = "crash --kills N [--first-seed S]";
const KILLS: &str = "--kills";
const FIRST_SEED: &str = "--first-seed";

pub(crate) fn run(arguments: &[&str]) -> Result<Note, Failure> {
    let options = Options::read(arguments, &[KILLS, FIRST_SEED])?;
    let (Some(kills), None) = (options.number(KILLS), options.word) else {
        return Err(format!("usage: cargo xtask {USAGE}").into());
    };
    let first_seed = options.number(FIRST_SEED).unwrap_or(1);
    let mut test = command(
        "cargo",
        &[
            "test",
            "--package",
            "dueline-cli",
            "--test",
            "kill_loop",
            "--locked",
            "--",
            "--nocapture",
        ],
    );
    test.env("DUELINE_KILLS", kills.to_string());
    test.env("DUELINE_FIRST_SEED", first_seed.to_string());
    let (lines, success) = run_and_keep(test)?;
    if !success {
        let text = "a promise was broken, or the loop could not run; the seed and the kept directory \
                    are told above";
        return Err(text.to_owned().into());
    }
    let total = lines.iter().find(|line| line.starts_with("all "));
    let total = total.ok_or_else(|| "the loop told no figures: it did not run".to_owned())?;
    Ok(Note::text(total.as_str()))
}
