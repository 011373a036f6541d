use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::thread;

use dueline::BoxFuture;
use dueline::store::{
    AuditPage, Batch, BatchOutcome, Capabilities, Group, GroupOutcome, Key, NamespaceStore,
    Partition, PartitionPage, PartitionStats, ReadStore, ScanPage, ScanRange, StoreError,
    StoreErrorKind, Value, WakeCursor, WakePage, WakeSettle, WakeStore,
};
use dueline::timers::KindSet;

use super::earliest::Earliest;
use crate::looks::Looks;
use crate::signal::block_on;
use crate::task_host::TaskHost;

/// What becomes of a commit whose caller stops waiting.
#[derive(Clone, Debug)]
pub(super) enum Abandoned {
    /// It is run to its end, and the driver is told then: by this host, or by the async runtime at
    /// hand or a thread.
    RunsOn(Option<Arc<dyn TaskHost>>),
    /// It is dropped, and the driver is told at once, in case it commits all the same.
    Dropped,
}

/// Passes everything on, and tells the driver of every commit that makes a lane wake.
pub(super) struct Watched {
    inner: Arc<dyn WakeStore>,
    looks: Arc<Looks>,
    abandoned: Abandoned,
}

impl Watched {
    pub(super) fn new(inner: Arc<dyn WakeStore>, looks: Arc<Looks>, abandoned: Abandoned) -> Self {
        Self {
            inner,
            looks,
            abandoned,
        }
    }

    fn commit<T: Send + 'static>(
        &self,
        earliest: Earliest,
        may_have_committed: fn(&T) -> bool,
        commit: BoxFuture<'static, T>,
    ) -> Commit<T> {
        let looks = Arc::clone(&self.looks);
        let told = async move {
            let mut telling = Telling {
                looks,
                earliest: Some(earliest),
            };
            let answer = commit.await;
            if !may_have_committed(&answer) {
                telling.earliest = None;
            }
            answer
        };
        Commit {
            future: Some(Box::pin(told)),
            started: false,
            abandoned: self.abandoned.clone(),
        }
    }
}

/// Tells the driver when it is dropped: behind the commit, or where the commit was cut.
struct Telling {
    looks: Arc<Looks>,
    earliest: Option<Earliest>,
}

impl Drop for Telling {
    fn drop(&mut self) {
        if let Some(earliest) = &self.earliest {
            self.looks.lower(earliest.iter());
            self.looks.resumed(earliest.resumed());
        }
    }
}

/// A commit under way.
struct Commit<T: Send + 'static> {
    future: Option<BoxFuture<'static, T>>,
    started: bool,
    abandoned: Abandoned,
}

impl<T: Send + 'static> Future for Commit<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        self.started = true;
        let Some(future) = &mut self.future else {
            return Poll::Pending;
        };
        let answer = std::task::ready!(future.as_mut().poll(context));
        self.future = None;
        Poll::Ready(answer)
    }
}

impl<T: Send + 'static> Drop for Commit<T> {
    fn drop(&mut self) {
        let Some(rest) = self.future.take() else {
            return;
        };
        let Abandoned::RunsOn(host) = &self.abandoned else {
            return;
        };
        if !self.started {
            return;
        }
        if let Some(host) = host {
            drop(host.spawn(Box::pin(async move { drop(rest.await) })));
            return;
        }
        // Detached on purpose: its caller is gone, and the store bounds how long it takes.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            drop(runtime.spawn(async move { drop(rest.await) }));
        } else {
            // A handler at its deadline, on a thread that ticks. Should there be no thread, the rest
            // is dropped, and the driver told at once.
            let thread = thread::Builder::new().name("dueline-commit".to_owned());
            drop(thread.spawn(move || drop(block_on(rest, &Arc::default()))));
        }
    }
}

fn batch_may_have_committed(answer: &Result<BatchOutcome, StoreError>) -> bool {
    match answer {
        Ok(outcome) => outcome.is_committed(),
        Err(error) => error.kind() == StoreErrorKind::Unknown,
    }
}

fn group_may_have_committed(answer: &GroupOutcome) -> bool {
    let unknown = |error: &StoreError| error.kind() == StoreErrorKind::Unknown;
    answer.committed() > 0 || answer.stopped_by.as_ref().is_some_and(unknown)
}

