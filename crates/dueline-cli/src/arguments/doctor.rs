//! `dueline doctor`

use std::path::PathBuf;

use clap::Args;

/// Examine a data directory, whether or not a server is using it.
///
/// Nothing is changed unless --repair is given. Exit code 0: nothing to worry about; 1: something is.
#[derive(Debug, Args)]
pub(crate) struct Doctor {
    /// Directory to examine.
    #[arg(
        long,
        env = "DUELINE_DATA",
        default_value = "./dueline-data",
        value_name = "DIR"
    )]
    pub(crate) data: PathBuf,
    /// Set wakes that are missing; the server must be stopped.
    #[arg(long)]
    pub(crate) repair: bool,
}
