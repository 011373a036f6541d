use std::env::VarError;
use std::io::{self, IsTerminal, Write};

use tracing_subscriber::EnvFilter;

use crate::arguments::LogFormat;
use crate::failure::Failure;

/// Which log lines are wanted, in the words of `tracing`.
const FILTER_VARIABLE: &str = "DUELINE_LOG";
const FILTER_DEFAULT: &str = "info";

/// Sends log lines to the standard error, in colours only if a person watches.
pub(super) fn set_up(format: LogFormat) {
    let (filter, complaint) = filter();
    let lines = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(io::stderr)
        // A log that nobody reads, or that lies on a full disk, must not stop a delivery: complaining
        // of it on the same standard error would panic.
        .log_internal_errors(false)
        .with_ansi(io::stderr().is_terminal());
    match format {
        LogFormat::Text => lines.with_target(false).init(),
        LogFormat::Json => lines.json().flatten_event(true).init(),
    }
    if let Some(complaint) = complaint {
        tracing::warn!("{complaint}");
    }
}

/// The filter that the variable asks for; the usual one, with a complaint, if it cannot be read.
fn filter() -> (EnvFilter, Option<String>) {
    let usual = || EnvFilter::new(FILTER_DEFAULT);
    let text = match std::env::var(FILTER_VARIABLE) {
        Ok(text) if !text.is_empty() => text,
        Ok(_) | Err(VarError::NotPresent) => return (usual(), None),
        Err(error) => return (usual(), Some(complaint(&error))),
    };
    match EnvFilter::try_new(text) {
        Ok(filter) => (filter, None),
        Err(error) => (usual(), Some(complaint(&error))),
    }
}

fn complaint(why: &dyn std::error::Error) -> String {
    format!(
        "{FILTER_VARIABLE} is no filter ({why}), {FILTER_DEFAULT} is taken; write it as debug, or \
         info,dueline_tokio=debug"
    )
}

/// Writes a line beside the log.
pub(super) fn write_line(text: &str) -> Result<(), Failure> {
    writeln!(io::stderr().lock(), "{text}").map_err(Failure::Output)
}
