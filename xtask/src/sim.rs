//! `cargo xtask sim`: the simulator. Alone it is the check of that name; with options it goes on for as many
//! seeds, objects or kinds as is asked for, or plants every bug.

use crate::checks::{Note, cargo};
use crate::elsewhere::{self, RUSTFLAGS, TARGET_DIR};
use crate::options::Options;
use crate::process::{Failure, run_and_keep};

pub(crate) const USAGE: &str = "sim --seeds N [--first-seed S] | sim --objects N [--first-seed S] | \
     sim --kinds N [--first-seed S] | sim --mutants N";
const SEEDS: &str = "--seeds";
const OBJECTS: &str = "--objects";
const KINDS: &str = "--kinds";
const FIRST_SEED: &str = "--first-seed";
const MUTANTS: &str = "--mutants";

/// Seeds of the check, the same in every run.
const FIXED_SEEDS: u64 = 2_000;
/// The same for objects with an alarm each. Within so many every place must be reached.
const FIXED_OBJECTS: u64 = 3_000;
/// The same for scenarios of built-in kinds.
const FIXED_KINDS: u64 = 2_000;
/// Most seeds in which each planted bug must be caught.
const MUTANT_SEEDS: u64 = 20_000;

/// What a run of seeds plays.
#[derive(Clone, Copy)]
enum Worlds {
    Nodes,
    Objects,
    Kinds,
}

/// The fixed seeds hold, sixteen of them are the same run in two builds, and every planted bug is caught.
pub(crate) fn check() -> Result<Note, Failure> {
    let nodes = seeds(Worlds::Nodes, FIXED_SEEDS, 0)?;
    let objects = seeds(Worlds::Objects, FIXED_OBJECTS, 0)?;
    let kinds = seeds(Worlds::Kinds, FIXED_KINDS, 0)?;
    let released = hashes(true)?;
    let unoptimized = hashes(false)?;
    if released != unoptimized {
        let text = format!(
            "a seed is not one run: {released:?} with optimization, {unoptimized:?} without"
        );
        return Err(text.into());
    }
    let mutants = mutants(MUTANT_SEEDS)?;
    Ok(Note::text(format!(
        "{nodes}; {objects}; {kinds}; {mutants}"
    )))
}

pub(crate) fn run(arguments: &[&str]) -> Result<Note, Failure> {
    let options = Options::read(arguments, &[SEEDS, OBJECTS, KINDS, FIRST_SEED, MUTANTS])?;
    let first = options.number(FIRST_SEED).unwrap_or(0);
    let asked = [SEEDS, OBJECTS, KINDS, MUTANTS].map(|name| options.number(name));
    match (asked, options.word) {
        ([Some(count), None, None, None], None) => {
            seeds(Worlds::Nodes, count, first).map(Note::text)
        }
        ([None, Some(count), None, None], None) => {
            seeds(Worlds::Objects, count, first).map(Note::text)
        }
        ([None, None, Some(count), None], None) => {
            seeds(Worlds::Kinds, count, first).map(Note::text)
        }
        ([None, None, None, Some(most)], None) => mutants(most).map(Note::text),
        _ => Err(format!("usage: cargo xtask {USAGE}").into()),
    }
}

fn seeds(worlds: Worlds, count: u64, first: u64) -> Result<String, Failure> {
    let (count, first) = (count.to_string(), first.to_string());
    let mut sim = cargo(&["run", "--release", "--package", "dueline-sim", "--locked"]);
    sim.args(["--", "seeds", "--count", &count, "--first", &first]);
    match worlds {
        Worlds::Nodes => {}
        Worlds::Objects => drop(sim.arg("--objects")),
        Worlds::Kinds => drop(sim.arg("--kinds")),
    }
    let (lines, success) = run_and_keep(sim)?;
    let total = lines.iter().find(|line| line.contains(" failing, "));
    match total {
        Some(total) if success => Ok(total.clone()),
        Some(_) => Err(
            "a seed broke a promise, or places were never reached: see above"
                .to_owned()
                .into(),
        ),
        None => Err("the simulator told no figures: it did not run"
            .to_owned()
            .into()),
    }
}

/// The trace hashes of the fixed seeds.
fn hashes(released: bool) -> Result<Vec<String>, Failure> {
    let mut sim = cargo(&["run", "--package", "dueline-sim", "--locked"]);
    if released {
        sim.arg("--release");
    }
    sim.args(["--", "hashes"]);
    let (lines, success) = run_and_keep(sim)?;
    let hashes: Vec<String> = lines
        .into_iter()
        .filter(|line| line.starts_with("trace hash "))
        .collect();
    if !success || hashes.len() != 16 {
        return Err("the simulator told no hashes of sixteen seeds"
            .to_owned()
            .into());
    }
    Ok(hashes)
}

/// A build of its own holds the planted bugs. Those that no seed can show have tests of their own.
fn mutants(most: u64) -> Result<String, Failure> {
    let most = most.to_string();
    let mut sim = cargo(&["run", "--release", "--package", "dueline-sim", "--locked"]);
    sim.args(["--target-dir", TARGET_DIR]);
    sim.args(["--", "mutants", "--seeds", &most]);
    sim.env(RUSTFLAGS.0, RUSTFLAGS.1);
    let (lines, success) = run_and_keep(sim)?;
    let total = lines
        .iter()
        .find(|line| line.contains(" planted bugs caught "));
    match total {
        Some(total) if success => Ok(format!("{total}; {}", elsewhere::check()?)),
        Some(_) => Err("a planted bug was not caught: see above".to_owned().into()),
        None => Err("the simulator planted nothing: it did not run"
            .to_owned()
            .into()),
    }
}
