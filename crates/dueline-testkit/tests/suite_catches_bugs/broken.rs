//! A memory store with one bug.

use std::sync::Arc;

use dueline::BoxFuture;
use dueline::memory::MemoryStore;
use dueline::rows::{PauseKey, TimerKey, lane_head};
use dueline::store::{
    AuditPage, Batch, BatchOutcome, Capabilities, Group, GroupOutcome, Key, NamespaceStore,
    Partition, PartitionPage, PartitionStats, Precondition, ReadStore, ScanPage, ScanRange,
    StoreError, Value, Wake, WakeCursor, WakePage, WakeStore, Write,
};
use dueline::timers::KindSet;
use dueline_testkit::conformance::{Setup, Subject};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bug {
    HidesObserved,
    ChecksGuardsBackwards,
    IndexSkipsBounds,
    StrictBounds,
    WritesLosers,
    GroupGoesOn,
    LoserSkipsSettles,
    SettlesBehindErrors,
    SettlesFirst,
    ShortKeys,
    MixesPartitions,
    SortsGetMany,
    CursorOnLastPage,
    RepeatsCursorRow,
    LosesCursor,
    AcceptsLimitZero,
    ForgetsPutWake,
    ForgetsResumeWake,
    IgnoresDamagedKeys,
    KeepsServedWakes,
    TakesEveryWake,
    IgnoresKinds,
    ExcludesUntil,
    RepeatsPartition,
    IdleAudit,
    IgnoresReserve,
    ReserveForAll,
    RefusesDeletesWhenFull,
}

const LIMIT_BYTES: u64 = 1 << 20;

/// A factory of memory stores with this bug, or without one.
pub(crate) fn make(bug: Option<Bug>) -> impl Fn(Setup) -> Subject {
    move |setup| {
        let inner = MemoryStore::new(Arc::new(setup.clock.clone()));
        let inner = if setup.small {
            inner.with_capacity_limit(LIMIT_BYTES)
        } else {
            inner
        };
        Subject::with_wakes(Arc::new(Broken { inner, bug }), setup.clock)
    }
}

#[derive(Debug)]
struct Broken {
    inner: MemoryStore,
    bug: Option<Bug>,
}

impl Broken {
    fn has(&self, bug: Bug) -> bool {
        self.bug == Some(bug)
    }

    fn place(&self, partition: &Partition) -> Partition {
        if self.has(Bug::MixesPartitions) {
            return Partition::new("everywhere").unwrap_or_else(|_| partition.clone());
        }
        partition.clone()
    }

    fn spoil_batch(&self, batch: &mut Batch) {
        if self.has(Bug::ChecksGuardsBackwards) {
            batch.preconditions.reverse();
        }
        if self.has(Bug::StrictBounds) {
            for precondition in &mut batch.preconditions {
                if let Precondition::NotAfter(ms) = precondition {
                    *ms = ms.saturating_sub(1);
                }
            }
        }
        if self.has(Bug::IgnoresReserve) {
            batch.uses_reserve = false;
        }
        if self.has(Bug::ReserveForAll) && self.inner.bytes() > LIMIT_BYTES - 100_000 {
            batch.uses_reserve = true;
        }
    }

    fn spoil_outcome(&self, batch: &Batch, outcome: &mut BatchOutcome) {
        let BatchOutcome::PreconditionFailed { index, observed } = outcome else {
            return;
        };
        match self.bug {
            Some(Bug::HidesObserved) => *observed = None,
            Some(Bug::ChecksGuardsBackwards) => *index = batch.preconditions.len() - 1 - *index,
            Some(Bug::IndexSkipsBounds) => {
                let is_bound = |guard: &&Precondition| {
                    matches!(
                        guard,
                        Precondition::NotAfter(_) | Precondition::NotBefore(_)
                    )
                };
                *index -= batch
                    .preconditions
                    .iter()
                    .take(*index)
                    .filter(is_bound)
                    .count();
            }
            _ => {}
        }
    }

