//! dueline-server
#![forbid(unsafe_code)]

mod guard;
mod routes;
mod service;
mod time_text;
mod webhook;

pub use guard::{Lookup, SystemLookup};
pub use webhook::{SecretError, SecretStore};
