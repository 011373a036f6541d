use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use dueline::BoxFuture;
use dueline::sql::Reads;
use dueline::store::{
    AuditPage, Batch, BatchOutcome, Capabilities, Group, GroupOutcome, Key, NamespaceStore,
    Partition, PartitionPage, PartitionStats, ReadStore, ScanPage, ScanRange, StoreError, Value,
    WakeCursor, WakePage, WakeStore,
};
use dueline::timers::KindSet;

use crate::backup::backup;
use crate::blocking::BlockingStore;
use crate::counters::Counters;
use crate::error::{BackupError, OpenError, closed, store_error};
use crate::inbox::Push;
use crate::lock::FileLock;
use crate::oneshot::oneshot;
use crate::open::open;
use crate::options::{Durability, Options};
use crate::send::{push, send_audit, send_batch, send_group};
use crate::shared::{ReadJob, Reply, Shared};
use crate::threads::Threads;

/// A store on one SQLite file. Cheap to clone; the file is closed by [`close`](Self::close) or when
/// the last clone, and the last handle of
/// [`for_blocking_threads`](WakeStore::for_blocking_threads), is dropped.
///
/// No call blocks the thread that polls it, except the few that say so; dropping the last handle
/// blocks as `close` does.
#[derive(Clone, Debug)]
pub struct SqliteStore {
    owner: Arc<Owner>,
}

/// Closes the store when the last handle goes.
#[derive(Debug)]
pub(crate) struct Owner {
    pub(crate) shared: Arc<Shared>,
    threads: Mutex<Option<Threads>>,
}

impl Owner {
    fn close(&self) {
        self.shared.writes.close();
        self.shared.reads.close();
        let threads = self
            .threads
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(threads) = threads {
            threads.join();
        }
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        self.close();
    }
}

impl SqliteStore {
    /// Opens the database at this path, creating it if there is none, and locks it against other
    /// writers. Blocks while it does.
    ///
    /// # Errors
    /// [`OpenError`], which says what is wrong with which file.
    pub fn open(path: impl AsRef<Path>, options: Options) -> Result<Self, OpenError> {
        let path = path.as_ref();
        let lock = FileLock::take(path)?;
        let opened = open(path, &options)?;
        let unclean = opened.unclean_opened_at_ms;
        let shared = Arc::new(Shared::new(
            path.to_owned(),
            options,
            lock,
            opened.side,
            unclean,
        ));
        let threads = Threads::start(&shared).map_err(|error| OpenError::Threads {
            path: path.to_owned(),
            source: error,
        })?;
        Ok(Self {
            owner: Arc::new(Owner {
                shared,
                threads: Mutex::new(Some(threads)),
            }),
        })
    }

    /// Finishes what is queued, marks the file as cleanly closed and closes it. Every later call
    /// through any handle is `Unavailable`. Blocks until it is done; a second call does nothing.
    pub fn close(&self) {
        self.owner.close();
    }

    /// Where the database is.
    pub fn path(&self) -> &Path {
        &self.shared().path
    }

    /// What an acknowledged commit survives.
    pub fn durability(&self) -> Durability {
        self.shared().options.durability
    }

    /// What the store has done since it was opened.
    pub fn counters(&self) -> Counters {
        self.shared().counting.show()
    }

    /// Size of the log beside the database, in bytes. It keeps its size while it is in use, about
    /// 16 MiB, and is overwritten in place.
    pub fn log_bytes(&self) -> u64 {
        self.shared().log_bytes()
    }

    /// Moves what the log holds into the database, as far as no reader needs it. The store does
    /// this by itself; call it before copying the file by other means. Blocks.
    ///
    /// # Errors
    /// `Unavailable`, `Full` as SQLite says; nothing is lost.
    pub fn checkpoint(&self) -> Result<(), StoreError> {
        self.shared().checkpoint_now().map_err(store_error)
    }

    /// Writes a compact, consistent copy of the database to a new file while the store is in use.
    /// The file appears at its path only once it is whole and durable. Blocks, for as long as it
    /// takes to read the database; call it from a thread that may.
    ///
    /// # Errors
    /// [`BackupError`]; an existing file is never replaced.
    pub fn backup_to(&self, path: impl AsRef<Path>) -> Result<(), BackupError> {
        backup(self.shared(), path.as_ref())
    }

    /// Opens the file again after a failed commit that could not be settled. The store tries this
    /// by itself, at first after a second, then less often; call it when the cause has been mended.
    /// Blocks. Does nothing if the store has not failed.
    ///
    /// # Errors
    /// `Unavailable` with the cause.
    pub fn reopen(&self) -> Result<(), StoreError> {
        self.shared().reopen()
    }

