use dueline::timers::{DeadId, DeadView};
use serde::Serialize;

use super::core::Service;
use super::error::ServiceError;
use super::names::PartitionName;
use super::page::{PageRequest, text_position, token};
use super::shown::{DeliveryJson, LastErrorJson};
use crate::time_text::rfc3339_ms;
use crate::webhook::WEBHOOK;

/// A page of dead letters.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct DeadListJson {
    dead_letters: Vec<DeadLetterJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_page_token: Option<String>,
}

/// A timer that will not be delivered unless it is requeued.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct DeadLetterJson {
    /// Names the dead letter; opaque.
    dead_id: String,
    /// The timer's id.
    id: String,
    partition: String,
    /// `exhausted`, `handler` (the receiver answered 410) or `undecodable`.
    reason: &'static str,
    dead_at: String,
    due_at: String,
    attempt: u16,
    generation: String,
    last_error: Option<LastErrorJson>,
    #[serde(flatten)]
    delivery: DeliveryJson,
}

/// A timer that has another life.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct RequeuedJson {
    partition: String,
    generation: String,
    state: &'static str,
    next_attempt_at: String,
}

/// What a page of a change in bulk did.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct BulkJson {
    /// How many were changed.
    pub(crate) done: usize,
    /// How many of the page could not be, and stay as they are.
    pub(crate) left: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) next_page_token: Option<String>,
}

impl Service {
    /// One page of the dead letters of a partition, in the order of their death.
    pub(crate) async fn dead_letters(
        &self,
        partition: &PartitionName,
        page: &PageRequest,
    ) -> Result<DeadListJson, ServiceError> {
        let scope = ["dead-letters", partition.as_str()];
        let after = dead_position(&scope, page)?;
        let found = self
            .timers
            .dead(
                partition.partition(),
                Some(WEBHOOK),
                after.as_ref(),
                page.size,
            )
            .await?;
        Ok(DeadListJson {
            dead_letters: found
                .dead
                .iter()
                .map(|dead| shown(partition, dead))
                .collect(),
            next_page_token: found
                .next
                .map(|id| token(&scope, id.to_string().as_bytes())),
        })
    }

    /// Gives a dead letter another life: due now, attempts at 0, under the same webhook id.
    pub(crate) async fn requeue(
        &self,
        partition: &PartitionName,
        id: &str,
    ) -> Result<RequeuedJson, ServiceError> {
        let id = dead_id(id)?;
        let requeued = self.timers.requeue(partition.partition(), &id).await?;
        let scheduled = requeued.ok_or(ServiceError::DeadLetterNotFound)?;
        Ok(RequeuedJson {
            partition: partition.as_str().to_owned(),
            generation: scheduled.generation.to_string(),
            state: scheduled.state.as_str(),
            next_attempt_at: rfc3339_ms(scheduled.due_at_ms),
        })
    }

    /// Removes a dead letter for good.
    pub(crate) async fn purge(
        &self,
        partition: &PartitionName,
        id: &str,
    ) -> Result<(), ServiceError> {
        let id = dead_id(id)?;
        if self.timers.purge(partition.partition(), &id).await? {
            Ok(())
        } else {
            Err(ServiceError::DeadLetterNotFound)
        }
    }

    /// Requeues one page of dead letters.
    pub(crate) async fn requeue_all(
        &self,
        partition: &PartitionName,
        page: &PageRequest,
    ) -> Result<BulkJson, ServiceError> {
        let scope = ["dead-letters:requeue", partition.as_str()];
        let mut after = dead_position(&scope, page)?;
        let (mut done, mut left) = (0usize, 0usize);
        loop {
            let wanted = page.size.saturating_sub(done.saturating_add(left));
            if wanted == 0 {
                break;
            }
            let requeued = self
                .timers
                .requeue_page(partition.partition(), Some(WEBHOOK), after.as_ref(), wanted)
                .await?;
            done = done.saturating_add(requeued.requeued.len());
            left = left.saturating_add(requeued.left);
            after = requeued.next;
            if after.is_none() {
                break;
            }
        }
        Ok(BulkJson {
            done,
            left,
            next_page_token: after.map(|id| token(&scope, id.to_string().as_bytes())),
        })
    }
}

fn dead_position(scope: &[&str], page: &PageRequest) -> Result<Option<DeadId>, ServiceError> {
    let Some(token) = &page.token else {
        return Ok(None);
    };
    let id: DeadId = text_position(scope, token)?
        .parse()
        .map_err(|_| ServiceError::PageToken)?;
    if id.kind() == WEBHOOK {
        Ok(Some(id))
    } else {
        Err(ServiceError::PageToken)
    }
}

fn dead_id(text: &str) -> Result<DeadId, ServiceError> {
    text.parse()
        .ok()
        .filter(|id: &DeadId| id.kind() == WEBHOOK)
        .ok_or(ServiceError::DeadLetterNotFound)
}

fn shown(partition: &PartitionName, dead: &DeadView) -> DeadLetterJson {
    DeadLetterJson {
        dead_id: dead.id.to_string(),
        id: String::from_utf8_lossy(&dead.reference).into_owned(),
        partition: partition.as_str().to_owned(),
        reason: dead.reason.as_str(),
        dead_at: rfc3339_ms(dead.dead_at_ms),
        due_at: rfc3339_ms(dead.due_at_ms),
        attempt: dead.attempt,
        generation: dead.generation.to_string(),
        last_error: dead.error.as_ref().map(LastErrorJson::from),
        delivery: DeliveryJson::of_payload(&dead.payload),
    }
}
