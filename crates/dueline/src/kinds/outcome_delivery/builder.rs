use std::fmt;

use bytes::Bytes;

use super::progress::Progress;
use super::rows::{
    OUTBOX_NAME_BYTES_MAX, OUTCOME_BODY_BYTES_MAX, OUTCOME_ID_BYTES_MAX, Outcome, Pending, STATE,
    State,
};
use super::{APPEND_WAKE_MS, OUTCOME_DELIVERY, RETRY_AFTER_MS_MAX};
use crate::kinds::observed::Observed;
use crate::kinds::row::Row;
use crate::store::{Batch, Partition, ReadStore, StoreError, Value};
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

impl fmt::Display for OutboxName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0.escape_ascii())
    }
}

/// Appends outcomes to a batch: rows, sequence, backlog, and the timer that delivers them if there is
/// none.
///
/// Costs one read, and in the batch one guard and one put for the outbox, one put for each outcome, and
/// two operations more when it wakes an outbox that was empty or sleeps. So a batch of its own takes 96
/// outcomes. A delivery that sleeps because of outcomes that failed is woken after a second, or when its
/// sink allows it. All outcomes of one batch must go through
/// one builder, as its guard is on the outbox; a batch of two is refused as `Invalid`.
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
        self.append_row(Pending::new(outcome, now_ms).encode())
    }

    /// Appends a row that waited before, whatever its bytes are.
    pub(super) fn append_row(&mut self, value: Value) -> Result<u64, StoreError> {
        let sequence = self
            .state
            .last_sequence
            .checked_add(1)
            .ok_or_else(|| StoreError::invalid("the outbox has given its last sequence"))?;
        self.state.last_sequence = sequence;
        self.state.rows_in = self.state.rows_in.saturating_add(1);
        let bytes = Pending::backlog_bytes(&value);
        self.state.bytes_in = self.state.bytes_in.saturating_add(bytes);
        let key = Pending::key(self.name.as_bytes(), sequence);
        self.rows = std::mem::take(&mut self.rows).put(key, value);
        Ok(sequence)
    }

    /// The batch to append: guarded by what was read of the outbox. Empty if nothing was appended.
    ///
    /// # Errors
    /// `Invalid` if the time is over the latest due.
    pub fn finish(self, timers: &Timers, now_ms: u64) -> Result<Batch, TimerError> {
        if self.rows.is_empty() {
            return Ok(Batch::new());
        }
        let due_at_ms = self.state.wake_for_append(now_ms);
        self.commit(timers, due_at_ms)
    }

    /// The batch that gives an outbox with something in it a new timer, due now; empty if nothing waits.
    pub(super) fn finish_awake(
        mut self,
        timers: &Timers,
        now_ms: u64,
    ) -> Result<Batch, TimerError> {
        if !self.state.is_owned {
            return Ok(Batch::new());
        }
        self.state.not_before_ms = 0;
        self.commit(timers, Some(now_ms))
    }

    fn commit(mut self, timers: &Timers, due_at_ms: Option<u64>) -> Result<Batch, TimerError> {
        let mut wake = Batch::new();
        if let Some(due_at_ms) = due_at_ms {
            self.state.is_owned = true;
            self.state.stamp = self.state.stamp.wrapping_add(1);
            self.state.sleeps_until_ms = due_at_ms;
            let progress = Progress::beginning(self.state.stamp).encode();
            let timer = Timer::new(OUTCOME_DELIVERY, self.name.as_bytes().clone())
                .due_at(due_at_ms)
                .payload(progress);
            wake = timers.plan_new(&timer)?.batch;
        }
        let state = self.observed.replace(Batch::new(), Some(&self.state));
        Ok(state.append(self.rows).append(wake))
    }
}

impl State {
    /// When a timer of its own is to deliver what is appended now; `None` if the one there is comes soon
    /// enough.
    fn wake_for_append(&self, now_ms: u64) -> Option<u64> {
        if !self.is_owned {
            return Some(now_ms);
        }
        // A sink is granted a day: what is later than that is damage, or the clock was set back.
        let asked_ms = now_ms.saturating_add(RETRY_AFTER_MS_MAX);
        let soon_ms = now_ms
            .saturating_add(APPEND_WAKE_MS)
            .max(self.not_before_ms.min(asked_ms));
        (self.sleeps_until_ms > soon_ms).then_some(soon_ms)
    }
}
