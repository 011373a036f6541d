use bytes::Bytes;

use super::OUTCOME_DELIVERY;
use super::rows::{
    OUTBOX_NAME_BYTES_MAX, OUTCOME_BODY_BYTES_MAX, OUTCOME_ID_BYTES_MAX, Outcome, Pending, STATE,
    State,
};
use crate::kinds::observed::Observed;
use crate::kinds::row::Row;
use crate::store::{Batch, Partition, ReadStore, StoreError};
use crate::timers::{Timer, TimerError, Timers};

/// The name of an outbox, 1 to 64 bytes. A partition may have several, each with its own order, its own
/// sink and its own timer.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OutboxName(Bytes);

impl OutboxName {
    /// A name.
    ///
    /// # Errors
    /// `Invalid` for an empty one or one over 64 bytes.
    pub fn new(name: impl Into<Bytes>) -> Result<Self, StoreError> {
        let name = name.into();
        if name.is_empty() || name.len() > OUTBOX_NAME_BYTES_MAX {
            return Err(StoreError::invalid(format!(
                "the name of an outbox has 1 to {OUTBOX_NAME_BYTES_MAX} bytes, this one has {}",
                name.len()
            )));
        }
        Ok(Self(name))
    }

    /// The bytes of the name.
    pub fn as_bytes(&self) -> &Bytes {
        &self.0
    }
}

/// Appends outcomes to a batch: rows, sequence, backlog, and the timer that delivers them if there is
/// none.
///
/// Costs one read, and in the batch one guard and one put for the outbox, one put for each outcome, and
/// two operations more when it wakes an outbox that was empty. All outcomes of one batch must go through
/// one builder, as its guard is on the outbox.
#[derive(Debug)]
#[must_use = "finish it and append its batch"]
pub struct OutboxBuilder {
    name: OutboxName,
    observed: Observed<State>,
    state: State,
    rows: Batch,
}

impl OutboxBuilder {
    /// Reads the outbox. In a handler `reads` are those of the context, so that what earlier timers of the
    /// same group appended is seen.
    ///
    /// # Errors
    /// What the store says; `Corrupt` if the outbox's row does not decode.
    pub async fn read(
        reads: &dyn ReadStore,
        partition: &Partition,
        name: &OutboxName,
    ) -> Result<Self, StoreError> {
        let key = STATE.key(&[name.as_bytes()]);
        let observed = Observed::<State>::read(reads, partition, key).await?;
        Ok(Self {
            name: name.clone(),
            state: observed.row.unwrap_or_default(),
            observed,
            rows: Batch::new(),
        })
    }

    /// Appends an outcome and returns its place in the order of the outbox.
    ///
    /// # Errors
    /// `Invalid` for an id or a body over its limit.
    pub fn append(&mut self, outcome: Outcome, now_ms: u64) -> Result<u64, StoreError> {
        for (what, len, most) in [
            ("id", outcome.id.len(), OUTCOME_ID_BYTES_MAX),
            ("body", outcome.body.len(), OUTCOME_BODY_BYTES_MAX),
        ] {
            if len > most {
                return Err(StoreError::invalid(format!(
                    "the {what} of an outcome has at most {most} bytes, this one has {len}"
                )));
            }
        }
        let sequence = self
            .state
            .last_sequence
            .checked_add(1)
            .ok_or_else(|| StoreError::invalid("the outbox has given its last sequence"))?;
        self.state.last_sequence = sequence;
        self.state.rows = self.state.rows.saturating_add(1);
        self.state.bytes = self
            .state
            .bytes
            .saturating_add(Pending::backlog_bytes(&outcome));
        let key = Pending::key(self.name.as_bytes(), sequence);
        let pending = Pending {
            written_at_ms: now_ms,
            outcome,
        };
        self.rows = std::mem::take(&mut self.rows).put(key, pending.encode());
        Ok(sequence)
    }

    /// The batch to append: guarded by what was read of the outbox. Empty if nothing was appended.
    ///
    /// # Errors
    /// `Invalid` if the time is over the latest due.
    pub fn finish(mut self, timers: &Timers, now_ms: u64) -> Result<Batch, TimerError> {
        if self.rows.is_empty() {
            return Ok(Batch::new());
        }
        let mut wake = Batch::new();
        if !self.state.is_owned {
            self.state.is_owned = true;
            let timer = Timer::new(OUTCOME_DELIVERY, self.name.as_bytes().clone()).due_at(now_ms);
            wake = timers.plan_new(&timer)?.batch;
        }
        let state = self.observed.replace(Batch::new(), Some(&self.state));
        Ok(state.append(self.rows).append(wake))
    }
}
