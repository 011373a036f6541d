use dueline::timers::{Change, ScheduleOutcome, Scheduled, TimerState, TimerView};

use super::answer::{Answer, Outcome};
use super::condition::Condition;
use super::core::{LOOKS_MAX, Service, encoded};
use super::error::ServiceError;
use super::field_errors::{FieldErrors, pointer_to};
use super::fields::{Fields, Members};
use super::idempotency::{Begun, Keyed, Recorded};
use super::merge_patch::merge;
use super::names::{PartitionName, TimerId};
use super::put::{answer, outcome};
use super::shown::{DeliveryJson, Standing, TimerJson};
use super::timer_spec::{TimerSpec, timer_spec};
use crate::webhook::{WEBHOOK, WebhookRecord};

impl Service {
    /// Changes a timer by a merge patch over its due, payload, target, retry, deadline and envelope,
    /// as a new scheduling; a patch that changes nothing leaves it as it is.
    pub(crate) async fn patch(
        &self,
        partition: &PartitionName,
        id: &TimerId,
        patch: &Members,
        condition: &Condition,
        keyed: Option<&Keyed>,
    ) -> Result<Answer, ServiceError> {
        let session = match self.begin(partition, keyed, false, true).await? {
            Begun::Now(session) => session,
            Begun::Before(before) => return replayed(partition, &before),
        };
        for _ in 0..LOOKS_MAX {
            let view = self.view(partition, id).await?;
            let if_match = condition.generation(view.as_ref())?;
            let Some(view) = view else {
                return Err(ServiceError::TimerNotFound);
            };
            let spec = self.patched(&view, patch)?;
            let payload = encoded(&spec.record)?;
            let change = Change {
                due_at_ms: spec.due.map(|due| due.due_at_ms(self.now_ms())),
                payload: (payload != view.payload).then_some(payload),
            };
            if change == Change::default() {
                if session
                    .remember_unchanged(partition.partition(), &view)
                    .await?
                {
                    let standing = Standing::of(&view, self.now_ms());
                    return Ok(answer(
                        partition,
                        id.as_str(),
                        spec,
                        Outcome::Unchanged,
                        &standing,
                    ));
                }
                continue;
            }
            let due_at_ms = change.due_at_ms;
            // The patch was worked out over this generation, whatever the request asked for.
            let generation = Some(if_match.unwrap_or(view.generation));
            let reference = id.reference();
            let updated = session
                .timers()
                .update(
                    partition.partition(),
                    WEBHOOK,
                    &reference,
                    change,
                    generation,
                )
                .await;
            match updated {
                Ok(scheduled) => {
                    let standing = after(&view, &scheduled, due_at_ms);
                    let outcome = outcome(scheduled.outcome);
                    return Ok(answer(partition, id.as_str(), spec, outcome, &standing));
                }
                Err(error) => match ServiceError::from(error) {
                    ServiceError::Changed { .. } | ServiceError::Contended => {}
                    error => return Err(error),
                },
            }
        }
        Err(ServiceError::Contended)
    }

    /// The timer as the patch leaves it.
    fn patched(&self, view: &TimerView, patch: &Members) -> Result<TimerSpec, ServiceError> {
        let record = WebhookRecord::decode(&view.payload).map_err(|_| {
            ServiceError::field(
                "",
                "what is stored of this timer does not decode; replace it with PUT",
            )
        })?;
        let delay_ms = record.delay_ms;
        let text =
            serde_json::to_string(&DeliveryJson::from(record)).map_err(ServiceError::internal)?;
        let mut current: Members = serde_json::from_str(&text).map_err(ServiceError::internal)?;
        let mut errors = FieldErrors::new();
        for (name, value) in &patch.0 {
            if matches!(name.as_str(), "due_at" | "delay") && value.get() == "null" {
                errors.add(
                    pointer_to("", name),
                    "a timer always has a due; give another",
                );
            }
        }
        // A payload of one form takes the place of the other.
        for (given, other) in [("payload", "payload_base64"), ("payload_base64", "payload")] {
            if patch.0.iter().any(|(name, _)| name == given) {
                current.0.retain(|(name, _)| name != other);
            }
        }
        let patch = Members(
            patch
                .0
                .iter()
                .map(|(name, value)| (name.clone(), value.clone()))
                .collect(),
        );
        let merged = merge(current, patch).map_err(ServiceError::internal)?;
        let mut fields = Fields::new("", merged, &mut errors);
        let spec = timer_spec(&mut fields, self.now_ms(), self.allow_private, &mut errors);
        fields.finish(&mut errors);
        match spec {
            Some(mut spec) if errors.is_empty() => {
                if spec.due.is_none() {
                    spec.record.delay_ms = delay_ms;
                }
                Ok(spec)
            }
            _ => Err(ServiceError::Fields(errors)),
        }
    }
}

/// How a timer stands after a change.
fn after(view: &TimerView, scheduled: &Scheduled, due_at_ms: Option<u64>) -> Standing {
    let goes_on = scheduled.state == TimerState::Retrying;
    Standing {
        due_at_ms: due_at_ms.unwrap_or(view.due_at_ms),
        next_at_ms: scheduled.due_at_ms,
        state: scheduled.state,
        attempt: if goes_on { view.attempt } else { 0 },
        generation: scheduled.generation,
        last_error: view.last_error.clone().filter(|_| goes_on),
    }
}

impl Service {
    /// Makes a timer due now; its generation, and so its webhook id, stays.
    pub(crate) async fn fire_now(
        &self,
        partition: &PartitionName,
        id: &TimerId,
        condition: &Condition,
        keyed: Option<&Keyed>,
    ) -> Result<Answer, ServiceError> {
        let session = match self.begin(partition, keyed, true, true).await? {
            Begun::Now(session) => session,
            Begun::Before(before) => return replayed(partition, &before),
        };
        for _ in 0..LOOKS_MAX {
            let view = self.view(partition, id).await?;
            condition.generation(view.as_ref())?;
            let Some(view) = view else {
                return Err(ServiceError::TimerNotFound);
            };
            let fired = session
                .timers()
                .fire_now(partition.partition(), WEBHOOK, &id.reference())
                .await;
            let fired = match fired.map_err(ServiceError::from) {
                Ok(fired) => fired,
                Err(ServiceError::Contended) => continue,
                Err(error) => return Err(error),
            };
            if fired.generation != view.generation {
                // Scheduled anew between the look and the move: look again for the answer.
                continue;
            }
            let mut standing = Standing::of(&view, self.now_ms());
            standing.next_at_ms = fired.due_at_ms;
            if fired.outcome == ScheduleOutcome::Moved {
                standing.state = fired.state;
                if view.state == TimerState::Dead {
                    standing.attempt = 0;
                }
            } else if !session
                .remember_unchanged(partition.partition(), &view)
                .await?
            {
                continue;
            }
            let delivery = DeliveryJson::of_payload(&view.payload);
            return Ok(Answer {
                outcome: outcome(fired.outcome),
                timer: TimerJson::new(partition.as_str(), id.as_str(), &standing, delivery),
            });
        }
        Err(ServiceError::Contended)
    }
}

/// The answer that a request had before, from its record alone.
fn replayed(partition: &PartitionName, before: &Recorded) -> Result<Answer, ServiceError> {
    let delivery = before
        .record()
        .map(|raw| DeliveryJson::of_payload(raw.get().as_bytes()))
        .unwrap_or_default();
    Ok(Answer {
        outcome: before.outcome,
        timer: TimerJson::new(partition.as_str(), &before.id, &before.standing(), delivery),
    })
}
