//! `dueline serve`

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// Run the server: timers over HTTP, webhooks when they are due.
///
/// It stops on SIGTERM or Ctrl-C once running deliveries have ended or the grace period is over; a second
/// signal stops it at once. Neither loses a timer.
#[derive(Debug, Args)]
#[command(after_help = "Environment:\n  \
    DUELINE_LOG  Which log lines are written: error, warn, info, debug or trace,\n               \
    or a filter for parts of the server: info,dueline_tokio=debug\n               [default: info]")]
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
        value_name = "ADDRESS",
        value_parser = listen
    )]
    pub(crate) listen: SocketAddr,
    /// What an acknowledged timer survives.
    #[arg(long, env = "DUELINE_DURABILITY", value_enum, default_value_t = DurabilityArgument::PowerLoss)]
    pub(crate) durability: DurabilityArgument,
    /// Let webhooks go to loopback, private and link-local addresses: for local use.
    #[arg(long, env = "DUELINE_ALLOW_PRIVATE_TARGETS", value_parser = yes_or_no)]
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

fn listen(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| {
        "write it as 127.0.0.1:7431, or [::1]:7431: an IP address and a port".to_owned()
    })
}

/// The flag itself takes no value; this reads what the environment says.
fn yes_or_no(text: &str) -> Result<bool, String> {
    match text.to_ascii_lowercase().as_str() {
        "1" | "true" | "t" | "yes" | "y" | "on" => Ok(true),
        "" | "0" | "false" | "f" | "no" | "n" | "off" => Ok(false),
        _ => Err("write it as 1 or 0, yes or no, true or false".to_owned()),
    }
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

    #[test]
    fn an_address_is_a_number_and_a_port() {
        assert!(listen("127.0.0.1:0").is_ok() && listen("[::1]:7431").is_ok());
        for wrong in ["localhost:7000", "7000", "127.0.0.1", ""] {
            assert!(listen(wrong).is_err_and(|why| why.contains("write it as 127.0.0.1:7431")));
        }
    }

    #[test]
    fn yes_and_no_are_read_in_their_usual_spellings() {
        for yes in ["1", "true", "yes", "on", "TRUE"] {
            assert_eq!(yes_or_no(yes), Ok(true), "{yes}");
        }
        for no in ["0", "false", "no", "off", ""] {
            assert_eq!(yes_or_no(no), Ok(false), "{no}");
        }
        assert!(yes_or_no("maybe").is_err());
    }
}