    /// Takes away wakes that the batch has added and should have.
    fn spoil_wakes(&self, batch: &Batch, before: &[Wake]) {
        let resumes = batch
            .writes
            .iter()
            .any(|write| matches!(write, Write::Delete(key) if PauseKey::decode(key).is_ok()));
        let sound = batch
            .writes
            .iter()
            .any(|write| TimerKey::decode(write.key()).is_ok());
        let damaged = !sound
            && batch
                .writes
                .iter()
                .any(|write| lane_head(write.key()).is_some());
        let forgets = match self.bug {
            Some(Bug::ForgetsPutWake) => sound && !resumes,
            Some(Bug::ForgetsResumeWake) => resumes,
            Some(Bug::IgnoresDamagedKeys) => damaged,
            _ => false,
        };
        if forgets {
            for wake in self
                .inner
                .wakes()
                .iter()
                .filter(|wake| !before.contains(wake))
            {
                self.inner.remove_wake(wake);
            }
        }
    }

    async fn commit(
        &self,
        partition: &Partition,
        mut batch: Batch,
    ) -> Result<BatchOutcome, StoreError> {
        let full = self.inner.bytes() > LIMIT_BYTES - 100_000;
        if self.has(Bug::RefusesDeletesWhenFull) && full && !batch.writes.is_empty() {
            return Err(StoreError::full("even a delete"));
        }
        if self.has(Bug::ShortKeys) && batch.writes.iter().any(|write| write.key().len() == 1_024) {
            return Err(StoreError::invalid("a key of 1,024 bytes"));
        }
        self.spoil_batch(&mut batch);
        let before = self.inner.wakes();
        let mut outcome = self.inner.apply(partition, batch.clone()).await?;
        if self.has(Bug::WritesLosers) && !outcome.is_committed() {
            let writes = Batch {
                writes: batch.writes.clone(),
                ..Batch::default()
            };
            let _written = self.inner.apply(partition, writes).await?;
        }
        self.spoil_outcome(&batch, &mut outcome);
        self.spoil_wakes(&batch, &before);
        Ok(outcome)
    }

    async fn settle(&self, partition: &Partition, group: &Group, done: &mut GroupOutcome) {
        let mut settles = group.settles.clone();
        for settle in &mut settles {
            if self.has(Bug::KeepsServedWakes) {
                settle.served_ms.clear();
            }
        }
        let answer = self
            .inner
            .apply_all(
                partition,
                Group {
                    batches: vec![],
                    settles,
                },
            )
            .await;
        done.next_wakes_ms = answer.next_wakes_ms;
        if self.has(Bug::TakesEveryWake) {
            for wake in self.inner.wakes() {
                self.inner.remove_wake(&wake);
            }
        }
    }
}

impl ReadStore for Broken {
    fn get<'a>(
        &'a self,
        partition: &'a Partition,
        key: &'a Key,
    ) -> BoxFuture<'a, Result<Option<Value>, StoreError>> {
        Box::pin(async move { self.inner.get(&self.place(partition), key).await })
    }

    fn get_many<'a>(
        &'a self,
        partition: &'a Partition,
        keys: &'a [Key],
    ) -> BoxFuture<'a, Result<Vec<Option<Value>>, StoreError>> {
        Box::pin(async move {
            let mut keys = keys.to_vec();
            if self.has(Bug::SortsGetMany) {
                keys.sort_unstable();
            }
            self.inner.get_many(&self.place(partition), &keys).await
        })
    }

    fn scan<'a>(
        &'a self,
        partition: &'a Partition,
        range: &'a ScanRange,
    ) -> BoxFuture<'a, Result<ScanPage, StoreError>> {
        Box::pin(async move {
            let mut range = range.clone();
            if self.has(Bug::AcceptsLimitZero) {
                range.limit = range.limit.max(1);
            }
            if self.has(Bug::RepeatsCursorRow)
                && let Some(cursor) = range.after.take()
            {
                range.start = cursor.position().clone();
            }
            let mut page = self.inner.scan(&self.place(partition), &range).await?;
            if self.has(Bug::LosesCursor) {
                page.next = None;
            }
            if self.has(Bug::CursorOnLastPage) && page.rows.len() == range.limit {
                let last = page.rows.last().map(|(key, _)| key.clone());
                page.next = last.map(dueline::store::Cursor::behind);
            }
            Ok(page)
        })
    }
}

