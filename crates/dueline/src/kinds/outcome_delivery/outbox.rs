use bytes::Bytes;

use super::dead_rows::{DEAD, Dead, DeadOutcomeReason};
use super::rows::{GONE, Gone, Outcome, PENDING, Pending, STATE, State, name_len, sequence_of};
use super::{OutboxBuilder, OutboxName};
use crate::kinds::observed::Observed;
use crate::kinds::planned::{Planned, until_committed};
use crate::kinds::row::{Row, Table};
use crate::store::{Batch, Key, Partition, ReadStore, ScanRange, StoreError, Value};
use crate::timers::{TimerError, Timers};

/// Most rows of one page of [`Outbox::waiting`] and [`Outbox::dead`].
pub const OUTBOX_PAGE_MAX: usize = 100;

/// What waits in an outbox.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backlog {
    /// How many outcomes wait.
    pub rows: u64,
    /// How many bytes of ids and bodies wait.
    pub bytes: u64,
}

impl Backlog {
    pub(super) fn of(state: &State, gone: &Gone) -> Self {
        Self {
            rows: state.rows_in.saturating_sub(gone.rows),
            bytes: state.bytes_in.saturating_sub(gone.bytes),
        }
    }
}

/// An outcome that waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitingOutcome {
    /// Its place in the order of the outbox.
    pub sequence: u64,
    /// When it was appended, in milliseconds since 1970.
    pub written_at_ms: u64,
    /// How often its delivery has failed.
    pub attempt: u16,
    /// Before when it is not tried again, in milliseconds since 1970; 0 before the first failure.
    pub retry_at_ms: u64,
    /// What is to be told; `None` if the row does not decode.
    pub outcome: Option<Outcome>,
}

/// An outcome that was set aside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadOutcome {
    /// Its place in the order of the outbox, and its id for [`Outbox::requeue`] and [`Outbox::purge`].
    pub sequence: u64,
    /// Why it was set aside.
    pub reason: DeadOutcomeReason,
    /// The last error.
    pub error: String,
    /// How often its delivery has failed.
    pub attempt: u16,
    /// When it was set aside, in milliseconds since 1970.
    pub dead_at_ms: u64,
    /// What was to be told; `None` if the row does not decode.
    pub outcome: Option<Outcome>,
    /// The row as it waited, byte for byte.
    pub row: Value,
}

/// Rows of an outbox in the order of their sequences.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutcomePage<T> {
    /// The rows of this page.
    pub outcomes: Vec<T>,
    /// The sequence behind which the next page begins; `None` at the end.
    pub next: Option<u64>,
}

/// One outbox of one partition: what is appended to it, what waits in it, what was set aside. Cheap to
/// clone.
///
/// An outcome comes about with other changes as a rule: [`plan`](Self::plan) gives the batch to append to
/// theirs, or in a handler [`OutboxBuilder`], which reads through its context.
#[derive(Clone, Debug)]
pub struct Outbox {
    timers: Timers,
    partition: Partition,
    name: OutboxName,
}

impl Outbox {
    /// The outbox of this name in this partition. It is made by the first outcome.
    pub fn new(timers: Timers, partition: Partition, name: OutboxName) -> Self {
        Self {
            timers,
            partition,
            name,
        }
    }

    /// The name of the outbox.
    pub fn name(&self) -> &OutboxName {
        &self.name
    }

    /// Plans to append outcomes, at most 96 in a batch without more; their sequences are the outcome of
    /// the plan. Costs one read.
    ///
    /// # Errors
    /// `Invalid` for an outcome over a limit; `Corrupt` if the outbox's row does not decode; what the
    /// store says.
    pub async fn plan(&self, outcomes: &[Outcome]) -> Result<Planned<Vec<u64>>, TimerError> {
        let now_ms = self.timers.runtime().now_ms();
        let mut builder = self.builder().await?;
        let mut sequences = Vec::with_capacity(outcomes.len());
        for outcome in outcomes {
            sequences.push(builder.append(outcome.clone(), now_ms)?);
        }
        Ok(Planned {
            batch: builder.finish(&self.timers, now_ms)?,
            outcome: sequences,
        })
    }

    /// Appends outcomes in a commit of their own and returns their sequences.
    ///
    /// # Errors
    /// As [`plan`](Self::plan); `Contended` if others appended each time. After `Unknown` the outcomes are
    /// there in full or not at all.
    pub async fn append(&self, outcomes: &[Outcome]) -> Result<Vec<u64>, TimerError> {
        until_committed!(self.timers, &self.partition, self.plan(outcomes))
    }

    /// Plans what [`wake`](Self::wake) does. Costs one read.
    ///
    /// # Errors
    /// `Corrupt` if the outbox's row does not decode; what the store says.
    pub async fn plan_wake(&self) -> Result<Planned<bool>, TimerError> {
        let now_ms = self.timers.runtime().now_ms();
        let batch = self.builder().await?.finish_awake(&self.timers, now_ms)?;
        let outcome = !batch.is_empty();
        Ok(Planned { batch, outcome })
    }

