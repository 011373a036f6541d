use super::Policy;
use super::plan::{Plan, SeenName};
use crate::store::{Key, Partition};
use crate::timers::{Timer, TimerError, Timers};

/// One of the timers that are planned to be scheduled together.
#[derive(Clone, Debug)]
pub struct Asked {
    /// What is scheduled.
    pub timer: Timer,
    /// What becomes of the timer that has its name.
    pub policy: Policy,
    /// With a generation the policy is followed only while the timer of the name has this one.
    pub if_match: Option<u64>,
}

/// Why none of several timers is scheduled.
#[derive(Clone, Debug)]
pub struct Refused {
    /// Which of them was refused, counted from 0; without one the refusal is that of all.
    pub index: Option<usize>,
    /// Why.
    pub error: TimerError,
}

impl From<TimerError> for Refused {
    fn from(error: TimerError) -> Self {
        Self { index: None, error }
    }
}

impl Timers {
    /// Plans each of these schedules from one reading of their names, to be committed together by whoever
    /// asks, and says of the first that cannot be which it is. Writes nothing.
    ///
    /// Each is planned as by [`plan`](Self::plan). Two of one name are planned from the same reading: the guards
    /// of the later one are lost to the earlier.
    ///
    /// # Errors
    /// As that, with the position; `NotFound` and `GenerationMismatch` for a generation that is not there.
    pub async fn plan_all(
        &self,
        partition: &Partition,
        asked: &[Asked],
    ) -> Result<Vec<Plan>, Refused> {
        let named = asked.iter().filter(|one| one.timer.named);
        let names: Vec<Key> = named.map(|one| one.timer.name().encode()).collect();
        let read = self.store().get_many(partition, &names).await;
        let mut seen = read.map_err(TimerError::from)?.into_iter();
        let mut plans = Vec::new();
        for (index, one) in asked.iter().enumerate() {
            let found = if one.timer.named {
                seen.next().flatten()
            } else {
                None
            };
            let plan = self
                .plan_again(partition, &one.timer, one.policy, SeenName::read(found))
                .await;
            let plan = plan.and_then(|plan| plan.if_match(&one.timer, one.if_match));
            plans.push(plan.map_err(|error| Refused {
                index: Some(index),
                error,
            })?);
        }
        Ok(plans)
    }
}
