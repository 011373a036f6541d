use std::collections::{BTreeMap, BTreeSet};

use dueline::timers::{Policy, Timer};
use tokio::task::JoinSet;

use super::answer::{Answer, Outcome};
use super::core::{Service, encoded, webhook_timer};
use super::error::ServiceError;
use super::field_errors::FieldErrors;
use super::fields::{Fields, Members};
use super::idempotency::{BatchSession, Keyed, Recorded};
use super::names::{PartitionName, TimerId};
use super::put::{answer, fresh, outcome};
use super::shown::Standing;
use super::timer_spec::{TimerSpec, require_due, timer_spec};

/// Most timers of one batch.
pub(crate) const BATCH_TIMERS_MAX: usize = 1_000;

/// How many timers of a batch with a key are scheduled at a time; they share transactions.
const CONCURRENT_MAX: usize = 64;

/// A timer of a batch that is to be scheduled.
struct Item {
    index: u32,
    id: TimerId,
    spec: TimerSpec,
    due_at_ms: u64,
    timer: Timer,
    policy: Policy,
}

/// A timer of a batch as the request describes it: its id, if it has one, and what it is.
type Described = Result<(Option<TimerId>, TimerSpec), ServiceError>;

impl Service {
    /// Decodes a batch: one description for each timer, each with its own errors.
    pub(crate) fn describe_batch(&self, body: Members) -> Result<Vec<Described>, ServiceError> {
        let mut errors = FieldErrors::new();
        let mut fields = Fields::new("", body, &mut errors);
        let timers: Option<Vec<Members>> = match fields.take("timers") {
            Some(field) => field.decode("an array of objects", &mut errors),
            None => {
                errors.add(
                    "/timers",
                    "a batch needs timers: an array of 1 to 1000 objects",
                );
                None
            }
        };
        fields.finish(&mut errors);
        if let Some(timers) = &timers
            && !(1..=BATCH_TIMERS_MAX).contains(&timers.len())
        {
            errors.add(
                "/timers",
                format!(
                    "a batch has 1 to {BATCH_TIMERS_MAX} timers, this one has {}",
                    timers.len()
                ),
            );
        }
        match timers {
            Some(timers) if errors.is_empty() => {
                let mut ids = BTreeSet::new();
                let described = timers.into_iter().enumerate();
                Ok(described
                    .map(|(index, timer)| self.describe(index, timer, &mut ids))
                    .collect())
            }
            _ => Err(ServiceError::Fields(errors)),
        }
    }

    fn describe(&self, index: usize, timer: Members, ids: &mut BTreeSet<TimerId>) -> Described {
        let mut errors = FieldErrors::new();
        let mut fields = Fields::new(&format!("/timers/{index}"), timer, &mut errors);
        let id = fields.take_parsed("id", &mut errors, |text| {
            TimerId::new(text).map_err(|error| error.to_string())
        });
        if let Some(id) = &id
            && !ids.insert(id.clone())
        {
            errors.add(
                format!("/timers/{index}/id"),
                "this id appears before in the batch; send the later one in a request of its own",
            );
        }
        let had_due = fields.has("due_at") || fields.has("delay");
        let spec = timer_spec(&mut fields, self.now_ms(), self.allow_private, &mut errors);
        require_due(&fields, had_due, &mut errors);
        fields.finish(&mut errors);
        match spec {
            Some(spec) if errors.is_empty() => Ok((id, spec)),
            _ => Err(ServiceError::Fields(errors)),
        }
    }

    /// Schedules a batch: one answer for each timer, in their order. It is not one transaction; each
    /// timer is there or not, as its answer says.
    pub(crate) async fn put_batch(
        &self,
        partition: &PartitionName,
        described: Vec<Described>,
        keyed: Option<&Keyed>,
    ) -> Result<Vec<Result<Answer, ServiceError>>, ServiceError> {
        let (mut before, session) = match keyed {
            None => (BTreeMap::new(), None),
            Some(keyed) => {
                let (timers, in_flight) = (&self.timers, &self.in_flight);
                let begun =
                    BatchSession::begin(timers, in_flight, partition.partition(), keyed).await?;
                (begun.before, Some(begun.session))
            }
        };
        let mut answers: BTreeMap<u32, Result<Answer, ServiceError>> = BTreeMap::new();
        let mut items = Vec::new();
        for (index, described) in (0..).zip(described) {
            match self.item(index, described, partition, before.remove(&index)) {
                Ok(item) => items.push(item),
                Err(answer) => {
                    answers.insert(index, *answer);
                }
            }
        }
        match &session {
            None => self.schedule_items(partition, items, &mut answers).await,
            Some(session) => {
                self.schedule_keyed_items(partition, session, items, &mut answers)
                    .await;
            }
        }
        Ok(answers.into_values().collect())
    }