    /// Delivers what waits at once, whatever back-off or pause the outbox is in: for an operator who knows
    /// that the sink is there again. Outcomes that failed still wait for their own next attempt. What a run
    /// that is under way has delivered is delivered again. False if nothing waits.
    ///
    /// # Errors
    /// As [`append`](Self::append).
    pub async fn wake(&self) -> Result<bool, TimerError> {
        until_committed!(self.timers, &self.partition, self.plan_wake())
    }

    /// How much waits. Costs one read.
    ///
    /// # Errors
    /// `Corrupt` if one of the two rows does not decode; what the store says.
    pub async fn backlog(&self) -> Result<Backlog, TimerError> {
        let name = self.name.as_bytes();
        let keys = [STATE.key(&[name]), GONE.key(&[name])];
        let found = self.store().get_many(&self.partition, &keys).await?;
        let mut found = found.into_iter();
        let state = found.next().flatten().map(|value| State::read(&value));
        let gone = found.next().flatten().map(|value| Gone::read(&value));
        Ok(Backlog::of(
            &state.transpose()?.unwrap_or_default(),
            &gone.transpose()?.unwrap_or_default(),
        ))
    }

    /// One page of the outcomes that wait, behind a sequence, at most `limit` and 100 of them.
    ///
    /// # Errors
    /// `Invalid` for a limit of 0; what the store says.
    pub async fn waiting(
        &self,
        after: Option<u64>,
        limit: usize,
    ) -> Result<OutcomePage<WaitingOutcome>, TimerError> {
        let page = self.page(PENDING, after, limit).await?;
        Ok(page.map(|sequence, value| {
            let pending = Pending::decode(&value).ok();
            let of = |number: fn(&Pending) -> u64| pending.as_ref().map_or(0, number);
            WaitingOutcome {
                sequence,
                written_at_ms: of(|pending| pending.written_at_ms),
                attempt: pending.as_ref().map_or(0, |pending| pending.attempt),
                retry_at_ms: of(|pending| pending.retry_at_ms),
                outcome: pending.map(|pending| pending.outcome),
            }
        }))
    }

    /// One page of the outcomes that were set aside, behind a sequence, at most `limit` and 100 of them.
    ///
    /// # Errors
    /// `Invalid` for a limit of 0; what the store says.
    pub async fn dead(
        &self,
        after: Option<u64>,
        limit: usize,
    ) -> Result<OutcomePage<DeadOutcome>, TimerError> {
        let page = self.page(DEAD, after, limit).await?;
        Ok(page.map(dead_outcome))
    }

    /// Plans what [`requeue`](Self::requeue) does. Costs two reads.
    ///
    /// # Errors
    /// `Corrupt` for a row that does not decode; what the store says.
    pub async fn plan_requeue(&self, sequence: u64) -> Result<Planned<Option<u64>>, TimerError> {
        let now_ms = self.timers.runtime().now_ms();
        let key = Dead::key(self.name.as_bytes(), sequence);
        let dead = self.read::<Dead>(key).await?;
        let Some(row) = &dead.row else {
            return Ok(Planned::nothing(None));
        };
        let mut builder = self.builder().await?;
        let value = match Pending::decode(&row.value) {
            Ok(pending) => Pending::new(pending.outcome, pending.written_at_ms).encode(),
            Err(_) => row.value.clone(),
        };
        let sequence = builder.append_row(value)?;
        let batch = dead.replace(Batch::new(), None);
        Ok(Planned {
            batch: batch.append(builder.finish(&self.timers, now_ms)?),
            outcome: Some(sequence),
        })
    }

    /// Puts an outcome that was set aside behind all others, under a new sequence, its attempts back at 0.
    /// Returns the new sequence, or `None` if it is not among the dead.
    ///
    /// The sequence is new because a relay's target has absorbed what came later: under its old one it
    /// would be taken for absorbed too.
    ///
    /// # Errors
    /// `Corrupt` for a dead row that does not decode; `Contended`; what the store says.
    pub async fn requeue(&self, sequence: u64) -> Result<Option<u64>, TimerError> {
        until_committed!(self.timers, &self.partition, self.plan_requeue(sequence))
    }

    /// Plans what [`purge`](Self::purge) does. Costs one read.
    ///
    /// # Errors
    /// What the store says.
    pub async fn plan_purge(&self, sequence: u64) -> Result<Planned<bool>, TimerError> {
        let key = Dead::key(self.name.as_bytes(), sequence);
        if self.store().get(&self.partition, &key).await?.is_none() {
            return Ok(Planned::nothing(false));
        }
        Ok(Planned {
            batch: Batch::new().require_present(key.clone()).delete(key),
            outcome: true,
        })
    }

    /// Removes an outcome that was set aside, for good; false if it is not among the dead.
    ///
    /// # Errors
    /// `Contended`; what the store says.
    pub async fn purge(&self, sequence: u64) -> Result<bool, TimerError> {
        until_committed!(self.timers, &self.partition, self.plan_purge(sequence))
    }

