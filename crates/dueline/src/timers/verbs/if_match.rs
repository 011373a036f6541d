use super::Scheduled;
use super::commit::{Commit, Tries};
use super::draft::Draft;
use super::named::NameEntry;
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
        if !timer.named {
            return Err(TimerError::invalid(
                "only a named timer can be replaced: call `named()` on it",
            ));
        }
        let name = timer.name();
        let mut seen = self.read_name(partition, &name).await?;
        let mut tries = Tries::default();
        loop {
            let Some(entry) = seen else {
                return Err(TimerError::NotFound);
            };
            entry.require_generation(Some(generation))?;
            let plan = self.place(Draft::as_asked(&timer, Some(&entry)), Some(&entry));
            let (index, observed) = match self.commit(partition, plan.batch).await? {
                Commit::Written => return Ok(plan.scheduled),
                Commit::Lost { index, observed } => (index, observed),
            };
            if plan.guards.is_collision(index) {
                tries.collided()?;
                seen = Some(entry);
            } else {
                tries.changed()?;
                seen = observed
                    .map(|value| NameEntry::decode(&name, value))
                    .transpose()?;
            }
        }
    }
}
