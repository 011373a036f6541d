use std::fmt;
use std::future::{pending, poll_fn};
use std::sync::Arc;
use std::task::Poll;

use dueline::BoxFuture;
use dueline::store::{
    AuditPage, Batch, BatchOutcome, Capabilities, Cursor, Group, GroupOutcome, Key, NamespaceStore,
    Partition, PartitionPage, PartitionStats, ReadStore, ScanPage, ScanRange, StoreError,
    StoreErrorKind, Value, WakeCursor, WakePage, WakeStore,
};
use dueline::timers::KindSet;

use super::arena::{Caller, injected};
use super::{Arena, Mishap};

/// One actor's handle of an [`Arena`]: gives way before and after every call, meets its mishaps,
/// and shows its commits to the ledger.
pub struct ActorStore {
    arena: Arc<Arena>,
    caller: Caller,
}

impl ActorStore {
    pub(super) fn new(arena: Arc<Arena>, caller: Caller) -> Self {
        Self { arena, caller }
    }

    async fn read<T>(&self, read: BoxFuture<'_, Result<T, StoreError>>) -> Result<T, StoreError> {
        give_way().await;
        match self.arena.next_mishap() {
            None => {}
            Some(Mishap::CrashBefore | Mishap::CrashAfter) => pending().await,
            Some(_) => return Err(injected(StoreErrorKind::Unavailable)),
        }
        let answer = read.await;
        give_way().await;
        answer
    }

    fn shorten(&self, mut page: ScanPage) -> ScanPage {
        let served = self.arena.served(page.rows.len());
        if served < page.rows.len() {
            page.rows.truncate(served);
            page.next = page.rows.last().map(|(key, _)| Cursor::behind(key.clone()));
        }
        page
    }

    /// Lets the batches before the one that is hit commit, and the mishap befall the rest.
    async fn commit(&self, partition: &Partition, mut group: Group) -> GroupOutcome {
        give_way().await;
        let Some(mishap) = self.arena.next_mishap() else {
            let done = self.arena.commit(self.caller, partition, group);
            give_way().await;
            return done;
        };
        if mishap == Mishap::CrashAfter {
            let _unheard = self.arena.commit(self.caller, partition, group);
            return pending().await;
        }
        let hit = self.arena.spared(group.batches.len());
        let rest = Group {
            batches: group.batches.split_off(hit),
            settles: std::mem::take(&mut group.settles),
        };
        let mut done = self.arena.commit(self.caller, partition, group);
        if done.committed() < hit {
            // An earlier batch lost: the group ended before the mishap could hit it.
            let settles = Group {
                batches: Vec::new(),
                settles: rest.settles,
            };
            done.next_wakes_ms = self
                .arena
                .commit(self.caller, partition, settles)
                .next_wakes_ms;
            return done;
        }
        let kind = match mishap {
            Mishap::Unavailable => StoreErrorKind::Unavailable,
            Mishap::Full => StoreErrorKind::Full,
            Mishap::UnknownNotWritten => StoreErrorKind::Unknown,
            Mishap::UnknownWritten => {
                let _unheard = self.arena.commit(self.caller, partition, rest);
                StoreErrorKind::Unknown
            }
            Mishap::UnknownLate => {
                self.arena.put_off(self.caller, partition, rest);
                StoreErrorKind::Unknown
            }
            Mishap::CrashBefore | Mishap::CrashAfter => pending().await,
        };
        done.stopped_by = Some(injected(kind));
        done.next_wakes_ms = Vec::new();
        give_way().await;
        done
    }
}

/// Lets every other task have a step.
async fn give_way() {
    let mut given = false;
    poll_fn(|context| {
        if given {
            return Poll::Ready(());
        }
        given = true;
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

impl ReadStore for ActorStore {
    fn get<'a>(
        &'a self,
        partition: &'a Partition,
        key: &'a Key,
    ) -> BoxFuture<'a, Result<Option<Value>, StoreError>> {
        Box::pin(self.read(self.arena.memory.get(partition, key)))
    }

    fn get_many<'a>(
        &'a self,
        partition: &'a Partition,
        keys: &'a [Key],
    ) -> BoxFuture<'a, Result<Vec<Option<Value>>, StoreError>> {
        Box::pin(self.read(self.arena.memory.get_many(partition, keys)))
    }

    fn scan<'a>(
        &'a self,
        partition: &'a Partition,
        range: &'a ScanRange,
    ) -> BoxFuture<'a, Result<ScanPage, StoreError>> {
        Box::pin(async move {
            let page = self.read(self.arena.memory.scan(partition, range)).await?;
            Ok(self.shorten(page))
        })
    }

    fn scan_many<'a>(
        &'a self,
        partition: &'a Partition,
        ranges: &'a [ScanRange],
    ) -> BoxFuture<'a, Result<Vec<ScanPage>, StoreError>> {
        Box::pin(async move {
            let pages = self.read(self.arena.memory.scan_many(partition, ranges));
            let mut pages = pages.await?;
            pages.truncate(self.arena.served(pages.len()));
            Ok(pages.into_iter().map(|page| self.shorten(page)).collect())
        })
    }
}

impl NamespaceStore for ActorStore {
    fn capabilities(&self) -> Capabilities {
        self.arena.memory.capabilities()
    }

    fn apply<'a>(
        &'a self,
        partition: &'a Partition,
        batch: Batch,
    ) -> BoxFuture<'a, Result<BatchOutcome, StoreError>> {
        Box::pin(async move {
            let done = self.commit(partition, Group::from(vec![batch])).await;
            match (done.outcomes.into_iter().next(), done.stopped_by) {
                (_, Some(error)) => Err(error),
                (Some(outcome), None) => Ok(outcome),
                (None, None) => Err(StoreError::corrupt("no outcome")),
            }
        })
    }

    fn apply_all<'a>(
        &'a self,
        partition: &'a Partition,
        group: Group,
    ) -> BoxFuture<'a, GroupOutcome> {
        Box::pin(self.commit(partition, group))
    }

    fn stats<'a>(
        &'a self,
        partition: &'a Partition,
    ) -> BoxFuture<'a, Result<PartitionStats, StoreError>> {
        self.arena.memory.stats(partition)
    }

    fn probe(&self) -> BoxFuture<'_, Result<u64, StoreError>> {
        self.arena.memory.probe()
    }
}

impl WakeStore for ActorStore {
    fn due_wakes<'a>(
        &'a self,
        kinds: &'a KindSet,
        until_ms: u64,
        after: Option<&'a WakeCursor>,
        limit: usize,
    ) -> BoxFuture<'a, Result<WakePage, StoreError>> {
        Box::pin(self.read(self.arena.memory.due_wakes(kinds, until_ms, after, limit)))
    }

    fn partitions<'a>(
        &'a self,
        after: Option<&'a Partition>,
        limit: usize,
    ) -> BoxFuture<'a, Result<PartitionPage, StoreError>> {
        self.arena.memory.partitions(after, limit)
    }

    fn audit_wakes<'a>(
        &'a self,
        after: Option<&'a Partition>,
        limit: usize,
    ) -> BoxFuture<'a, Result<AuditPage, StoreError>> {
        self.arena.memory.audit_wakes(after, limit)
    }
}

impl fmt::Debug for ActorStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ActorStore")
            .field("caller", &self.caller)
            .finish_non_exhaustive()
    }
}
