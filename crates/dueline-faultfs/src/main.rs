//! Runs the sweeps at any length and prints what they found.
#![allow(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a command prints its figures, and the real time they took"
)]

use std::time::Instant;

use clap::{Parser, Subcommand};
use dueline_faultfs::errors::{self, ALL_WAYS, ALL_WORK};
use dueline_faultfs::{Failure, power_loss, script};
use dueline_sqlite::Durability;

#[derive(Debug, Parser)]
#[command(about = "Power loss and failing calls under Dueline's SQLite store")]
struct Arguments {
    #[command(subcommand)]
    sweep: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Cuts the power at every sync and every tenth write of a script of 200 commits.
    Powerloss {
        /// Images checked for each durability.
        #[arg(long, default_value_t = 2_000)]
        images: usize,
        /// What the random images go by.
        #[arg(long, default_value_t = 1)]
        first_seed: u64,
    },
    /// Makes the n-th call to the file system fail, for every n, in every piece of work.
    Errors {
        /// Images checked behind each failure, that of a killed process first.
        #[arg(long, default_value_t = 4)]
        images: u64,
        /// What the random images go by.
        #[arg(long, default_value_t = 1)]
        first_seed: u64,
    },
}

fn main() -> Result<(), Failure> {
    let started = Instant::now();
    match Arguments::parse().sweep {
        Command::Powerloss { images, first_seed } => powerloss(images, first_seed)?,
        Command::Errors { images, first_seed } => errors(images, first_seed)?,
    }
    println!("{:.1} s", started.elapsed().as_secs_f64());
    Ok(())
}

fn powerloss(images: usize, first_seed: u64) -> Result<(), Failure> {
    for durability in [Durability::PowerLoss, Durability::ProcessCrash] {
        let recording = script::record(durability)?;
        let found = power_loss::sweep(&recording, images, first_seed)?;
        println!(
            "{durability}: {} commits, {} crash points, {} images: {} held the commit in flight, \
             {} had lost acknowledged ones, {} at most",
            recording.commits(),
            found.points,
            found.images,
            found.in_flight_kept,
            found.with_losses,
            found.lost_max,
        );
        match durability {
            Durability::PowerLoss if found.with_losses > 0 => {
                return Err("a power cut lost acknowledged commits".into());
            }
            Durability::ProcessCrash if found.with_losses == 0 => {
                return Err("the weaker durability lost nothing: the VFS does not work".into());
            }
            _ => {}
        }
    }
    let recording = script::record(Durability::PowerLoss)?;
    let found = power_loss::sweep_after_kill(&recording, images / 16, first_seed)?;
    println!(
        "kill, reopen, read, power cut: {} crash points, {} images",
        found.points, found.images
    );
    Ok(())
}

fn errors(images: u64, first_seed: u64) -> Result<(), Failure> {
    let (mut runs, mut checked, mut broken) = (0, 0, 0);
    for work in ALL_WORK {
        for way in ALL_WAYS {
            let found = match errors::sweep(work, way, images, first_seed) {
                Ok(found) => found,
                Err(error) => {
                    println!("BROKEN: {error}");
                    broken += 1;
                    continue;
                }
            };
            let (cause, lasting) = way;
            println!(
                "{work:?}, {cause:?} {}: {} runs, {} refused, {} images; first to fail {:?}",
                if lasting { "from then on" } else { "once" },
                found.runs,
                found.refused,
                found.images,
                found.calls,
            );
            runs += found.runs;
            checked += found.images;
        }
    }
    println!("{runs} runs with a failing call, {checked} images");
    if broken > 0 {
        return Err(format!("{broken} sweeps are broken").into());
    }
    Ok(())
}
