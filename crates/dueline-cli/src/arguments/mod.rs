//! What may be typed: a noun, then a verb. Each file is one noun.

mod dead;
mod doctor;
mod names;
mod parse;
mod partition;
mod serve;
mod server;
mod timer;

pub(crate) use dead::{Dead, DeadVerb, ListDead, PurgeDead, RequeueDead};
pub(crate) use doctor::Doctor;
pub(crate) use parse::parse;
pub(crate) use partition::{ListPartitions, Partition, PartitionVerb};
pub(crate) use serve::{DurabilityArgument, LogFormat, Serve};
pub(crate) use server::ServerArgument;
pub(crate) use timer::{
    CancelTimer, CreateTimer, Envelope, GetTimer, ListTimers, Timer, TimerFields, TimerVerb,
    UpdateTimer,
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
    /// How results are printed: `table` for people, `json` for programs.
    #[arg(
        long,
        global = true,
        value_enum,
        default_value_t = OutputFormat::Table,
        value_name = "FORMAT",
        hide_possible_values = true,
        display_order = 900
    )]
    pub(crate) output: OutputFormat,

    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The nouns. Each is described where it is defined.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Serve(Serve),
    Timer(Box<Timer>),
    Dead(Dead),
    Partition(Partition),
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
