//! Delivery: when a timer is due, its payload is POSTed to its target, signed as Standard Webhooks
//! 1.0.0 says.

mod body;
mod client;
mod handler;
mod message_id;
mod record;
mod retry_after;
mod scripted;
mod secrets;
mod signature;

pub(crate) use client::WebhookClient;
pub(crate) use handler::WebhookHandler;
pub(crate) use record::{
    DEADLINE_MS_DEFAULT, Envelope, Payload, RETRY_DEFAULT, Retry, Target, WebhookRecord,
};
pub use scripted::{Delivery, Receiver};
pub use secrets::{SecretError, SecretStore};

use dueline::timers::TimerKind;

/// The kind of a timer that is delivered as a webhook.
pub(crate) const WEBHOOK: TimerKind = TimerKind(16);
