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
    /// With a generation the timer is replaced only while it has this one, and the policy says nothing.
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
    /// Each plan is one of [`plan`](Self::plan), or what
    /// [`schedule_if_match`](Self::schedule_if_match) would write. Two of one name are planned from the same
    /// reading: the guards of the later one are lost to the earlier.
    ///
    /// # Errors
    /// As those two, with the position.
    pub async fn plan_all(
        &self,
        partition: &Partition,
        asked: &[Asked],
    ) -> Result<Vec<Plan>, Refused> {
        let mut names: Vec<Key> = Vec::new();
        for (index, Asked { timer, .. }) in asked.iter().enumerate() {
            timer.validate().map_err(|error| at(index, error))?;
            if timer.named {
                names.push(timer.name().encode());
            }
        }
        let mut seen = if names.is_empty() {
            Vec::new()
        } else {
            let read = self.store().get_many(partition, &names).await;
            read.map_err(TimerError::from)?
        }
        .into_iter();
        let mut plans = Vec::with_capacity(asked.len());
        for (index, one) in asked.iter().enumerate() {
            let seen = if one.timer.named {
                SeenName::read(seen.next().flatten())
            } else {
                SeenName::default()
            };
            let planned = match one.if_match {
                Some(generation) => self.plan_if_match(&one.timer, generation, seen),
                None => {
                    self.plan_again(partition, &one.timer, one.policy, seen)
                        .await
                }
            };
            plans.push(planned.map_err(|error| at(index, error))?);
        }
        Ok(plans)
    }
}

fn at(index: usize, error: TimerError) -> Refused {
    Refused {
        index: Some(index),
        error,
    }
}
