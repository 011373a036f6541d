use super::Scheduled;
use super::commit::{Commit, Tries};
use super::draft::Draft;
use super::plan::{Explained, Plan, SeenName};
use crate::store::Partition;
use crate::timers::{Timer, TimerError, Timers};

impl Timers {
    /// Replaces the timer of this name if it is still this generation. Moves of the engine (a retry,
    /// a claim, a death) keep the generation, so they do not stand in the way.
    ///
    /// # Errors
    /// `NotFound` if there is no timer of that name; `GenerationMismatch` if it is another one;
    /// `Invalid` for a timer without a name or over a limit; `Contended`; what the store says.
    pub async fn schedule_if_match(
        &self,
        partition: &Partition,
        timer: Timer,
        generation: u64,
    ) -> Result<Scheduled, TimerError> {
        timer.validate()?;
        let mut seen = if timer.named {
            let name = timer.name().encode();
            SeenName::read(self.store().get(partition, &name).await?)
        } else {
            SeenName::default()
        };
        let mut tries = Tries::default();
        loop {
            let plan = self.plan_if_match(&timer, generation, seen)?;
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

    /// Plans the replacement from what is known of the name.
    pub(super) fn plan_if_match(
        &self,
        timer: &Timer,
        generation: u64,
        seen: SeenName,
    ) -> Result<Plan, TimerError> {
        if !timer.named {
            return Err(TimerError::invalid(
                "only a named timer can be replaced: call `named()` on it",
            ));
        }
        let Some(entry) = seen.entry(&timer.name())? else {
            return Err(TimerError::NotFound);
        };
        entry.require_generation(Some(generation))?;
        Ok(self.place(Draft::as_asked(timer, Some(&entry)), Some(&entry)))
    }
}
