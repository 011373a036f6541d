use super::commit::{Commit, Tries};
use super::plan::{Explained, SeenName};
use super::{Policy, ScheduleOutcome, Scheduled};
use crate::store::Partition;
use crate::timers::{Timer, TimerError, Timers};

impl Timers {
    /// Schedules a timer. An anonymous one is always created; a named one meets what is there
    /// under its name as the [`Policy`] says.
    ///
    /// A new timer costs one round trip. A due in the past is taken as it is and fires at once.
    ///
    /// After `Unknown` the timer may be there or not. Scheduling a *named* timer again with the same
    /// policy leaves exactly one: `Replace` and `KeepEarliest` write it once more under a new
    /// generation (or for the first time), `IfAbsent` finds it and says which generation it has. An
    /// anonymous one may then be there twice: name what must not be.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use dueline::memory::MemoryStore;
    /// use dueline::store::Partition;
    /// use dueline::timers::{Policy, ScheduleOutcome, Timer, TimerKind, Timers};
    /// use dueline_testkit::{ManualClock, block_on, test_runtime};
    ///
    /// let clock = ManualClock::new(1_000);
    /// let store = Arc::new(MemoryStore::new(Arc::new(clock.clone())));
    /// let timers = Timers::new(store, test_runtime(&clock));
    /// let order = Partition::new("order-42")?;
    ///
    /// let timer = Timer::new(TimerKind(16), "expire").due_at(61_000).named();
    /// let first = block_on(timers.schedule(&order, timer.clone(), Policy::Replace))?;
    /// assert_eq!(first.outcome, ScheduleOutcome::Created);
    ///
    /// let again = block_on(timers.schedule(&order, timer.due_at(31_000), Policy::Replace))?;
    /// assert_eq!(again.outcome, ScheduleOutcome::Replaced);
    /// assert_ne!(again.generation, first.generation);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `Invalid` for a timer over a limit, `Contended`, and what the store says.
    pub async fn schedule(
        &self,
        partition: &Partition,
        timer: Timer,
        policy: Policy,
    ) -> Result<Scheduled, TimerError> {
        self.schedule_from(partition, &timer, policy, SeenName::default())
            .await
    }

    /// Schedules from what is known of the name: nothing, most often.
    pub(super) async fn schedule_from(
        &self,
        partition: &Partition,
        timer: &Timer,
        policy: Policy,
        mut seen: SeenName,
    ) -> Result<Scheduled, TimerError> {
        let mut tries = Tries::default();
        loop {
            let plan = self.plan_again(partition, timer, policy, seen).await?;
            // What is kept was read a moment ago, by a lost guard or in the plan: that is enough for
            // an answer that writes nothing.
            if plan.scheduled.outcome == ScheduleOutcome::Kept {
                return Ok(plan.scheduled);
            }
            let (index, observed) = match self.commit(partition, plan.batch).await? {
                Commit::Written => return Ok(plan.scheduled),
                Commit::Lost { index, observed } => (index, observed),
            };
            if plan.guards.is_collision(index) {
                tries.collided()?;
            } else {
                tries.changed()?;
            }
            seen = match plan.guards.explain(0, index, observed) {
                Explained::TimerChanged(seen) => seen,
                Explained::Caller { .. } => SeenName::default(),
            };
        }
    }
}
