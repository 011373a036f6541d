//! Dueline over HTTP: a timer is scheduled with a request, and when it is due a signed webhook is
//! delivered.
//!
//! The command `dueline serve` is this crate with flags. Every route, field, default, error and an
//! example receiver are in `docs/http.md` of the repository; this page is for those who run the
//! server inside a program of their own.
//!
//! ```no_run
//! use dueline_server::{Config, Server};
//!
//! #[tokio::main]
//! async fn main() -> Result<(), dueline_server::StartError> {
//!     let server = Server::start(Config::new("./dueline-data")).await?;
//!     println!("listening on http://{}", server.address());
//!     // ... until it is time to stop:
//!     let report = server.shutdown().await;
//!     println!("every request was finished: {}", report.requests_finished);
//!     Ok(())
//! }
//! ```
//!
//! ```text
//! $ curl -X PUT http://127.0.0.1:7431/v1/partitions/orders/timers/order-42 -H 'content-type: application/json' \
//!     -d '{"delay": "30m", "payload": {"order": 42}, "target": {"url": "https://example.com/hook"}}'
//! ```
//!
//! # Words
//! | word | meaning |
//! |---|---|
//! | timer | a named timer of the kind `webhook` in the partition of the path: due, payload, target |
//! | target | the URL and the headers of the webhook |
//! | delivery | one `POST` to the target; 2xx ends the timer, 410 makes it dead, all else is tried again |
//! | generation | drawn at every scheduling; in quotes it is the `ETag`, for `If-Match` |
//! | `webhook-id` | names one scheduling: the same for every attempt and after a requeue |
//! | dead letter | a timer that was given up: kept with its last error until it is requeued or purged |
//!
//! # How it is made
//! `routes` speak HTTP and nothing else; `service` knows nothing of HTTP and works through the
//! engine's verbs on one SQLite file; `webhook` delivers; `guard` decides which targets may be
//! called.
//!
//! # Guarantees
//! Those of the engine: an accepted timer is delivered at least once, never before its due, always
//! under one `webhook-id` for one scheduling, or it stands in the dead letters. A receiver that keeps
//! the ids it has seen handles each once.
//!
//! An answer of 2xx means that the change is committed, and outlives what the [`Durability`] says. The
//! first answer to an `Idempotency-Key` is committed together with the change it tells of.
//!
//! # Limits
//! The server listens on loopback addresses only and has no tokens: who reaches the port may use it.
//! Webhooks go to public addresses only, unless
//! [`allow_private_targets`](Config::allow_private_targets) is set. One process uses a data directory
//! at a time. `GET /v1/limits` lists every figure.
//!
//! # How to
//! * **Verify a webhook**: Standard Webhooks 1.0.0 under the key of [`SecretStore::current`], which is
//!   the `whsec_...` text in `webhook-secrets.json` of the data directory.
//! * **Change the key**: [`RunningServer::secrets`] and [`SecretStore::rotate`]; both keys sign for the
//!   overlap.
//! * **See what it does**: `GET /v1/stats`, `GET /readyz`, [`RunningServer::driver`], and `tracing`
//!   events: one for each delivery.
//! * **Test against it**: [`Config::listen`] with port 0, [`Config::runtime`] for another clock,
//!   [`Config::lookup`] for other addresses.
//! * **Stop it**: [`RunningServer::shutdown`]; what is cut off is delivered after the next start.
#![forbid(unsafe_code)]

mod config;
mod connections;
mod driver_health;
mod error;
#[doc(hidden)]
pub mod fuzzing;
mod guard;
mod mutants;
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