    /// The timer to be scheduled, or the answer that is known already.
    fn item(
        &self,
        index: u32,
        described: Described,
        partition: &PartitionName,
        before: Option<Recorded>,
    ) -> Result<Item, Box<Result<Answer, ServiceError>>> {
        let (id, spec) = described.map_err(|error| Box::new(Err(error)))?;
        if let Some(before) = before {
            let standing = before.standing();
            let answer = answer(partition, &before.id, spec, before.outcome, &standing);
            return Err(Box::new(Ok(answer)));
        }
        let due_at_ms = self.due_at_ms(&spec);
        let prepare = || -> Result<(TimerId, Policy, Timer), ServiceError> {
            let (id, policy) = match id {
                Some(id) => (id, Policy::Replace),
                None => (self.draw_id()?, Policy::IfAbsent),
            };
            let payload = encoded(&spec.record).map_err(|error| below(index, error))?;
            let timer = webhook_timer(&id, due_at_ms, payload);
            Ok((id, policy, timer))
        };
        let (id, policy, timer) = prepare().map_err(|error| Box::new(Err(error)))?;
        Ok(Item {
            index,
            id,
            spec,
            due_at_ms,
            timer,
            policy,
        })
    }

    async fn schedule_items(
        &self,
        partition: &PartitionName,
        items: Vec<Item>,
        answers: &mut BTreeMap<u32, Result<Answer, ServiceError>>,
    ) {
        let timers = items
            .iter()
            .map(|item| (item.timer.clone(), item.policy))
            .collect();
        let scheduled = self
            .timers
            .schedule_many(partition.partition(), timers)
            .await;
        for (item, scheduled) in items.into_iter().zip(scheduled) {
            let index = item.index;
            let answer = scheduled.map_err(ServiceError::from).map(|scheduled| {
                let standing = fresh(&scheduled, item.due_at_ms);
                finished(partition, item, outcome(scheduled.outcome), &standing)
            });
            answers.insert(index, answer);
        }
    }

    async fn schedule_keyed_items(
        &self,
        partition: &PartitionName,
        session: &BatchSession,
        items: Vec<Item>,
        answers: &mut BTreeMap<u32, Result<Answer, ServiceError>>,
    ) {
        for item in &items {
            // Stands unless the item's own answer takes its place: its task may go down.
            let lost = ServiceError::internal("scheduling a timer of a batch panicked");
            answers.insert(item.index, Err(lost));
        }
        let mut items = items.into_iter();
        let mut running = JoinSet::new();
        loop {
            while running.len() < CONCURRENT_MAX
                && let Some(item) = items.next()
            {
                let timers = session.timers(item.index);
                let partition = partition.partition().clone();
                running.spawn(async move {
                    let timer = item.timer.clone();
                    let scheduled = timers.schedule(&partition, timer, item.policy).await;
                    (item, scheduled)
                });
            }
            match running.join_next().await {
                None => return,
                Some(Err(error)) => tracing::error!(%error, "scheduling a timer panicked"),
                Some(Ok((item, scheduled))) => {
                    let index = item.index;
                    let answer = scheduled.map_err(ServiceError::from).map(|scheduled| {
                        let standing = fresh(&scheduled, item.due_at_ms);
                        finished(partition, item, outcome(scheduled.outcome), &standing)
                    });
                    answers.insert(index, answer);
                }
            }
        }
    }
}

fn finished(
    partition: &PartitionName,
    item: Item,
    outcome: Outcome,
    standing: &Standing,
) -> Answer {
    answer(partition, item.id.as_str(), item.spec, outcome, standing)
}

/// The error of a timer, its pointers below the timer's place in the batch.
fn below(index: u32, error: ServiceError) -> ServiceError {
    match error {
        ServiceError::Fields(errors) => {
            let mut moved = FieldErrors::new();
            for error in errors.into_vec() {
                moved.add(format!("/timers/{index}{}", error.pointer), error.detail);
            }
            ServiceError::Fields(moved)
        }
        error => error,
    }
}
