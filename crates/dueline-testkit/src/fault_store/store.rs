use dueline::BoxFuture;
use dueline::store::{
    AuditPage, Batch, BatchOutcome, Capabilities, Group, GroupOutcome, Key, NamespaceStore,
    Partition, PartitionPage, PartitionStats, ReadStore, ScanPage, ScanRange, StoreError,
    StoreErrorKind, Value, WakeCursor, WakePage, WakeSettle, WakeStore,
};
use dueline::timers::KindSet;

use super::plan::{injected, with};
use super::{CallCounts, CommitFault, FaultStore, ReadCall};

impl FaultStore {
    fn begin_read(&self, call: ReadCall) -> Result<(), StoreError> {
        let mut plan = self.plan();
        plan.count_read(call);
        let number = plan.reads;
        let planned = plan.read_faults.remove(&number);
        let decide = plan.decide_read.clone();
        drop(plan);
        let kind = planned.or_else(|| decide.and_then(|it| with(&it, |decide| decide(call))));
        kind.map_or(Ok(()), |kind| Err(injected(kind)))
    }

    /// Counts a commit, shows it, runs what races it, and says how it is to fail.
    fn begin_commit(
        &self,
        count: impl FnOnce(&mut CallCounts),
        partition: &Partition,
        group: &Group,
    ) -> Option<CommitFault> {
        let mut plan = self.plan();
        count(&mut plan.counts);
        plan.counts.batches += group.batches.len() as u64;
        plan.counts.settles += group.settles.len() as u64;
        plan.commits += 1;
        let number = plan.commits;
        let planned = plan.commit_faults.remove(&number);
        let races = plan.races.remove(&number).unwrap_or_default();
        let (watch, decide) = (plan.watch.clone(), plan.decide_commit.clone());
        drop(plan);
        if let Some(watch) = watch {
            with(&watch, |watch| watch(partition, group));
        }
        for race in races {
            race(&*self.inner, partition, group);
        }
        planned.or_else(|| decide.and_then(|it| with(&it, |decide| decide(partition, group))))
    }

    async fn commit(
        &self,
        partition: &Partition,
        mut group: Group,
        fault: Option<CommitFault>,
    ) -> GroupOutcome {
        match fault {
            None => self.asked(self.inner.apply_all(partition, group)).await,
            Some(CommitFault::NotWritten(kind)) => GroupOutcome::stopped(injected(kind)),
            Some(CommitFault::AnswerLost) => {
                let _lost = self.asked(self.inner.apply_all(partition, group)).await;
                GroupOutcome::stopped(injected(StoreErrorKind::Unknown))
            }
            Some(CommitFault::StoppedAfter { batches, kind }) => {
                if group.batches.len() <= batches && group.settles.is_empty() {
                    return self.asked(self.inner.apply_all(partition, group)).await;
                }
                group.batches.truncate(batches);
                group.settles.clear();
                let mut done = self.asked(self.inner.apply_all(partition, group)).await;
                if done.stopped_by.is_none() && done.outcomes.iter().all(BatchOutcome::is_committed)
                {
                    done.stopped_by = Some(injected(kind));
                }
                done
            }
        }
    }
}

impl ReadStore for FaultStore {
    fn get<'a>(
        &'a self,
        partition: &'a Partition,
        key: &'a Key,
    ) -> BoxFuture<'a, Result<Option<Value>, StoreError>> {
        Box::pin(async move {
            self.begin_read(ReadCall::Get)?;
            self.asked(self.inner.get(partition, key)).await
        })
    }

    fn get_many<'a>(
        &'a self,
        partition: &'a Partition,
        keys: &'a [Key],
    ) -> BoxFuture<'a, Result<Vec<Option<Value>>, StoreError>> {
        Box::pin(async move {
            self.begin_read(ReadCall::GetMany)?;
            self.asked(self.inner.get_many(partition, keys)).await
        })
    }

    fn scan<'a>(
        &'a self,
        partition: &'a Partition,
        range: &'a ScanRange,
    ) -> BoxFuture<'a, Result<ScanPage, StoreError>> {
        Box::pin(async move {
            self.begin_read(ReadCall::Scan)?;
            self.asked(self.inner.scan(partition, range)).await
        })
    }

    fn scan_many<'a>(
        &'a self,
        partition: &'a Partition,
        ranges: &'a [ScanRange],
    ) -> BoxFuture<'a, Result<Vec<ScanPage>, StoreError>> {
        Box::pin(async move {
            self.begin_read(ReadCall::ScanMany)?;
            self.asked(self.inner.scan_many(partition, ranges)).await
        })
    }
}

