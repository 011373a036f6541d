//! The command line of the simulator.
#![forbid(unsafe_code)]
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "what it prints is its output"
)]

#[cfg(dueline_mutants)]
mod elsewhere;
mod hunt;
#[cfg(dueline_mutants)]
mod mutants;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, Subcommand};
use dueline_history::{trace_hash, write};
use dueline_sim::{KINDS_FROM, OBJECTS, Plan, judge, shrink};

/// Simulates engine and drivers on clocks, a store and a schedule that a seed decides.
#[derive(Debug, Parser)]
#[command(name = "sim", version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// One seed: what it broke, its trace hash, and if asked for its history.
    Run {
        /// The seed.
        #[arg(long)]
        seed: u64,
        /// Writes the history there, as JSON lines.
        #[arg(long)]
        history: Option<PathBuf>,
        /// Plants this bug first; only in a build that holds the planted bugs.
        #[arg(long)]
        mutant: Option<String>,
        /// Prints the plan.
        #[arg(long)]
        plan: bool,
    },
    /// So many seeds in a row, on all cores.
    Seeds {
        /// How many.
        #[arg(long, default_value_t = 1_000)]
        count: u64,
        /// The first.
        #[arg(long, default_value_t = 0)]
        first: u64,
        /// Threads; 0 is one a core.
        #[arg(long, default_value_t = 0)]
        threads: usize,
        /// Objects with an alarm each, in place of nodes.
        #[arg(long)]
        objects: bool,
        /// Scenarios of built-in kinds, in place of scripted ones.
        #[arg(long, conflicts_with = "objects")]
        kinds: bool,
    },
    /// Seeds that nobody has tried, for so long; every fourth plays an object, every fourth a
    /// built-in kind.
    Hunt {
        /// For how long.
        #[arg(long, default_value_t = 10)]
        minutes: u64,
        /// Threads; 0 is one a core.
        #[arg(long, default_value_t = 0)]
        threads: usize,
    },
    /// Plants each bug in turn and looks for a seed that catches it.
    Mutants {
        /// Only this one.
        #[arg(long)]
        only: Option<String>,
        /// Most seeds for each.
        #[arg(long, default_value_t = 20_000)]
        seeds: u64,
        /// In worlds of objects alone, also those that are no bugs of their driver.
        #[arg(long)]
        objects: bool,
    },
    /// The tests that catch the bugs which no seed can show.
    Elsewhere,
    /// Cuts the plan of a failing seed down to what it needs.
    Shrink {
        /// The seed.
        #[arg(long)]
        seed: u64,
        /// Plants this bug first; only in a build that holds the planted bugs.
        #[arg(long)]
        mutant: Option<String>,
    },
    /// The trace hashes of fixed seeds, six of nodes, four of objects and six of kinds: the same in every build.
    Hashes,
}

fn main() -> ExitCode {
    match Arguments::parse().command {
        Command::Run {
            seed,
            history,
            mutant,
            plan,
        } => with_planted(mutant.as_deref(), || run(seed, history, plan)),
        Command::Seeds {
            count,
            first,
            threads,
            objects,
            kinds,
        } => {
            let from = match (objects, kinds) {
                (true, _) => OBJECTS,
                (_, true) => KINDS_FROM,
                _ => 0,
            };
            hunt::seeds(from | first, count, threads)
        }
        Command::Hunt { minutes, threads } => {
            hunt::hunt(Duration::from_secs(60 * minutes), threads)
        }
        Command::Mutants {
            only,
            seeds,
            objects,
        } => mutants_command(only.as_deref(), seeds, objects),
        Command::Elsewhere => elsewhere_command(),
        Command::Shrink { seed, mutant } => with_planted(mutant.as_deref(), || cut(seed)),
        Command::Hashes => {
            let fixed = (1_000..1_006)
                .chain(OBJECTS + 1_000..OBJECTS + 1_004)
                .chain(KINDS_FROM + 1_000..KINDS_FROM + 1_006);
            for seed in fixed {
                let verdict = judge(&Plan::of(seed));
                println!(
                    "trace hash {:016x} of seed {seed}",
                    trace_hash(&verdict.events)
                );
            }
            ExitCode::SUCCESS
        }
    }
}

fn run(seed: u64, history: Option<PathBuf>, shows_plan: bool) -> ExitCode {
    let plan = Plan::of(seed);
    if shows_plan {
        println!("{plan:#?}");
    }
    let verdict = judge(&plan);
    for broken in &verdict.broken {
        println!("seed {seed}: {broken}");
    }
    println!(
        "seed {seed}: {} broken promises, {} events, trace hash {:016x}",
        verdict.broken.len(),
        verdict.events.len(),
        trace_hash(&verdict.events)
    );
    if let Some(path) = history
        && let Err(error) = write(&path, &verdict.events)
    {
        eprintln!("error: the history cannot be written: {error}");
        return ExitCode::FAILURE;
    }
    if verdict.broken.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

fn cut(seed: u64) -> ExitCode {
    let (plan, runs) = shrink(&Plan::of(seed));
    let verdict = judge(&plan);
    println!("{plan:#?}");
    for event in &verdict.events {
        if let Ok(line) = serde_json::to_string(event) {
            println!("{line}");
        }
    }
    for broken in &verdict.broken {
        println!("seed {seed}: {broken}");
    }
    println!(
        "seed {seed}: {} actions are left after {runs} runs, {} broken promises",
        plan.actions.len(),
        verdict.broken.len()
    );
    ExitCode::SUCCESS
}

#[cfg(dueline_mutants)]
fn with_planted(mutant: Option<&str>, then: impl FnOnce() -> ExitCode) -> ExitCode {
    mutants::with_planted(mutant, then)
}

#[cfg(not(dueline_mutants))]
fn with_planted(mutant: Option<&str>, then: impl FnOnce() -> ExitCode) -> ExitCode {
    if mutant.is_some() {
        return without_bugs();
    }
    then()
}

#[cfg(dueline_mutants)]
fn mutants_command(only: Option<&str>, seeds: u64, objects: bool) -> ExitCode {
    mutants::all(only, seeds, objects)
}

#[cfg(dueline_mutants)]
fn elsewhere_command() -> ExitCode {
    mutants::elsewhere()
}

#[cfg(not(dueline_mutants))]
fn elsewhere_command() -> ExitCode {
    without_bugs()
}

#[cfg(not(dueline_mutants))]
fn mutants_command(_: Option<&str>, _: u64, _: bool) -> ExitCode {
    without_bugs()
}

#[cfg(not(dueline_mutants))]
fn without_bugs() -> ExitCode {
    eprintln!(
        "error: this build holds no planted bugs; run `cargo xtask sim --mutants`, or build with \
         RUSTFLAGS='--cfg dueline_mutants'"
    );
    ExitCode::from(2)
}
