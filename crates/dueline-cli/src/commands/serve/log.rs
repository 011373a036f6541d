use std::io::{self, IsTerminal, Write};

use tracing_subscriber::EnvFilter;

use crate::arguments::LogFormat;
use crate::failure::Failure;

/// Which log lines are wanted, in the words of `tracing`: `info` unless the variable says otherwise.
const FILTER_VARIABLE: &str = "DUELINE_LOG";

/// Sends log lines to the standard error, in colours only if a person watches.
pub(super) fn set_up(format: LogFormat) {
    let filter =
        EnvFilter::try_from_env(FILTER_VARIABLE).unwrap_or_else(|_| EnvFilter::new("info"));
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
}

/// Writes a line beside the log.
pub(super) fn write_line(text: &str) -> Result<(), Failure> {
    writeln!(io::stderr().lock(), "{text}").map_err(Failure::Output)
}
