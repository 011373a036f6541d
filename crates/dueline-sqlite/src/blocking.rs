use std::cell::RefCell;
use std::sync::Arc;

use dueline::BoxFuture;
use dueline::sql::Reads;
use dueline::store::{
    AuditPage, Batch, BatchOutcome, Capabilities, Group, GroupOutcome, Key, NamespaceStore,
    Partition, PartitionPage, PartitionStats, ReadStore, ScanPage, ScanRange, StoreError, Value,
    WakeCursor, WakePage, WakeStore,
};
use dueline::timers::KindSet;

use crate::foreign::guarded;
use crate::inbox::Push;
use crate::read_session::{SharedSession, locked};
use crate::send::{send_audit, send_batch, send_group};
use crate::shared::Shared;
use crate::store::Owner;

/// The handle for threads that may block.
///
/// Reads run where they are polled, on a connection of the thread's own, in one read transaction
/// from the first read to the next apply, [`end_reads`](WakeStore::end_reads) or
/// [`before_park`](WakeStore::before_park). Applies queue; `before_park` commits them, and whatever else waits, if nobody else is committing. A thread that
/// never calls it is served by the writer thread, some milliseconds later.
#[derive(Debug)]
pub(crate) struct BlockingStore {
    owner: Arc<Owner>,
}

thread_local! {
    /// The sessions of this thread, by the store they belong to.
    static SESSIONS: RefCell<Vec<(u64, SharedSession)>> = const { RefCell::new(Vec::new()) };
}

/// The session of this thread, made at the first call. A thread that is ending gets a new one.
fn session(shared: &Shared) -> SharedSession {
    let known = SESSIONS.try_with(|sessions| {
        let mut sessions = sessions.borrow_mut();
        if let Some((_, session)) = sessions.iter().find(|(id, _)| *id == shared.id) {
            return Arc::clone(session);
        }
        sessions.retain(|(_, session)| !locked(session).is_retired());
        let session = shared.new_session();
        sessions.push((shared.id, Arc::clone(&session)));
        session
    });
    known.unwrap_or_else(|_| shared.new_session())
}

impl BlockingStore {
    pub(crate) fn new(owner: Arc<Owner>) -> Self {
        Self { owner }
    }

    fn shared(&self) -> &Shared {
        &self.owner.shared
    }

    fn read<'a, T: Send + 'a>(
        &'a self,
        read: impl FnOnce(Reads<'_>) -> Result<T, StoreError> + Send + 'a,
    ) -> BoxFuture<'a, Result<T, StoreError>> {
        Box::pin(async move {
            let session = session(self.shared());
            locked(&session).read(self.shared(), read)
        })
    }
}

impl ReadStore for BlockingStore {
    fn get<'a>(
        &'a self,
        partition: &'a Partition,
        key: &'a Key,
    ) -> BoxFuture<'a, Result<Option<Value>, StoreError>> {
        self.read(move |reads| reads.get(partition, key))
    }

    fn get_many<'a>(
        &'a self,
        partition: &'a Partition,
        keys: &'a [Key],
    ) -> BoxFuture<'a, Result<Vec<Option<Value>>, StoreError>> {
        self.read(move |reads| reads.get_many(partition, keys))
    }

    fn scan<'a>(
        &'a self,
        partition: &'a Partition,
        range: &'a ScanRange,
    ) -> BoxFuture<'a, Result<ScanPage, StoreError>> {
        self.read(move |reads| reads.scan(partition, range))
    }

    fn scan_many<'a>(
        &'a self,
        partition: &'a Partition,
        ranges: &'a [ScanRange],
    ) -> BoxFuture<'a, Result<Vec<ScanPage>, StoreError>> {
        self.read(move |reads| reads.scan_many(partition, ranges))
    }
}

impl NamespaceStore for BlockingStore {
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
            self.end_reads();
            let done = send_batch(self.shared(), partition, batch, Push::Lazy).await;
            self.end_reads();
            done
        })
    }

    fn apply_all<'a>(
        &'a self,
        partition: &'a Partition,
        group: Group,
    ) -> BoxFuture<'a, GroupOutcome> {
        Box::pin(async move {
            self.end_reads();
            let done = send_group(self.shared(), partition, group, Push::Lazy).await;
            self.end_reads();
            done
        })
    }

    fn is_contended(&self) -> bool {
        !self.shared().writes.is_empty()
    }

    fn stats<'a>(
        &'a self,
        partition: &'a Partition,
    ) -> BoxFuture<'a, Result<PartitionStats, StoreError>> {
        self.read(move |reads| reads.stats(partition))
    }

    fn probe(&self) -> BoxFuture<'_, Result<u64, StoreError>> {
        self.read(move |reads| {
            reads.probe()?;
            Ok(u64::try_from(self.shared().options.clock.wall_ms()).unwrap_or(0))
        })
    }
}

impl WakeStore for BlockingStore {
    fn due_wakes<'a>(
        &'a self,
        kinds: &'a KindSet,
        until_ms: u64,
        after: Option<&'a WakeCursor>,
        limit: usize,
    ) -> BoxFuture<'a, Result<WakePage, StoreError>> {
        self.read(move |reads| {
            let due = reads.due_wakes(kinds, until_ms, after, limit)?;
            self.shared().note_orphans(due.orphans);
            Ok(due.page)
        })
    }

    fn partitions<'a>(
        &'a self,
        after: Option<&'a Partition>,
        limit: usize,
    ) -> BoxFuture<'a, Result<PartitionPage, StoreError>> {
        self.read(move |reads| reads.partitions(after, limit))
    }

    fn audit_wakes<'a>(
        &'a self,
        after: Option<&'a Partition>,
        limit: usize,
    ) -> BoxFuture<'a, Result<AuditPage, StoreError>> {
        Box::pin(async move {
            self.end_reads();
            let done = send_audit(self.shared(), after, limit, Push::Lazy).await;
            self.end_reads();
            done
        })
    }

    fn unclean_opened_at_ms(&self) -> Option<u64> {
        self.shared().unclean_opened_at_ms
    }

    /// Ends this thread's read transaction: also before a write is sent, because a commit must not
    /// find it open, and after it has come back, because the thread must see it.
    fn end_reads(&self) {
        locked(&session(self.shared())).end();
    }

    fn before_park(&self) {
        self.end_reads();
        guarded("committing", || self.shared().run_if_free());
    }
}
