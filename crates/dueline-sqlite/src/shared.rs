use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError, Weak};

use dueline::sql::{OrphanWake, Reads};
use dueline::store::{AuditPage, Group, GroupOutcome, Partition, StoreError};

use crate::counters::Counting;
use crate::foreign::guarded;
use crate::gate::Gate;
use crate::inbox::Inbox;
use crate::lock::{FileLock, beside};
use crate::oneshot::Answer;
use crate::open::WriteSide;
use crate::options::Options;
use crate::read_session::{ReadSession, SharedSession, locked};

/// Most applies that wait in memory; a caller beyond them waits for room.
const WRITES_QUEUED_MAX: usize = 1_024;
/// Most reads of asynchronous callers that wait in memory.
const READS_QUEUED_MAX: usize = 1_024;
/// Most wakes without a partition that wait to be purged.
const ORPHANS_MAX: usize = 4_096;

/// What the writer is asked to do.
pub(crate) enum Work {
    Group(GroupWork),
    Audit(AuditWork),
}

pub(crate) struct GroupWork {
    pub(crate) partition: Partition,
    pub(crate) group: Group,
    pub(crate) answer: Answer<GroupOutcome>,
}

pub(crate) struct AuditWork {
    pub(crate) after: Option<Partition>,
    pub(crate) limit: usize,
    pub(crate) answer: Answer<Result<AuditPage, StoreError>>,
}

/// Sends an answer. Kept apart from the work so that it happens with no lock held: the future that
/// is woken may run, or drop, anything.
pub(crate) type Reply = Box<dyn FnOnce() + Send>;

/// Sends answers.
pub(crate) fn send(replies: Vec<Reply>) {
    for reply in replies {
        guarded("answering", reply);
    }
}

/// A read of an asynchronous caller.
pub(crate) type ReadJob = Box<dyn FnOnce(Result<Reads<'_>, StoreError>) -> Reply + Send>;

/// What the handles and the threads of a store share.
pub(crate) struct Shared {
    /// Tells this store from others in what a thread keeps.
    pub(crate) id: u64,
    pub(crate) path: PathBuf,
    pub(crate) options: Options,
    pub(crate) unclean_opened_at_ms: Option<u64>,
    pub(crate) gate: Gate,
    pub(crate) counting: Counting,
    pub(crate) writes: Inbox<Work>,
    pub(crate) reads: Inbox<ReadJob>,
    /// `None` while the store is failed or closed. Whoever holds it commits.
    write_side: Mutex<Option<WriteSide>>,
    sessions: Mutex<Vec<Weak<Mutex<ReadSession>>>>,
    orphans: Mutex<Vec<OrphanWake>>,
    lock: Mutex<Option<FileLock>>,
    #[cfg(test)]
    pub(crate) faults: crate::faults::Faults,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

impl Shared {
    pub(crate) fn new(
        path: PathBuf,
        options: Options,
        lock: FileLock,
        side: WriteSide,
        unclean_opened_at_ms: Option<u64>,
    ) -> Self {
        static NEXT_ID: AtomicU64 = AtomicU64::new(0);
        Self {
            id: NEXT_ID.fetch_add(1, Ordering::Relaxed),
            path,
            options,
            unclean_opened_at_ms,
            gate: Gate::new(),
            counting: Counting::default(),
            writes: Inbox::new(WRITES_QUEUED_MAX),
            reads: Inbox::new(READS_QUEUED_MAX),
            write_side: Mutex::new(Some(side)),
            sessions: Mutex::new(Vec::new()),
            orphans: Mutex::new(Vec::new()),
            lock: Mutex::new(Some(lock)),
            #[cfg(test)]
            faults: crate::faults::Faults::default(),
        }
    }

    pub(crate) fn locked_write_side(&self) -> MutexGuard<'_, Option<WriteSide>> {
        self.write_side
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// The write connection, if nobody holds it.
    pub(crate) fn try_write_side(&self) -> Option<MutexGuard<'_, Option<WriteSide>>> {
        match self.write_side.try_lock() {
            Ok(side) => Some(side),
            // A panic under the lock left nothing half done: the next transaction rolls back.
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// A session for the calling thread, known to the store so that it can be closed.
    pub(crate) fn new_session(&self) -> SharedSession {
        let session = SharedSession::default();
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        sessions.retain(|known| known.strong_count() > 0);
        sessions.push(Arc::downgrade(&session));
        session
    }

    fn live_sessions(&self) -> Vec<SharedSession> {
        let sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        sessions.iter().filter_map(Weak::upgrade).collect()
    }

    /// Closes every read connection; those of a failed store are opened again by the next read.
    pub(crate) fn close_sessions(&self) {
        self.live_sessions()
            .iter()
            .for_each(|session| locked(session).close());
    }

    /// Closes every read connection for good.
    pub(crate) fn retire_sessions(&self) {
        self.live_sessions()
            .iter()
            .for_each(|session| locked(session).retire());
    }

    /// Keeps wakes without a partition for the next transaction.
    pub(crate) fn note_orphans(&self, found: Vec<OrphanWake>) {
        if !found.is_empty() {
            let mut orphans = self.orphans.lock().unwrap_or_else(PoisonError::into_inner);
            orphans.extend(found);
            orphans.truncate(ORPHANS_MAX);
        }
    }

    pub(crate) fn take_orphans(&self) -> Vec<OrphanWake> {
        std::mem::take(&mut *self.orphans.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Lets another store open the file.
    pub(crate) fn release_lock(&self) {
        self.lock
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
    }

    /// Bytes of the log's file; 0 if there is none.
    pub(crate) fn log_bytes(&self) -> u64 {
        let log = beside(&self.path, "-wal");
        fs::metadata(log).map_or(0, |metadata| metadata.len())
    }
}
