use std::future::ready;

use dueline::BoxFuture;
use dueline::store::{
    AuditPage, Batch, BatchOutcome, Capabilities, Group, GroupOutcome, Key, NamespaceStore,
    Partition, PartitionPage, PartitionStats, ReadStore, ScanPage, ScanRange, StoreError, Value,
    WakeCursor, WakePage, WakeStore, validate_batch,
};
use dueline::timers::KindSet;

use super::ObjectStore;
use super::commit::Stays;

impl ReadStore for ObjectStore {
    fn get<'a>(
        &'a self,
        partition: &'a Partition,
        key: &'a Key,
    ) -> BoxFuture<'a, Result<Option<Value>, StoreError>> {
        Box::pin(async move { self.read(|reads| reads.get(partition, key)) })
    }

    fn get_many<'a>(
        &'a self,
        partition: &'a Partition,
        keys: &'a [Key],
    ) -> BoxFuture<'a, Result<Vec<Option<Value>>, StoreError>> {
        Box::pin(async move { self.read(|reads| reads.get_many(partition, keys)) })
    }

    fn scan<'a>(
        &'a self,
        partition: &'a Partition,
        range: &'a ScanRange,
    ) -> BoxFuture<'a, Result<ScanPage, StoreError>> {
        Box::pin(async move { self.read(|reads| reads.scan(partition, range)) })
    }

    fn scan_many<'a>(
        &'a self,
        partition: &'a Partition,
        ranges: &'a [ScanRange],
    ) -> BoxFuture<'a, Result<Vec<ScanPage>, StoreError>> {
        Box::pin(async move { self.read(|reads| reads.scan_many(partition, ranges)) })
    }
}

impl NamespaceStore for ObjectStore {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            wakes: true,
            shared: false,
        }
    }

    fn apply<'a>(
        &'a self,
        partition: &'a Partition,
        batch: Batch,
    ) -> BoxFuture<'a, Result<BatchOutcome, StoreError>> {
        Box::pin(async move {
            validate_batch(&batch)?;
            let group = Group::from(vec![batch]);
            let done = self.write(partition, group, Stays::Front).await;
            match (done.outcomes.into_iter().next(), done.stopped_by) {
                (Some(outcome), _) => Ok(outcome),
                (None, Some(error)) => Err(error),
                (None, None) => Err(StoreError::corrupt("a batch came back without an outcome")),
            }
        })
    }

    fn apply_all<'a>(
        &'a self,
        partition: &'a Partition,
        group: Group,
    ) -> BoxFuture<'a, GroupOutcome> {
        Box::pin(self.write(partition, group, Stays::Front))
    }

    fn stats<'a>(
        &'a self,
        partition: &'a Partition,
    ) -> BoxFuture<'a, Result<PartitionStats, StoreError>> {
        Box::pin(async move { self.read(|reads| reads.stats(partition)) })
    }

    fn probe(&self) -> BoxFuture<'_, Result<u64, StoreError>> {
        let mut now_ms = 0;
        let probed = self.storage.read(&mut |conn| {
            now_ms = u64::try_from(conn.now_ms()).unwrap_or(0);
            dueline::sql::Reads::by_name(conn).probe()
        });
        Box::pin(ready(probed.map(|()| now_ms)))
    }
}

impl WakeStore for ObjectStore {
    fn due_wakes<'a>(
        &'a self,
        kinds: &'a KindSet,
        until_ms: u64,
        after: Option<&'a WakeCursor>,
        limit: usize,
    ) -> BoxFuture<'a, Result<WakePage, StoreError>> {
        Box::pin(async move {
            let found = self.read(|reads| reads.due_wakes(kinds, until_ms, after, limit))?;
            self.lock().note_orphans(found.orphans);
            Ok(found.page)
        })
    }

    fn partitions<'a>(
        &'a self,
        after: Option<&'a Partition>,
        limit: usize,
    ) -> BoxFuture<'a, Result<PartitionPage, StoreError>> {
        Box::pin(async move { self.read(|reads| reads.partitions(after, limit)) })
    }

    fn audit_wakes<'a>(
        &'a self,
        after: Option<&'a Partition>,
        limit: usize,
    ) -> BoxFuture<'a, Result<AuditPage, StoreError>> {
        Box::pin(async move {
            let (page, alarm) = self.audit(after, limit)?;
            if let Some(alarm) = alarm
                && let Err(error) = alarm.await
            {
                self.forget_alarm();
                return Err(
                    StoreError::unknown("the alarm of a repair was refused").with_source(error)
                );
            }
            Ok(page)
        })
    }
}
