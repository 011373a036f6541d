//! Dueline over HTTP: a timer is scheduled with a request, and when it is due a signed webhook is
//! delivered.
//!
//! ```no_run
//! use dueline_server::{Config, Server};
//!
//! # async fn run() -> Result<(), dueline_server::StartError> {
//! let server = Server::start(Config::new("./dueline-data")).await?;
//! println!("listening on http://{}", server.address());
//! // ... until it is time to stop:
//! let report = server.shutdown().await;
//! assert!(report.requests_finished);
//! # Ok(())
//! # }
//! ```
//!
//! # How it is made
//! `routes` speak HTTP and nothing else; `service` knows nothing of HTTP and works through the
//! engine's verbs on one SQLite file; `webhook` delivers; `guard` decides which targets may be
//! called. A timer of the API is a named timer of the kind `webhook` in the partition of the path.
//!
//! # Guarantees
//! Those of the engine: an accepted timer is delivered at least once, never before its due, always
//! under one `webhook-id` for one scheduling, or it stands in the dead letters. A receiver that keeps
//! the ids it has seen handles each once.
//!
//! # Limits
//! The server listens on loopback addresses only. `GET /v1/limits` lists every figure.
#![forbid(unsafe_code)]

mod config;
mod connections;
mod driver_health;
mod error;
#[doc(hidden)]
pub mod fuzzing;
mod guard;
mod routes;
mod server;
mod service;
mod time_text;
mod webhook;

pub use config::{Config, PORT_DEFAULT};
pub use dueline_sqlite::Durability;
pub use error::StartError;
pub use guard::{Lookup, SystemLookup};
pub use server::{RunningServer, Server, ShutdownReport};
pub use webhook::{SecretError, SecretStore};

/// Whether a server of this version fires timers of this kind.
pub fn serves(kind: dueline::timers::TimerKind) -> bool {
    kind == webhook::WEBHOOK || kind == service::IDEMPOTENCY_EXPIRY
}