impl NamespaceStore for Broken {
    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    fn apply<'a>(
        &'a self,
        partition: &'a Partition,
        batch: Batch,
    ) -> BoxFuture<'a, Result<BatchOutcome, StoreError>> {
        Box::pin(async move { self.commit(&self.place(partition), batch).await })
    }

    fn apply_all<'a>(
        &'a self,
        partition: &'a Partition,
        group: Group,
    ) -> BoxFuture<'a, GroupOutcome> {
        Box::pin(async move {
            let partition = self.place(partition);
            let mut done = GroupOutcome::default();
            if self.has(Bug::SettlesFirst) {
                self.settle(&partition, &group, &mut done).await;
            }
            for batch in group.batches.clone() {
                match self.commit(&partition, batch).await {
                    Ok(outcome) => {
                        let stops = !outcome.is_committed() && !self.has(Bug::GroupGoesOn);
                        done.outcomes.push(outcome);
                        if stops {
                            break;
                        }
                    }
                    Err(error) => {
                        done.stopped_by = Some(error);
                        break;
                    }
                }
            }
            let lost = done.outcomes.iter().any(|outcome| !outcome.is_committed());
            let settles = match self.bug {
                Some(Bug::SettlesFirst) => false,
                Some(Bug::LoserSkipsSettles) if lost => false,
                Some(Bug::SettlesBehindErrors) => true,
                _ => done.stopped_by.is_none(),
            };
            if settles {
                self.settle(&partition, &group, &mut done).await;
            }
            done
        })
    }

    fn stats<'a>(
        &'a self,
        partition: &'a Partition,
    ) -> BoxFuture<'a, Result<PartitionStats, StoreError>> {
        self.inner.stats(partition)
    }

    fn probe(&self) -> BoxFuture<'_, Result<u64, StoreError>> {
        self.inner.probe()
    }
}

impl WakeStore for Broken {
    fn due_wakes<'a>(
        &'a self,
        kinds: &'a KindSet,
        until_ms: u64,
        after: Option<&'a WakeCursor>,
        limit: usize,
    ) -> BoxFuture<'a, Result<WakePage, StoreError>> {
        Box::pin(async move {
            let kinds = if self.has(Bug::IgnoresKinds) {
                KindSet::all()
            } else {
                *kinds
            };
            let until_ms = until_ms.saturating_sub(u64::from(self.has(Bug::ExcludesUntil)));
            let limit = limit.max(usize::from(self.has(Bug::AcceptsLimitZero)));
            let mut page = self.inner.due_wakes(&kinds, until_ms, after, limit).await?;
            if self.has(Bug::LosesCursor) {
                page.next = None;
            }
            Ok(page)
        })
    }

    fn partitions<'a>(
        &'a self,
        after: Option<&'a Partition>,
        limit: usize,
    ) -> BoxFuture<'a, Result<PartitionPage, StoreError>> {
        Box::pin(async move {
            let mut page = self.inner.partitions(after, limit).await?;
            if self.has(Bug::RepeatsPartition)
                && let Some(after) = after
            {
                page.partitions.insert(0, after.clone());
                page.partitions.truncate(limit);
            }
            Ok(page)
        })
    }

    fn audit_wakes<'a>(
        &'a self,
        after: Option<&'a Partition>,
        limit: usize,
    ) -> BoxFuture<'a, Result<AuditPage, StoreError>> {
        Box::pin(async move {
            if self.has(Bug::IdleAudit) {
                let page = self.inner.partitions(after, limit).await?;
                let (partitions, next) = (page.partitions.len(), page.next);
                return Ok(AuditPage {
                    partitions,
                    repairs: vec![],
                    next,
                });
            }
            self.inner.audit_wakes(after, limit).await
        })
    }
}
