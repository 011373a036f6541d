//! `dueline dead ...`

use clap::{Args, Subcommand};

use super::{ServerArgument, names};

/// Look after timers that were given up.
#[derive(Debug, Args)]
pub(crate) struct Dead {
    #[command(subcommand)]
    pub(crate) verb: DeadVerb,
}

/// What to do with dead letters.
#[derive(Debug, Subcommand)]
pub(crate) enum DeadVerb {
    /// List the dead letters of a partition.
    List(ListDead),
    /// Put a dead letter back, due now and with all its attempts; `--all` puts back every one.
    Requeue(RequeueDead),
    /// Delete a dead letter for good.
    Purge(PurgeDead),
}

/// List the dead letters of a partition.
#[derive(Debug, Args)]
pub(crate) struct ListDead {
    /// Partition to list.
    #[arg(value_parser = names::partition)]
    pub(crate) partition: String,
    /// List at most this many.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) limit: u32,
    /// Go on where an earlier list ended.
    #[arg(long, value_name = "TOKEN")]
    pub(crate) page_token: Option<String>,
    #[command(flatten)]
    pub(crate) server: ServerArgument,
}

/// Put dead letters back.
#[derive(Debug, Args)]
pub(crate) struct RequeueDead {
    /// Partition of the dead letter.
    #[arg(value_parser = names::partition)]
    pub(crate) partition: String,
    /// The dead letter, as `dueline dead list` names it.
    #[arg(conflicts_with = "all")]
    pub(crate) dead_id: Option<String>,
    /// Every dead letter of the partition.
    #[arg(long)]
    pub(crate) all: bool,
    #[command(flatten)]
    pub(crate) server: ServerArgument,
}

/// Delete a dead letter for good.
#[derive(Debug, Args)]
pub(crate) struct PurgeDead {
    /// Partition of the dead letter.
    #[arg(value_parser = names::partition)]
    pub(crate) partition: String,
    /// The dead letter, as `dueline dead list` names it.
    pub(crate) dead_id: String,
    #[command(flatten)]
    pub(crate) server: ServerArgument,
}