    pub(crate) fn shared(&self) -> &Shared {
        &self.owner.shared
    }

    /// Has a reader thread read.
    fn read<'a, T: Send + 'static>(
        &'a self,
        read: impl FnOnce(Reads<'_>) -> Result<T, StoreError> + Send + 'static,
    ) -> BoxFuture<'a, Result<T, StoreError>> {
        Box::pin(async move {
            let (answer, awaited) = oneshot();
            let job: ReadJob = Box::new(move |reads| -> Reply {
                let found = reads.and_then(read);
                Box::new(move || answer.send(found))
            });
            if push(&self.shared().reads, job, Push::Eager).await.is_err() {
                return Err(closed());
            }
            awaited.await.unwrap_or_else(|| Err(closed()))
        })
    }
}

impl ReadStore for SqliteStore {
    fn get<'a>(
        &'a self,
        partition: &'a Partition,
        key: &'a Key,
    ) -> BoxFuture<'a, Result<Option<Value>, StoreError>> {
        let (partition, key) = (partition.clone(), key.clone());
        self.read(move |reads| reads.get(&partition, &key))
    }

    fn get_many<'a>(
        &'a self,
        partition: &'a Partition,
        keys: &'a [Key],
    ) -> BoxFuture<'a, Result<Vec<Option<Value>>, StoreError>> {
        let (partition, keys) = (partition.clone(), keys.to_vec());
        self.read(move |reads| reads.get_many(&partition, &keys))
    }

    fn scan<'a>(
        &'a self,
        partition: &'a Partition,
        range: &'a ScanRange,
    ) -> BoxFuture<'a, Result<ScanPage, StoreError>> {
        let (partition, range) = (partition.clone(), range.clone());
        self.read(move |reads| reads.scan(&partition, &range))
    }

    fn scan_many<'a>(
        &'a self,
        partition: &'a Partition,
        ranges: &'a [ScanRange],
    ) -> BoxFuture<'a, Result<Vec<ScanPage>, StoreError>> {
        let (partition, ranges) = (partition.clone(), ranges.to_vec());
        self.read(move |reads| reads.scan_many(&partition, &ranges))
    }
}

impl NamespaceStore for SqliteStore {
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
        Box::pin(send_batch(self.shared(), partition, batch, Push::Eager))
    }

    fn apply_all<'a>(
        &'a self,
        partition: &'a Partition,
        group: Group,
    ) -> BoxFuture<'a, GroupOutcome> {
        Box::pin(send_group(self.shared(), partition, group, Push::Eager))
    }

    fn is_contended(&self) -> bool {
        !self.shared().writes.is_empty()
    }

    fn stats<'a>(
        &'a self,
        partition: &'a Partition,
    ) -> BoxFuture<'a, Result<PartitionStats, StoreError>> {
        let partition = partition.clone();
        self.read(move |reads| reads.stats(&partition))
    }

    fn probe(&self) -> BoxFuture<'_, Result<u64, StoreError>> {
        let clock = Arc::clone(&self.shared().options.clock);
        self.read(move |reads| {
            reads.probe()?;
            Ok(u64::try_from(clock.wall_ms()).unwrap_or(0))
        })
    }
}

impl WakeStore for SqliteStore {
    fn due_wakes<'a>(
        &'a self,
        kinds: &'a KindSet,
        until_ms: u64,
        after: Option<&'a WakeCursor>,
        limit: usize,
    ) -> BoxFuture<'a, Result<WakePage, StoreError>> {
        let (kinds, after) = (*kinds, after.cloned());
        Box::pin(async move {
            let read =
                self.read(move |reads| reads.due_wakes(&kinds, until_ms, after.as_ref(), limit));
            let due = read.await?;
            self.shared().note_orphans(due.orphans);
            Ok(due.page)
        })
    }

    fn partitions<'a>(
        &'a self,
        after: Option<&'a Partition>,
        limit: usize,
    ) -> BoxFuture<'a, Result<PartitionPage, StoreError>> {
        let after = after.cloned();
        self.read(move |reads| reads.partitions(after.as_ref(), limit))
    }

    fn audit_wakes<'a>(
        &'a self,
        after: Option<&'a Partition>,
        limit: usize,
    ) -> BoxFuture<'a, Result<AuditPage, StoreError>> {
        Box::pin(send_audit(self.shared(), after, limit, Push::Eager))
    }

    fn unclean_opened_at_ms(&self) -> Option<u64> {
        self.shared().unclean_opened_at_ms
    }

    fn for_blocking_threads(&self) -> Option<Arc<dyn WakeStore>> {
        Some(Arc::new(BlockingStore::new(Arc::clone(&self.owner))))
    }
}
