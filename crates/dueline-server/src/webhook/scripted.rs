//! A receiver without a network, for the fuzz targets.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dueline::timers::HandlerError;
use dueline::{BoxFuture, Bytes};
use http::StatusCode;

use super::client::{Answer, Outgoing, addressed};
use super::handler::Carrier;
use super::retry_after::retry_after_ms;

/// Stands for every target: remembers what was sent, and answers as it was told to.
#[derive(Clone, Debug, Default)]
pub struct Receiver {
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    status: StatusCode,
    retry_after: Option<String>,
    deliveries: Vec<Delivery>,
    unsendable: Vec<String>,
}

/// A delivery that was sent.
#[derive(Clone, Debug)]
pub struct Delivery {
    /// The receiver's idempotency key.
    pub message_id: String,
    /// The content type of the body.
    pub content_type: &'static str,
    /// What was sent.
    pub body: Bytes,
    /// Whether the answer was a success.
    pub is_accepted: bool,
}

impl Receiver {
    /// Answers with this status, and with this `Retry-After`, from now on.
    pub fn answer(&self, status: StatusCode, retry_after: Option<String>) {
        let mut state = self.state();
        state.status = status;
        state.retry_after = retry_after;
    }

    /// What was sent, in order.
    pub fn deliveries(&self) -> Vec<Delivery> {
        self.state().deliveries.clone()
    }

    /// Why timers that had been taken could not be sent.
    pub fn unsendable(&self) -> Vec<String> {
        self.state().unsendable.clone()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn receive(&self, outgoing: &Outgoing<'_>) -> Result<Answer, HandlerError> {
        let key = b"a key of thirty-two bytes length".to_vec();
        let mut state = self.state();
        if let Err(error) = addressed(outgoing, &[key], false) {
            state.unsendable.push(error.text().to_owned());
            return Err(error);
        }
        let status = state.status;
        state.deliveries.push(Delivery {
            message_id: outgoing.message_id.to_owned(),
            content_type: outgoing.content_type,
            body: outgoing.body.clone(),
            is_accepted: status.is_success(),
        });
        let asked = state.retry_after.as_deref();
        Ok(Answer {
            status,
            retry_after_ms: asked.and_then(|text| retry_after_ms(text, outgoing.now_ms)),
            excerpt: String::new(),
        })
    }
}

impl Carrier for Receiver {
    fn send<'a>(&'a self, outgoing: Outgoing<'a>) -> BoxFuture<'a, Result<Answer, HandlerError>> {
        Box::pin(std::future::ready(self.receive(&outgoing)))
    }
}
