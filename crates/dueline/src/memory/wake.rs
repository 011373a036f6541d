use super::{MemoryStore, check_page_limit};
use crate::future::BoxFuture;
use crate::limits::SCAN_PAGE_ROWS_MAX;
use crate::store::{
    AuditPage, Partition, PartitionPage, StoreError, WakeCursor, WakePage, WakeRepair, WakeStore,
};
use crate::timers::KindSet;

impl WakeStore for MemoryStore {
    fn due_wakes<'a>(
        &'a self,
        kinds: &'a KindSet,
        until_ms: u64,
        after: Option<&'a WakeCursor>,
        limit: usize,
    ) -> BoxFuture<'a, Result<WakePage, StoreError>> {
        Box::pin(async move {
            check_page_limit(limit)?;
            let limit = limit.min(SCAN_PAGE_ROWS_MAX);
            let mut wakes = self.lock().wakes.due(kinds, until_ms, after, limit + 1);
            let more = wakes.len() > limit;
            wakes.truncate(limit);
            let next = wakes
                .last()
                .filter(|_| more)
                .cloned()
                .map(WakeCursor::behind);
            Ok(WakePage { wakes, next })
        })
    }

    fn partitions<'a>(
        &'a self,
        after: Option<&'a Partition>,
        limit: usize,
    ) -> BoxFuture<'a, Result<PartitionPage, StoreError>> {
        Box::pin(async move {
            check_page_limit(limit)?;
            let (partitions, more) = self.lock().partitions(after, limit);
            let next = partitions.last().filter(|_| more).cloned();
            Ok(PartitionPage { partitions, next })
        })
    }

    fn audit_wakes<'a>(
        &'a self,
        after: Option<&'a Partition>,
        limit: usize,
    ) -> BoxFuture<'a, Result<AuditPage, StoreError>> {
        Box::pin(async move {
            check_page_limit(limit)?;
            let mut state = self.lock();
            let now_ms = self.now().or_zero();
            let (partitions, more) = state.partitions(after, limit);
            let mut repairs = Vec::new();
            for partition in &partitions {
                for kind in state.lanes(partition) {
                    if let Some(at_ms) = state.lane_wants_ms(partition, kind, now_ms)
                        && state.wakes.arm(partition, kind, at_ms)
                    {
                        repairs.push(WakeRepair {
                            partition: partition.clone(),
                            kind,
                            at_ms,
                        });
                    }
                }
            }
            let next = partitions.last().filter(|_| more).cloned();
            Ok(AuditPage {
                partitions: partitions.len(),
                repairs,
                next,
            })
        })
    }
}
