//! What may be typed: a noun, then a verb. Each file is one noun.

mod dead;
mod doctor;
mod names;
mod partition;
mod serve;
mod server;
mod timer;

pub(crate) use dead::{Dead, DeadVerb, ListDead, PurgeDead, RequeueDead};
pub(crate) use doctor::Doctor;
pub(crate) use partition::{ListPartitions, Partition, PartitionVerb};
pub(crate) use serve::{DurabilityArgument, LogFormat, Serve};
pub(crate) use server::ServerArgument;
pub(crate) use timer::{
    CancelTimer, CreateTimer, GetTimer, ListTimers, Timer, TimerFields, TimerVerb, UpdateTimer,
};

use clap::{Parser, Subcommand, ValueEnum};

/// Durable timers: schedule over HTTP, survive crashes, deliver signed webhooks.
///
/// Start a server with `dueline serve`; the other commands talk to it.
#[derive(Debug, Parser)]
#[command(
    name = "dueline",
    version,
    propagate_version = true,
    max_term_width = 100
)]
pub(crate) struct Arguments {
    /// How results are printed.
    #[arg(long, global = true, value_enum, default_value_t = OutputFormat::Table, value_name = "FORMAT")]
    pub(crate) output: OutputFormat,

    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The nouns.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run the server: timers over HTTP, webhooks when they are due.
    Serve(Serve),
    /// Schedule, look up, change, cancel and fire timers.
    Timer(Box<Timer>),
    /// Look after timers that were given up.
    Dead(Dead),
    /// See which partitions exist.
    Partition(Partition),
    /// Examine a data directory, whether or not a server is using it.
    Doctor(Doctor),
}

/// How results are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum OutputFormat {
    /// Columns for people.
    Table,
    /// One JSON document for programs.
    Json,
}
