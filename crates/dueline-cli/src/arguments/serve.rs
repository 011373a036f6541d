//! `dueline serve`

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// Run the server: timers over HTTP, webhooks when they are due.
///
/// It stops on SIGTERM or Ctrl-C once running deliveries have ended or the grace period is over; a second
/// signal stops it at once. Neither loses a timer.
#[derive(Debug, Args)]
pub(crate) struct Serve {
    /// Directory that holds everything; made if it does not exist.
    #[arg(
        long,
        env = "DUELINE_DATA",
        default_value = "./dueline-data",
        value_name = "DIR"
    )]
    pub(crate) data: PathBuf,
    /// Address to listen on; loopback only.
    #[arg(
        long,
        env = "DUELINE_LISTEN",
        default_value = "127.0.0.1:7431",
        value_name = "ADDRESS"
    )]
    pub(crate) listen: SocketAddr,
    /// What an acknowledged timer survives.
    #[arg(long, env = "DUELINE_DURABILITY", value_enum, default_value_t = DurabilityArgument::PowerLoss)]
    pub(crate) durability: DurabilityArgument,
    /// Let webhooks go to loopback, private and link-local addresses: for local use.
    #[arg(long, env = "DUELINE_ALLOW_PRIVATE_TARGETS")]
    pub(crate) allow_private_targets: bool,
    /// How long a stop waits for running deliveries.
    #[arg(long, env = "DUELINE_GRACE", default_value = "10s", value_name = "DURATION", value_parser = grace)]
    pub(crate) grace: std::time::Duration,
    /// How log lines look.
    #[arg(long, env = "DUELINE_LOG_FORMAT", value_enum, default_value_t = LogFormat::Text)]
    pub(crate) log_format: LogFormat,
}

/// What an acknowledged timer survives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DurabilityArgument {
    /// A power loss: every commit reaches the disk before it is acknowledged.
    PowerLoss,
    /// A crash or kill of the process, not a power loss: faster.
    ProcessCrash,
}

/// How log lines look.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// Lines for people.
    Text,
    /// A JSON object a line.
    Json,
}

fn grace(text: &str) -> Result<std::time::Duration, String> {
    let span: jiff::SignedDuration = text
        .parse()
        .map_err(|_| "write it as 10s, 500ms or PT10S".to_owned())?;
    std::time::Duration::try_from(span).map_err(|_| "it must not be negative".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grace_period_is_written_the_friendly_or_the_iso_way() {
        assert_eq!(grace("10s"), Ok(std::time::Duration::from_secs(10)));
        assert_eq!(grace("PT1.5S"), Ok(std::time::Duration::from_millis(1_500)));
        assert_eq!(grace("0s"), Ok(std::time::Duration::ZERO));
        assert!(grace("-1s").is_err());
        assert!(grace("ten").is_err());
    }
}
