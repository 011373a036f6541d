//! Benchmarks: each measures Dueline and a yardstick in turns, in one run, and prints the ratio.
//!
//! Machines differ and are noisy; the ratios travel, the rates do not.
#![allow(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a benchmark prints what it measured by the real clock"
)]

mod backlog;
mod fire;
mod lateness;
mod memory;
mod pending;
mod raw;
mod thread;

use clap::{Parser, Subcommand};

#[derive(Debug, Parser)]
#[command(about = "Benchmarks of Dueline beside yardsticks of the same run")]
struct Arguments {
    #[command(subcommand)]
    bench: Bench,
}

#[derive(Debug, Subcommand)]
enum Bench {
    /// Fires a backlog on SQLite, against the same work as plain SQL.
    Fire {
        /// Timers a round.
        #[arg(long, default_value_t = 50_000)]
        timers: u64,
        /// Rounds; the median counts.
        #[arg(long, default_value_t = 5)]
        rounds: usize,
        /// Timers a commit.
        #[arg(long, default_values_t = [1u16, 32, 64, 256, 1_024])]
        group: Vec<u16>,
    },
    /// Drains a backlog of one partition under a small budget, with a write between any two ticks.
    Backlog {
        /// Timers in all.
        #[arg(long, default_value_t = 1_000_000)]
        timers: u64,
        /// Most fires of a tick.
        #[arg(long, default_value_t = 100)]
        fires_max: u32,
        /// Most time of a tick, in milliseconds.
        #[arg(long, default_value_t = 20)]
        elapsed_max_ms: u64,
    },
    /// How late handlers start under a light, steady load, with the driver and SQLite.
    Lateness {
        /// Timers in all.
        #[arg(long, default_value_t = 1_000)]
        timers: u64,
        /// Milliseconds from one to the next.
        #[arg(long, default_value_t = 10)]
        apart_ms: u64,
    },
    /// Starts the server over many pending timers: time to ready and resident memory.
    Pending {
        /// Timers in all.
        #[arg(long, default_value_t = 2_000_000)]
        timers: u64,
        /// Partitions they lie in.
        #[arg(long, default_value_t = 100_000)]
        partitions: u64,
        /// How long the server is watched, in seconds.
        #[arg(long, default_value_t = 20)]
        watch_s: u64,
        /// The server's binary; by default the one built beside this.
        #[arg(long)]
        server: Option<std::path::PathBuf>,
    },
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    match Arguments::parse().bench {
        Bench::Fire {
            timers,
            rounds,
            group,
        } => fire::run(timers, rounds, &group),
        Bench::Backlog {
            timers,
            fires_max,
            elapsed_max_ms,
        } => backlog::run(timers, fires_max, elapsed_max_ms),
        Bench::Lateness { timers, apart_ms } => lateness::run(timers, apart_ms),
        Bench::Pending {
            timers,
            partitions,
            watch_s,
            server,
        } => pending::run(timers, partitions, watch_s, server),
    }
}

/// The middle of some figures.
fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures.get(figures.len() / 2).copied().unwrap_or(0.0)
}
