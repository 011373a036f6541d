//! Many schedules, one commit.

use dueline::store::{BatchOutcome, Partition};
use dueline::timers::{Asked, Refused, Scheduled, TimerError};

use super::ObjectDriver;

/// How often names may be found changed, or keys taken, before the call gives up. What is read and committed
/// in one turn is never changed by others.
const TRIES_MAX: u32 = 8;

impl ObjectDriver {
    /// Schedules all of these timers in one commit, or none. What was scheduled comes in their order; the alarm
    /// is written once at the most, for the earliest. They have different names.
    ///
    /// # Errors
    /// Of the first that is refused, with its position, as
    /// [`Timers::plan_all`](dueline::timers::Timers::plan_all) says; of all, what the store says, and
    /// `Contended` if two have one name. Nothing is scheduled then, unless it is `Unknown`.
    pub async fn schedule_all(
        &self,
        partition: &Partition,
        asked: &[Asked],
    ) -> Result<Vec<Scheduled>, Refused> {
        for _ in 0..TRIES_MAX {
            let plans = self.timers().plan_all(partition, asked).await?;
            let mut batches = Vec::with_capacity(plans.len());
            let mut scheduled = Vec::with_capacity(plans.len());
            for plan in plans {
                batches.push(plan.batch);
                scheduled.push(plan.scheduled);
            }
            let done = self.store.apply_whole(partition, batches).await;
            if done.map_err(TimerError::from)? == BatchOutcome::Committed {
                return Ok(scheduled);
            }
        }
        Err(TimerError::Contended.into())
    }
}
