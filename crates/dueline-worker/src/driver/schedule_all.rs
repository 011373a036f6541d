//! Many schedules, one commit.

use dueline::store::Partition;
use dueline::timers::{Asked, Refused, Scheduled, TimerError};

use super::ObjectDriver;

impl ObjectDriver {
    /// Schedules all of these timers in one commit, or none. What was scheduled comes in their order; the alarm
    /// is written once at the most, for the earliest. Each has a name of its own, or none.
    ///
    /// # Errors
    /// Of the first that is refused, with its position, as
    /// [`Timers::plan_all`](dueline::timers::Timers::plan_all) says; of all, as
    /// [`apply_whole`](crate::ObjectStore::apply_whole). Nothing is scheduled then, unless it is `Unknown`.
    pub async fn schedule_all(
        &self,
        partition: &Partition,
        asked: &[Asked],
    ) -> Result<Vec<Scheduled>, Refused> {
        // Read and committed in one turn: nobody changes a name in between.
        let plans = self.timers().plan_all(partition, asked).await?;
        let (mut batches, mut scheduled) = (Vec::new(), Vec::new());
        for plan in plans {
            batches.push(plan.batch);
            scheduled.push(plan.scheduled);
        }
        match self.store.apply_whole(partition, batches).await.stopped_by {
            None => Ok(scheduled),
            Some(error) => Err(TimerError::from(error).into()),
        }
    }
}
