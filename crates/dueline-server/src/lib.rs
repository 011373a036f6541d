//! dueline-server
#![forbid(unsafe_code)]

mod guard;
mod routes;
mod service;
mod time_text;
mod webhook;

pub use guard::{Lookup, SystemLookup};
pub use webhook::{SecretError, SecretStore};

/// Whether a server of this version fires timers of this kind.
pub fn serves(kind: dueline::timers::TimerKind) -> bool {
    kind == webhook::WEBHOOK
}
