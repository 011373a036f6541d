use super::PUBLICATION_RECHECK;
use crate::kinds::Planned;
use crate::store::{Key, Partition};
use crate::timers::{Policy, Timer, TimerError, Timers};

/// Sees to it that a record that waits for others is looked at until it is released.
///
/// The timer is named after the record: a record has one, whoever asks for it, and the application may
/// find it by [`PUBLICATION_RECHECK`] and the record's key.
#[derive(Clone, Debug)]
pub struct Rechecks {
    timers: Timers,
}

impl Rechecks {
    /// Over the store of these timers.
    pub fn new(timers: Timers) -> Self {
        Self { timers }
    }

    /// Plans the looks at a record that is new, to be appended to the batch that writes it. Costs no
    /// read, and in the batch two preconditions and two writes. If one of its guards is lost the record
    /// has looks already: [`plan`](Self::plan).
    ///
    /// # Errors
    /// `Invalid` for a key over 512 bytes.
    pub fn plan_new(&self, record: &Key) -> Result<Planned<()>, TimerError> {
        let plan = self.timers.plan_new(&self.timer(record))?;
        Ok(Planned {
            batch: plan.batch,
            outcome: (),
        })
    }

    /// Plans the looks at a record that may have some: at once, or when the back-off of looks that failed
    /// is over, and from the first dependency on. A run that is under way has no effect any more. Costs one read, two if there is a timer.
    ///
    /// # Errors
    /// As [`plan_new`](Self::plan_new); `Contended`, and what the store says.
    pub async fn plan(
        &self,
        partition: &Partition,
        record: &Key,
    ) -> Result<Planned<()>, TimerError> {
        let timer = self.timer(record);
        let plan = self.timers.plan(partition, &timer, Policy::KeepEarliest);
        Ok(Planned {
            batch: plan.await?.batch,
            outcome: (),
        })
    }

    /// Looks at a record now instead of up to five seconds later, for an application that knows that a
    /// dependency has become visible. What was seen already is kept. False if the record waits no more.
    ///
    /// # Errors
    /// `Invalid` for a key over 512 bytes, `Contended`, and what the store says.
    pub async fn look_now(&self, partition: &Partition, record: &Key) -> Result<bool, TimerError> {
        let fired = self.timers.fire_now(partition, PUBLICATION_RECHECK, record);
        match fired.await {
            Ok(_) => Ok(true),
            Err(TimerError::NotFound) => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn timer(&self, record: &Key) -> Timer {
        let now_ms = self.timers.runtime().now_ms();
        Timer::new(PUBLICATION_RECHECK, record.clone())
            .due_at(now_ms)
            .named()
    }
}
