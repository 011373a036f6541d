use super::condition::Condition;
use super::core::{LOOKS_MAX, Service};
use super::error::ServiceError;
use super::names::{PartitionName, TimerId};
use super::shown::TimerJson;
use crate::webhook::WEBHOOK;

impl Service {
    /// One timer.
    pub(crate) async fn read(
        &self,
        partition: &PartitionName,
        id: &TimerId,
    ) -> Result<TimerJson, ServiceError> {
        let view = self.view(partition, id).await?;
        let view = view.ok_or(ServiceError::TimerNotFound)?;
        Ok(TimerJson::of_view(partition.as_str(), &view, self.now_ms()))
    }

    /// Removes a timer. While a delivery of it is under way this is refused unless `force` is set:
    /// the call may then still arrive, and no retry follows.
    pub(crate) async fn remove(
        &self,
        partition: &PartitionName,
        id: &TimerId,
        condition: &Condition,
        force: bool,
    ) -> Result<(), ServiceError> {
        let reference = id.reference();
        for _ in 0..LOOKS_MAX {
            let if_match = match condition {
                Condition::None => None,
                _ => condition.generation(self.view(partition, id).await?.as_ref())?,
            };
            let partition = partition.partition();
            let removed = if force {
                self.timers
                    .cancel(partition, WEBHOOK, &reference, if_match)
                    .await
            } else {
                self.timers
                    .cancel_unless_claimed(partition, WEBHOOK, &reference, if_match)
                    .await
            };
            match removed.map_err(ServiceError::from) {
                Ok(Some(_)) => return Ok(()),
                Ok(None) if *condition == Condition::None => {
                    return Err(ServiceError::TimerNotFound);
                }
                // It changed after the look; the next look says whether the condition holds.
                Ok(None) | Err(ServiceError::Changed { .. } | ServiceError::Contended) => {}
                Err(error) => return Err(error),
            }
        }
        Err(ServiceError::Contended)
    }
}