impl NamespaceStore for FaultStore {
    fn capabilities(&self) -> Capabilities {
        let inner = self.inner.capabilities();
        Capabilities {
            shared: self.plan().shared.unwrap_or(inner.shared),
            ..inner
        }
    }

    fn apply<'a>(
        &'a self,
        partition: &'a Partition,
        batch: Batch,
    ) -> BoxFuture<'a, Result<BatchOutcome, StoreError>> {
        Box::pin(async move {
            let mut group = Group::from(vec![batch]);
            let fault = self.begin_commit(|counts| counts.applies += 1, partition, &group);
            if fault.is_none() {
                let batch = group.batches.pop().unwrap_or_default();
                return self.asked(self.inner.apply(partition, batch)).await;
            }
            let done = self.commit(partition, group, fault).await;
            match (done.stopped_by, done.outcomes.into_iter().next()) {
                (Some(error), _) => Err(error),
                (None, Some(outcome)) => Ok(outcome),
                (None, None) => Err(StoreError::unknown("the store inside gave no outcome")),
            }
        })
    }

    fn apply_all<'a>(
        &'a self,
        partition: &'a Partition,
        group: Group,
    ) -> BoxFuture<'a, GroupOutcome> {
        Box::pin(async move {
            let fault = self.begin_commit(|counts| counts.groups += 1, partition, &group);
            self.commit(partition, group, fault).await
        })
    }

    fn is_contended(&self) -> bool {
        self.inner.is_contended()
    }

    fn stats<'a>(
        &'a self,
        partition: &'a Partition,
    ) -> BoxFuture<'a, Result<PartitionStats, StoreError>> {
        Box::pin(async move {
            self.begin_read(ReadCall::Stats)?;
            self.asked(self.inner.stats(partition)).await
        })
    }

    fn probe(&self) -> BoxFuture<'_, Result<u64, StoreError>> {
        Box::pin(async move {
            self.begin_read(ReadCall::Probe)?;
            self.asked(self.inner.probe()).await
        })
    }
}

impl WakeStore for FaultStore {
    fn due_wakes<'a>(
        &'a self,
        kinds: &'a KindSet,
        until_ms: u64,
        after: Option<&'a WakeCursor>,
        limit: usize,
    ) -> BoxFuture<'a, Result<WakePage, StoreError>> {
        Box::pin(async move {
            self.begin_read(ReadCall::DueWakes)?;
            self.asked(self.inner.due_wakes(kinds, until_ms, after, limit))
                .await
        })
    }

    fn settle_wake<'a>(
        &'a self,
        partition: &'a Partition,
        settle: WakeSettle,
    ) -> BoxFuture<'a, Result<Option<u64>, StoreError>> {
        Box::pin(async move {
            let mut group = Group {
                batches: Vec::new(),
                settles: vec![settle],
            };
            let fault = self.begin_commit(|counts| counts.settle_wakes += 1, partition, &group);
            if fault.is_none()
                && let Some(settle) = group.settles.pop()
            {
                return self.asked(self.inner.settle_wake(partition, settle)).await;
            }
            let done = self.commit(partition, group, fault).await;
            match done.stopped_by {
                Some(error) => Err(error),
                None => Ok(done.next_wakes_ms.into_iter().next().flatten()),
            }
        })
    }

    fn partitions<'a>(
        &'a self,
        after: Option<&'a Partition>,
        limit: usize,
    ) -> BoxFuture<'a, Result<PartitionPage, StoreError>> {
        Box::pin(async move {
            self.begin_read(ReadCall::Partitions)?;
            self.asked(self.inner.partitions(after, limit)).await
        })
    }

    fn audit_wakes<'a>(
        &'a self,
        after: Option<&'a Partition>,
        limit: usize,
    ) -> BoxFuture<'a, Result<AuditPage, StoreError>> {
        Box::pin(async move {
            self.begin_read(ReadCall::AuditWakes)?;
            self.asked(self.inner.audit_wakes(after, limit)).await
        })
    }

    fn unclean_opened_at_ms(&self) -> Option<u64> {
        let claimed = self.plan().unclean_opened_at_ms;
        claimed.unwrap_or_else(|| self.inner.unclean_opened_at_ms())
    }

    fn end_reads(&self) {
        self.inner.end_reads();
    }

    fn before_park(&self) {
        self.inner.before_park();
    }
}
