use dueline::Bytes;
use dueline::timers::{Policy, ScheduleOutcome, Scheduled, TimerState, TimerView, Timers};

use super::answer::{Answer, Outcome};
use super::condition::Condition;
use super::core::{LOOKS_MAX, Service, encoded, webhook_timer};
use super::error::ServiceError;
use super::idempotency::{Begun, Keyed, Session};
use super::names::{PartitionName, TimerId};
use super::shown::{Standing, TimerJson};
use super::timer_spec::{DueWish, TimerSpec};

impl Service {
    /// Creates or replaces a timer by its id. A pending timer that is as asked stays as it is, so
    /// that a request can be repeated while the timer is pending.
    pub(crate) async fn put(
        &self,
        partition: &PartitionName,
        id: &TimerId,
        spec: TimerSpec,
        condition: &Condition,
        keyed: Option<&Keyed>,
    ) -> Result<Answer, ServiceError> {
        let payload = encoded(&spec.record)?;
        let session = match self.begin(partition, keyed, false, false).await? {
            Begun::Now(session) => session,
            Begun::Before(before) => {
                let standing = before.standing();
                let id = before.id.clone();
                return Ok(answer(partition, &id, spec, before.outcome, &standing));
            }
        };
        for _ in 0..LOOKS_MAX {
            let view = self.view(partition, id).await?;
            let if_match = condition.generation(view.as_ref())?;
            if let Some(view) = &view
                && is_as_asked(view, &spec, &payload)
            {
                if session
                    .remember_unchanged(partition.partition(), view)
                    .await?
                {
                    let standing = Standing::of(view, self.now_ms());
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
            let due_at_ms = self.due_at_ms(&spec);
            let timer = webhook_timer(id, due_at_ms, payload.clone());
            let timers = session.timers();
            let scheduled = match if_match {
                Some(generation) => {
                    timers
                        .schedule_if_match(partition.partition(), timer, generation)
                        .await
                }
                None => {
                    let policy = match condition {
                        Condition::Absent => Policy::IfAbsent,
                        _ => Policy::Replace,
                    };
                    timers.schedule(partition.partition(), timer, policy).await
                }
            };
            match scheduled {
                Ok(scheduled) if scheduled.outcome == ScheduleOutcome::Kept => {
                    let generation = scheduled.generation;
                    return Err(ServiceError::AlreadyExists { generation });
                }
                Ok(scheduled) => {
                    let standing = fresh(&scheduled, due_at_ms);
                    let outcome = outcome(scheduled.outcome);
                    return Ok(answer(partition, id.as_str(), spec, outcome, &standing));
                }
                Err(error) => match ServiceError::from(error) {
                    // It changed after the look; the next look says whether the condition holds.
                    ServiceError::Changed { .. }
                    | ServiceError::TimerNotFound
                    | ServiceError::Contended => {}
                    error => return Err(error),
                },
            }
        }
        Err(ServiceError::Contended)
    }

    /// Creates a timer under an id of the server's making.
    pub(crate) async fn create(
        &self,
        partition: &PartitionName,
        spec: TimerSpec,
        keyed: Option<&Keyed>,
    ) -> Result<Answer, ServiceError> {
        let payload = encoded(&spec.record)?;
        let session = match self.begin(partition, keyed, false, false).await? {
            Begun::Now(session) => session,
            Begun::Before(before) => {
                let standing = before.standing();
                let id = before.id.clone();
                return Ok(answer(partition, &id, spec, before.outcome, &standing));
            }
        };
        let id = self.draw_id()?;
        let standing = self
            .schedule_new(session.timers(), partition, &id, &spec, payload)
            .await?;
        Ok(answer(
            partition,
            id.as_str(),
            spec,
            Outcome::Created,
            &standing,
        ))
    }

    pub(super) async fn schedule_new(
        &self,
        timers: &Timers,
        partition: &PartitionName,
        id: &TimerId,
        spec: &TimerSpec,
        payload: Bytes,
    ) -> Result<Standing, ServiceError> {
        let due_at_ms = self.due_at_ms(spec);
        let timer = webhook_timer(id, due_at_ms, payload);
        let scheduled = timers
            .schedule(partition.partition(), timer, Policy::IfAbsent)
            .await?;
        if scheduled.outcome == ScheduleOutcome::Kept {
            return Err(ServiceError::internal("an id of 128 random bits was taken"));
        }
        Ok(fresh(&scheduled, due_at_ms))
    }

    pub(super) async fn begin(
        &self,
        partition: &PartitionName,
        keyed: Option<&Keyed>,
        moved: bool,
        keep_record: bool,
    ) -> Result<Begun, ServiceError> {
        let (timers, in_flight) = (&self.timers, &self.in_flight);
        Session::begin(
            timers,
            in_flight,
            partition.partition(),
            keyed,
            moved,
            keep_record,
        )
        .await
    }

    /// An id of 128 random bits.
    pub(super) fn draw_id(&self) -> Result<TimerId, ServiceError> {
        let runtime = self.timers.runtime();
        let text = format!("{:016x}{:016x}", runtime.random_u64(), runtime.random_u64());
        TimerId::new(&text).map_err(ServiceError::internal)
    }

    pub(super) fn due_at_ms(&self, spec: &TimerSpec) -> u64 {
        let now_ms = self.now_ms();
        spec.due.map_or(now_ms, |due| due.due_at_ms(now_ms))
    }
}

/// Whether a pending timer is what a request asks for. A delay was counted when the timer was first
/// accepted, so the same delay asks for the due it has.
fn is_as_asked(view: &TimerView, spec: &TimerSpec, payload: &Bytes) -> bool {
    let same_due = match spec.due {
        Some(DueWish::At(at_ms)) => view.due_at_ms == at_ms,
        Some(DueWish::Delay(_)) | None => true,
    };
    view.state == TimerState::Pending && same_due && view.payload == *payload
}

/// How a timer stands that has just been scheduled.
pub(super) fn fresh(scheduled: &Scheduled, due_at_ms: u64) -> Standing {
    Standing {
        due_at_ms,
        next_at_ms: scheduled.due_at_ms,
        state: scheduled.state,
        attempt: 0,
        generation: scheduled.generation,
        last_error: None,
    }
}

pub(super) fn outcome(outcome: ScheduleOutcome) -> Outcome {
    match outcome {
        ScheduleOutcome::Created => Outcome::Created,
        ScheduleOutcome::Replaced => Outcome::Replaced,
        ScheduleOutcome::Moved => Outcome::Moved,
        ScheduleOutcome::Kept => Outcome::Unchanged,
    }
}

pub(super) fn answer(
    partition: &PartitionName,
    id: &str,
    spec: TimerSpec,
    outcome: Outcome,
    standing: &Standing,
) -> Answer {
    Answer {
        outcome,
        timer: TimerJson::new(partition.as_str(), id, standing, spec.record.into()),
    }
}
