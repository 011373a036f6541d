use std::fmt;

use bytes::Bytes;

use super::{Backlog, OutboxName};
use crate::future::{BoxFuture, MaybeSendSync};
use crate::store::Partition;

/// One attempt to deliver one outcome.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// The partition in which it came about.
    pub partition: Partition,
    /// Its outbox.
    pub outbox: OutboxName,
    /// Its place in the order of the outbox, from 1.
    pub sequence: u64,
    /// What a receiver tells a second delivery of the same outcome by.
    pub id: Bytes,
    /// The message, the same in every attempt.
    pub body: Bytes,
    /// When it was appended, in milliseconds since 1970.
    pub written_at_ms: u64,
    /// Which attempt this is; 1 is the first. A delivery that was cut by a crash does not count.
    pub attempt: u16,
}

/// Where outcomes go: a webhook, a queue, a mail server.
///
/// An outcome is delivered at least once, in the order of its outbox: a later one is not sent before an
/// earlier one was delivered, was refused, or has failed and waits for its next attempt. A crash between a
/// delivery and its commit delivers again, with the same id, body and attempt.
///
/// ```
/// use dueline::BoxFuture;
/// use dueline::kinds::outcome_delivery::{Delivery, Sink, SinkError};
///
/// struct Print;
///
/// impl Sink for Print {
///     fn deliver<'a>(&'a self, delivery: &'a Delivery) -> BoxFuture<'a, Result<(), SinkError>> {
///         Box::pin(async move {
///             println!("{} {:?}", delivery.sequence, delivery.id);
///             Ok(())
///         })
///     }
/// }
/// ```
pub trait Sink: MaybeSendSync + 'static {
    /// Delivers one outcome. A call over its deadline is dropped and has failed; so has one that panics.
    ///
    /// # Errors
    /// [`SinkError`] says what becomes of the outcome.
    fn deliver<'a>(&'a self, delivery: &'a Delivery) -> BoxFuture<'a, Result<(), SinkError>>;

    /// Whether the outcome is to be delivered at all; one that is not wanted leaves the outbox without a
    /// call.
    fn wants(&self, delivery: &Delivery) -> bool {
        let _ = delivery;
        true
    }
}

/// Why a delivery failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SinkError {
    pub(super) fault: Fault,
    pub(super) text: String,
    pub(super) retry_after_ms: Option<u64>,
}

/// Whose fault a failed delivery is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// The outcome's, as far as one can tell.
    Outcome,
    /// The sink's: it takes nothing just now.
    Sink,
    /// The outcome's, and it will never be taken.
    Final,
}

impl SinkError {
    /// The delivery failed: it is tried again after its back-off, and after the policy's attempts the
    /// outcome is set aside. The outcomes behind it go on.
    pub fn failed(text: impl Into<String>) -> Self {
        Self::of(Fault::Outcome, text.into())
    }

    /// The sink takes nothing just now: the outcome keeps its place, no attempt of it is counted, and the
    /// outbox waits.
    pub fn unavailable(text: impl Into<String>) -> Self {
        Self::of(Fault::Sink, text.into())
    }

    /// The sink will never take this outcome: it is set aside at once, and the ones behind it go on.
    pub fn refused(text: impl Into<String>) -> Self {
        Self::of(Fault::Final, text.into())
    }

    /// The sink asks not to be called for this long, in milliseconds; at most a day is granted.
    #[must_use]
    pub fn retry_after_ms(mut self, retry_after_ms: u64) -> Self {
        self.retry_after_ms = Some(retry_after_ms);
        self
    }

    fn of(fault: Fault, text: String) -> Self {
        Self {
            fault,
            text,
            retry_after_ms: None,
        }
    }

    /// The text, of which 255 bytes are kept with an outcome that is set aside.
    pub fn text(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for SinkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for SinkError {}

/// What one run of an outbox came to, for the host's meters.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RunSummary {
    /// The partition of the outbox.
    pub partition: Partition,
    /// The outbox.
    pub outbox: OutboxName,
    /// What waited when the run began.
    pub backlog: Backlog,
    /// Outcomes that were delivered, or had been already.
    pub delivered: u64,
    /// Calls that failed.
    pub failed: u64,
    /// Outcomes that were set aside.
    pub set_aside: u64,
    /// How old the oldest outcome was that the run looked at, in milliseconds.
    pub lag_ms: u64,
}

/// Is told of every run of every outbox. Its numbers are of runs, not of commits: a run that a crash cuts
/// off happens again.
pub trait DeliveryMeter: MaybeSendSync + 'static {
    /// A run's calls are over.
    fn ran(&self, summary: &RunSummary);
}