    /// Plans what [`set_aside`](Self::set_aside) does. Costs two reads.
    ///
    /// # Errors
    /// `Corrupt` if the outbox's row does not decode; what the store says.
    pub async fn plan_set_aside(
        &self,
        sequence: u64,
        why: &str,
    ) -> Result<Planned<bool>, TimerError> {
        let name = self.name.as_bytes();
        let pending_key = Pending::key(name, sequence);
        let Some(value) = self.store().get(&self.partition, &pending_key).await? else {
            return Ok(Planned::nothing(false));
        };
        let gone = self.read::<Gone>(GONE.key(&[name])).await?;
        let mut left = gone.row.unwrap_or_default();
        left.rows = left.rows.saturating_add(1);
        left.bytes = left.bytes.saturating_add(Pending::backlog_bytes(&value));
        let attempt = Pending::decode(&value).map_or(0, |pending| pending.attempt);
        let now_ms = self.timers.runtime().now_ms();
        let dead = Dead::new(DeadOutcomeReason::ByHand, why, value.clone(), now_ms);
        let batch = gone
            .replace(Batch::new(), Some(&left))
            .require_equals(pending_key.clone(), value)
            .delete(pending_key)
            .put(
                Dead::key(name, sequence),
                dead.after_attempts(attempt).encode(),
            );
        Ok(Planned {
            batch,
            outcome: true,
        })
    }

    /// Sets an outcome that waits aside by hand, so that those behind it go on: the way out for a relay
    /// whose target will never take it. False if it does not wait.
    ///
    /// # Errors
    /// `Contended`; what the store says.
    pub async fn set_aside(&self, sequence: u64, why: &str) -> Result<bool, TimerError> {
        until_committed!(
            self.timers,
            &self.partition,
            self.plan_set_aside(sequence, why)
        )
    }

    fn store(&self) -> &dyn ReadStore {
        &**self.timers.store()
    }

    async fn builder(&self) -> Result<OutboxBuilder, StoreError> {
        OutboxBuilder::read(self.store(), &self.partition, &self.name).await
    }

    async fn read<T: Row>(&self, key: Key) -> Result<Observed<T>, StoreError> {
        Observed::read(self.store(), &self.partition, key).await
    }

    /// One page of a table by sequence. Keys that hold no sequence are passed over, and end no page.
    async fn page(
        &self,
        table: Table,
        after: Option<u64>,
        limit: usize,
    ) -> Result<OutcomePage<(u64, Value)>, TimerError> {
        let first = after.map_or(Some(0), |after| after.checked_add(1));
        let Some(first) = first else {
            return Ok(OutcomePage {
                outcomes: Vec::new(),
                next: None,
            });
        };
        let limit = limit.min(OUTBOX_PAGE_MAX);
        let mut range = range(table, self.name.as_bytes(), (first, u64::MAX), limit);
        loop {
            let page = self.store().scan(&self.partition, &range).await?;
            let rows = page.rows.into_iter();
            let outcomes: Vec<(u64, Value)> = rows
                .filter_map(|(key, value)| Some((sequence_of(table, &key).ok()?, value)))
                .collect();
            let last = outcomes.last().map(|(sequence, _)| *sequence);
            match page.next {
                Some(cursor) if last.is_none() => range.after = Some(cursor),
                more => {
                    let next = more.and(last);
                    return Ok(OutcomePage { outcomes, next });
                }
            }
        }
    }
}

impl OutcomePage<(u64, Value)> {
    fn map<T>(self, view: impl Fn(u64, Value) -> T) -> OutcomePage<T> {
        let rows = self.outcomes.into_iter();
        OutcomePage {
            outcomes: rows
                .map(|(sequence, value)| view(sequence, value))
                .collect(),
            next: self.next,
        }
    }
}

/// The rows of a table with one row for each sequence of an outbox, from one sequence to another, both
/// included.
pub(super) fn range(
    table: Table,
    name: &[u8],
    (first, last): (u64, u64),
    limit: usize,
) -> ScanRange {
    let len = [name_len(name)];
    let start = table.key(&[&len, name, &first.to_be_bytes()]);
    let end = table.key(&[&len, name, &last.to_be_bytes(), &[0]]);
    ScanRange::new(start, end, limit)
}

fn dead_outcome(sequence: u64, value: Bytes) -> DeadOutcome {
    // A dead row that does not decode is shown as it lies, so that it can be found and purged.
    let dead = Dead::decode(&value).unwrap_or_else(|malformed| {
        Dead::new(DeadOutcomeReason::Undecodable, malformed.0, value, 0)
    });
    DeadOutcome {
        sequence,
        reason: dead.reason,
        error: dead.error,
        attempt: dead.attempt,
        dead_at_ms: dead.dead_at_ms,
        outcome: Pending::decode(&dead.value)
            .ok()
            .map(|pending| pending.outcome),
        row: dead.value,
    }
}
