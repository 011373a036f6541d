//! `dueline timer ...`

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use serde::Serialize;

use super::{ServerArgument, names};
use crate::document::Document;

/// Schedule, look up, change, cancel and fire timers.
#[derive(Debug, Args)]
pub(crate) struct Timer {
    #[command(subcommand)]
    pub(crate) verb: TimerVerb,
}

/// What to do with timers.
#[derive(Debug, Subcommand)]
pub(crate) enum TimerVerb {
    /// Create a timer, or replace the one with that id.
    #[command(
        after_help = "Example:\n  dueline timer create orders order-42 --in 30m \\\n    \
        --url https://example.com/hook --payload '{\"order\": 42}'\n\n\
        Left out, they are:\n  --attempts-max 20, --retry-initial 5s, --retry-max 10m, --deadline 30s, \
        --envelope event"
    )]
    Create(CreateTimer),
    /// Show one timer.
    Get(GetTimer),
    /// List the timers of a partition.
    List(ListTimers),
    /// Change some fields of a timer and keep the others.
    Update(UpdateTimer),
    /// Cancel a timer: it will have no effect.
    Cancel(CancelTimer),
    /// Make a timer due now.
    Fire(GetTimer),
}

/// Create a timer, or replace the one with that id.
#[derive(Debug, Args)]
pub(crate) struct CreateTimer {
    /// Partition the timer belongs to.
    #[arg(value_parser = names::partition)]
    pub(crate) partition: String,
    /// Id of the timer; the server makes one if it is left out.
    #[arg(value_parser = names::id)]
    pub(crate) id: Option<String>,
    #[command(flatten)]
    pub(crate) fields: TimerFields,
    /// Create only: refuse if a timer with that id exists.
    #[arg(long, requires = "id", conflicts_with = "if_match")]
    pub(crate) if_absent: bool,
    /// Replace only the timer of this generation.
    #[arg(long, requires = "id", value_name = "GENERATION")]
    pub(crate) if_match: Option<String>,
    /// A key that makes repeats of this command safe for 24 hours.
    #[arg(long, value_name = "KEY")]
    pub(crate) idempotency_key: Option<String>,
    #[command(flatten)]
    pub(crate) server: ServerArgument,
}

/// The fields of a timer. When, where and what.
#[derive(Debug, Args)]
pub(crate) struct TimerFields {
    /// When it is due, as RFC 3339: 2027-01-31T09:00:00Z.
    #[arg(long, value_name = "TIME", conflicts_with = "delay")]
    pub(crate) at: Option<String>,
    /// When it is due, from now: 30m, 1h30m, PT30M.
    #[arg(long = "in", value_name = "DELAY", value_parser = delay, allow_hyphen_values = true)]
    pub(crate) delay: Option<String>,
    /// Where the webhook is sent.
    #[arg(long, value_name = "URL")]
    pub(crate) url: Option<String>,
    /// A header to send with the webhook; may be given several times.
    #[arg(long = "header", value_name = "NAME: VALUE", value_parser = header)]
    pub(crate) headers: Vec<(String, String)>,
    /// The payload, as JSON.
    #[arg(long, value_name = "JSON", value_parser = json, conflicts_with = "payload_file")]
    pub(crate) payload: Option<Document>,
    /// A file with the payload, as JSON; `-` reads standard input.
    #[arg(long, value_name = "FILE")]
    pub(crate) payload_file: Option<PathBuf>,
    /// How often delivery is tried before the timer is given up.
    #[arg(long, value_name = "COUNT")]
    pub(crate) attempts_max: Option<u32>,
    /// The delay after the first failed delivery; it doubles from there.
    #[arg(long, value_name = "DELAY")]
    pub(crate) retry_initial: Option<String>,
    /// The longest delay between two deliveries.
    #[arg(long, value_name = "DELAY")]
    pub(crate) retry_max: Option<String>,
    /// What the webhook's body is.
    #[arg(long, value_enum)]
    pub(crate) envelope: Option<Envelope>,
    /// How long one delivery may take.
    #[arg(long, value_name = "DURATION")]
    pub(crate) deadline: Option<String>,
}

