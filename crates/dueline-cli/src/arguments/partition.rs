//! `dueline partition ...`

use clap::{Args, Subcommand};

use super::ServerArgument;

/// See which partitions exist.
#[derive(Debug, Args)]
pub(crate) struct Partition {
    #[command(subcommand)]
    pub(crate) verb: PartitionVerb,
}

/// What to do with partitions.
#[derive(Debug, Subcommand)]
pub(crate) enum PartitionVerb {
    /// List the partitions the server holds.
    List(ListPartitions),
}

/// List the partitions the server holds.
#[derive(Debug, Args)]
pub(crate) struct ListPartitions {
    /// List at most this many.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) limit: u32,
    /// Go on where an earlier list ended.
    #[arg(long, value_name = "TOKEN")]
    pub(crate) page_token: Option<String>,
    #[command(flatten)]
    pub(crate) server: ServerArgument,
}
