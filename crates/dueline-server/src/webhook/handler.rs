use std::fmt;

use dueline::BoxFuture;
use dueline::store::Batch;
use dueline::timers::{DetachedHandler, DueTimer, Fired, HandlerError, RetryPolicy, TimerCtx};
use http::StatusCode;

use super::body::{Occurrence, body};
use super::client::{Answer, Outgoing};
use super::message_id::message_id;
use super::record::{Running, WebhookRecord};

/// Carries a request to its target.
pub(crate) trait Carrier: fmt::Debug + Send + Sync + 'static {
    /// What the target answered, or a sentence why there is no answer.
    fn send<'a>(&'a self, outgoing: Outgoing<'a>) -> BoxFuture<'a, Result<Answer, HandlerError>>;
}

/// Delivers webhook timers.
#[derive(Debug)]
pub(crate) struct WebhookHandler<C> {
    carrier: C,
}

impl<C: Carrier> WebhookHandler<C> {
    pub(crate) fn new(carrier: C) -> Self {
        Self { carrier }
    }

    async fn deliver(&self, ctx: &TimerCtx<'_>, timer: &DueTimer) -> Result<Answer, HandlerError> {
        let record = WebhookRecord::decode(timer.payload()).map_err(HandlerError::undecodable)?;
        let partition = String::from_utf8_lossy(ctx.partition().as_bytes());
        let id = String::from_utf8_lossy(timer.reference());
        let occurrence = Occurrence {
            partition: &partition,
            id: &id,
            due_at_ms: timer.due_at_ms(),
            attempt: timer.attempt(),
        };
        let (body, content_type) = body(&record, &occurrence).map_err(HandlerError::new)?;
        let message_id = message_id(&timer.occurrence_id(ctx.partition()));
        let outgoing = Outgoing {
            target: &record.target,
            message_id: &message_id,
            now_ms: ctx.now_ms(),
            content_type,
            body,
        };
        let answered = self.carrier.send(outgoing).await;
        let (partition, id) = (partition.as_ref(), id.as_ref());
        let attempt = timer.attempt();
        match &answered {
            Ok(answer) if answer.status.is_success() => tracing::info!(
                partition,
                id,
                attempt,
                message_id,
                status = answer.status.as_u16(),
                lateness_ms = timer.lateness_ms(),
                "delivered"
            ),
            Ok(answer) => tracing::warn!(
                partition,
                id,
                attempt,
                message_id,
                status = answer.status.as_u16(),
                "the receiver refused the delivery"
            ),
            Err(error) => {
                tracing::warn!(partition, id, attempt, message_id, %error, "delivery failed");
            }
        }
        answered
    }
}

/// What an answer makes of a timer.
fn verdict(answer: &Answer) -> Fired {
    if answer.status.is_success() {
        return Fired::Done(Batch::new());
    }
    let mut reason = format!("the receiver answered {}", answer.status);
    if answer.status.is_redirection() {
        reason.push_str("; redirects are not followed");
    }
    if !answer.excerpt.is_empty() {
        reason.push_str(": ");
        reason.push_str(&answer.excerpt);
    }
    match answer.status {
        StatusCode::GONE => Fired::Dead {
            reason,
            batch: Batch::new(),
        },
        StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => Fired::Retry {
            after_ms: answer.retry_after_ms,
            reason,
        },
        _ => Fired::Retry {
            after_ms: None,
            reason,
        },
    }
}

impl<C: Carrier> DetachedHandler for WebhookHandler<C> {
    type Output = Answer;

    fn call<'a>(
        &'a self,
        ctx: &'a TimerCtx<'a>,
        timer: &'a DueTimer,
    ) -> BoxFuture<'a, Result<Answer, HandlerError>> {
        Box::pin(self.deliver(ctx, timer))
    }

    fn settle<'a>(
        &'a self,
        _ctx: &'a TimerCtx<'a>,
        _timer: &'a DueTimer,
        answer: &'a Answer,
    ) -> BoxFuture<'a, Result<Fired, HandlerError>> {
        Box::pin(std::future::ready(Ok(verdict(answer))))
    }

    fn retry_policy(&self, timer: &DueTimer) -> Option<RetryPolicy> {
        Running::decode(timer.payload()).map(|running| running.retry.policy())
    }

    fn deadline_ms(&self, timer: &DueTimer) -> Option<u64> {
        Running::decode(timer.payload()).map(|running| running.deadline_ms)
    }
}