/// What a webhook's body is.
#[derive(Clone, Copy, Debug, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Envelope {
    /// An event that names the timer and holds the payload.
    Event,
    /// The payload alone.
    Raw,
}

/// One timer, by partition and id.
#[derive(Debug, Args)]
pub(crate) struct GetTimer {
    /// Partition the timer belongs to.
    #[arg(value_parser = names::partition)]
    pub(crate) partition: String,
    /// Id of the timer.
    #[arg(value_parser = names::id)]
    pub(crate) id: String,
    #[command(flatten)]
    pub(crate) server: ServerArgument,
}

/// List the timers of a partition.
#[derive(Debug, Args)]
pub(crate) struct ListTimers {
    /// Partition to list.
    #[arg(value_parser = names::partition)]
    pub(crate) partition: String,
    /// Only timers in this state.
    #[arg(long, value_enum)]
    pub(crate) state: Option<StateArgument>,
    /// Only timers due before this time, as RFC 3339.
    #[arg(long, value_name = "TIME")]
    pub(crate) due_before: Option<String>,
    /// Only timers whose id begins with this.
    #[arg(long)]
    pub(crate) prefix: Option<String>,
    /// List at most this many.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) limit: u32,
    /// Go on where an earlier list ended.
    #[arg(long, value_name = "TOKEN")]
    pub(crate) page_token: Option<String>,
    #[command(flatten)]
    pub(crate) server: ServerArgument,
}

/// Where a timer stands.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum StateArgument {
    /// Waiting for its time.
    Pending,
    /// Being delivered.
    Claimed,
    /// Failed, to be tried again.
    Retrying,
    /// Given up.
    Dead,
}

impl StateArgument {
    pub(crate) fn as_text(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Claimed => "claimed",
            Self::Retrying => "retrying",
            Self::Dead => "dead",
        }
    }
}

/// Change some fields of a timer and keep the others.
#[derive(Debug, Args)]
pub(crate) struct UpdateTimer {
    /// Partition the timer belongs to.
    #[arg(value_parser = names::partition)]
    pub(crate) partition: String,
    /// Id of the timer.
    #[arg(value_parser = names::id)]
    pub(crate) id: String,
    #[command(flatten)]
    pub(crate) fields: TimerFields,
    /// Change only the timer of this generation.
    #[arg(long, value_name = "GENERATION")]
    pub(crate) if_match: Option<String>,
    /// A key that makes repeats of this command safe for 24 hours.
    #[arg(long, value_name = "KEY")]
    pub(crate) idempotency_key: Option<String>,
    #[command(flatten)]
    pub(crate) server: ServerArgument,
}

/// Cancel a timer.
#[derive(Debug, Args)]
pub(crate) struct CancelTimer {
    #[command(flatten)]
    pub(crate) timer: GetTimer,
    /// Cancel it even while it is being delivered: no retry follows, but the call under way may arrive.
    #[arg(long)]
    pub(crate) force: bool,
    /// Cancel only the timer of this generation.
    #[arg(long, value_name = "GENERATION")]
    pub(crate) if_match: Option<String>,
}

/// The server reads it; only what begins with a hyphen never arrives there.
fn delay(text: &str) -> Result<String, String> {
    if text.starts_with("--") {
        return Err("it needs a value: 30m, 1h30m, PT30M".to_owned());
    }
    if text.starts_with('-') {
        return Err("a timer is not due in the past; `--in 0s` is due at once".to_owned());
    }
    Ok(text.to_owned())
}

fn json(text: &str) -> Result<Document, String> {
    Document::parse(text)
        .map_err(|error| format!("not JSON ({error}); a text needs quotes of its own: '\"text\"'"))
}

fn header(text: &str) -> Result<(String, String), String> {
    match text.split_once(':') {
        Some((name, value)) if !name.trim().is_empty() => {
            Ok((name.trim().to_owned(), value.trim().to_owned()))
        }
        _ => Err("write it as `name: value`".to_owned()),
    }
}