impl NamespaceStore for Watched {
    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    fn apply<'a>(
        &'a self,
        partition: &'a Partition,
        batch: Batch,
    ) -> BoxFuture<'a, Result<BatchOutcome, StoreError>> {
        let earliest = Earliest::of([&batch]);
        if earliest.is_empty() {
            return self.inner.apply(partition, batch);
        }
        let (inner, partition) = (Arc::clone(&self.inner), partition.clone());
        Box::pin(self.commit(
            earliest,
            batch_may_have_committed,
            Box::pin(async move { inner.apply(&partition, batch).await }),
        ))
    }

    fn apply_all<'a>(
        &'a self,
        partition: &'a Partition,
        group: Group,
    ) -> BoxFuture<'a, GroupOutcome> {
        let earliest = Earliest::of(&group.batches);
        if earliest.is_empty() && group.settles.is_empty() {
            return self.inner.apply_all(partition, group);
        }
        let (inner, partition) = (Arc::clone(&self.inner), partition.clone());
        let looks = Arc::clone(&self.looks);
        let lanes: Vec<_> = group.settles.iter().map(|settle| settle.kind).collect();
        Box::pin(self.commit(
            earliest,
            group_may_have_committed,
            Box::pin(async move {
                let done = inner.apply_all(&partition, group).await;
                looks.settled(lanes.into_iter().zip(done.next_wakes_ms.iter().copied()));
                done
            }),
        ))
    }

    fn is_contended(&self) -> bool {
        self.inner.is_contended()
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

impl ReadStore for Watched {
    fn get<'a>(
        &'a self,
        partition: &'a Partition,
        key: &'a Key,
    ) -> BoxFuture<'a, Result<Option<Value>, StoreError>> {
        self.inner.get(partition, key)
    }

    fn get_many<'a>(
        &'a self,
        partition: &'a Partition,
        keys: &'a [Key],
    ) -> BoxFuture<'a, Result<Vec<Option<Value>>, StoreError>> {
        self.inner.get_many(partition, keys)
    }

    fn scan<'a>(
        &'a self,
        partition: &'a Partition,
        range: &'a ScanRange,
    ) -> BoxFuture<'a, Result<ScanPage, StoreError>> {
        self.inner.scan(partition, range)
    }

    fn scan_many<'a>(
        &'a self,
        partition: &'a Partition,
        ranges: &'a [ScanRange],
    ) -> BoxFuture<'a, Result<Vec<ScanPage>, StoreError>> {
        self.inner.scan_many(partition, ranges)
    }
}

impl WakeStore for Watched {
    fn due_wakes<'a>(
        &'a self,
        kinds: &'a KindSet,
        until_ms: u64,
        after: Option<&'a WakeCursor>,
        limit: usize,
    ) -> BoxFuture<'a, Result<WakePage, StoreError>> {
        self.inner.due_wakes(kinds, until_ms, after, limit)
    }

    fn settle_wake<'a>(
        &'a self,
        partition: &'a Partition,
        settle: WakeSettle,
    ) -> BoxFuture<'a, Result<Option<u64>, StoreError>> {
        let kind = settle.kind;
        Box::pin(async move {
            let next_ms = self.inner.settle_wake(partition, settle).await?;
            self.looks.settled([(kind, next_ms)].into_iter());
            Ok(next_ms)
        })
    }

    fn partitions<'a>(
        &'a self,
        after: Option<&'a Partition>,
        limit: usize,
    ) -> BoxFuture<'a, Result<PartitionPage, StoreError>> {
        self.inner.partitions(after, limit)
    }

    fn audit_wakes<'a>(
        &'a self,
        after: Option<&'a Partition>,
        limit: usize,
    ) -> BoxFuture<'a, Result<AuditPage, StoreError>> {
        self.inner.audit_wakes(after, limit)
    }

    fn unclean_opened_at_ms(&self) -> Option<u64> {
        self.inner.unclean_opened_at_ms()
    }

    fn for_blocking_threads(&self) -> Option<Arc<dyn WakeStore>> {
        self.inner.for_blocking_threads().map(|inner| {
            let watched = Self::new(inner, Arc::clone(&self.looks), Abandoned::Dropped);
            let store: Arc<dyn WakeStore> = Arc::new(watched);
            store
        })
    }

    fn end_reads(&self) {
        self.inner.end_reads();
    }

    fn before_park(&self) {
        self.inner.before_park();
    }
}

impl fmt::Debug for Watched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watched")
            .field("inner", &self.inner)
            .finish_non_exhaustive()
    }
}
