//! Commits that end in an I/O error on demand: no real disk does it when a test wants it.
//!
//! The rule under test: the outcome is `Unknown`, nothing is read to anybody before it is settled,
//! and a doubt that cannot be settled closes the store until the file opens again.

use std::collections::VecDeque;
use std::sync::{Arc, Barrier, Mutex};

use rusqlite::ffi;

use crate::open::WriteSide;

/// The faults of the next commits, settling ones included, in the order in which they are to come.
#[derive(Debug, Default)]
pub(crate) struct Faults(Mutex<VecDeque<CommitFault>>);

#[derive(Clone, Debug)]
pub(crate) enum CommitFault {
    /// Nothing arrives in the log.
    Before,
    /// Everything arrives, and the error comes all the same.
    After,
    /// The disk is full, which says for certain that nothing arrived.
    Full,
    /// No fault, but the commit takes from one meeting at the barrier to the next.
    Slow(Arc<Barrier>),
}

impl Faults {
    pub(crate) fn commit(&self, side: &WriteSide) -> rusqlite::Result<()> {
        let fault = self.0.lock().unwrap().pop_front();
        let code = match fault {
            None => return side.backend.control("COMMIT"),
            Some(CommitFault::Slow(barrier)) => {
                barrier.wait();
                barrier.wait();
                return side.backend.control("COMMIT");
            }
            Some(CommitFault::Before) => ffi::SQLITE_IOERR_FSYNC,
            Some(CommitFault::Full) => ffi::SQLITE_FULL,
            Some(CommitFault::After) => {
                side.backend.control("COMMIT")?;
                ffi::SQLITE_IOERR_FSYNC
            }
        };
        Err(rusqlite::Error::SqliteFailure(ffi::Error::new(code), None))
    }
}

mod tests {
    use std::sync::mpsc::{RecvTimeoutError, channel};
    use std::sync::{Arc, Barrier};
    use std::time::Duration;

    use dueline::store::{
        Batch, BatchOutcome, Group, NamespaceStore, Partition, ReadStore, StoreErrorKind, WakeStore,
    };
    use dueline::timers::{KindSet, TimerKind};
    use dueline_testkit::{ManualClock, block_on, partition};

    use super::CommitFault;
    use crate::{Options, SqliteStore};

    fn open(folder: &tempfile::TempDir) -> SqliteStore {
        let options = Options::new(Arc::new(ManualClock::new(1_000)));
        SqliteStore::open(folder.path().join("timers.db"), options).unwrap()
    }

    fn fail(store: &SqliteStore, faults: &[CommitFault]) {
        store
            .shared()
            .faults
            .0
            .lock()
            .unwrap()
            .extend(faults.iter().cloned());
    }

    fn put(store: &dyn NamespaceStore, key: &'static str) -> Result<BatchOutcome, StoreErrorKind> {
        let batch = Batch::new().require_absent(key).put(key, "v");
        block_on(store.apply(&home(), batch)).map_err(|error| error.kind())
    }

    fn has(store: &dyn ReadStore, key: &'static str) -> Result<bool, StoreErrorKind> {
        block_on(store.get(&home(), &key.into()))
            .map(|value| value.is_some())
            .map_err(|error| error.kind())
    }

    fn home() -> Partition {
        partition("home")
    }

    #[test]
    fn a_commit_in_doubt_is_unknown_and_settled_before_the_answer() {
        for (fault, arrived) in [(CommitFault::Before, false), (CommitFault::After, true)] {
            let folder = tempfile::tempdir().unwrap();
            let store = open(&folder);
            let blocking = store.for_blocking_threads().unwrap();
            assert_eq!(put(&store, "first"), Ok(BatchOutcome::Committed));
            fail(&store, std::slice::from_ref(&fault));
            assert_eq!(put(&store, "doubtful"), Err(StoreErrorKind::Unknown));
            assert_eq!(has(&store, "doubtful"), Ok(arrived));
            assert_eq!(has(&*blocking, "doubtful"), Ok(arrived));
            assert_eq!(put(&store, "next"), Ok(BatchOutcome::Committed));
            assert_eq!(store.counters().doubtful_commits, 1);
            store.close();
            let store = open(&folder);
            for (key, expected) in [("first", true), ("doubtful", arrived), ("next", true)] {
                assert_eq!(has(&store, key), Ok(expected), "{key} after {fault:?}");
            }
        }
    }

    #[test]
    fn nothing_is_read_to_anybody_before_a_doubt_is_settled() {
        let folder = tempfile::tempdir().unwrap();
        let store = open(&folder);
        let barrier = Arc::new(Barrier::new(2));
        let settling = CommitFault::Slow(Arc::clone(&barrier));
        fail(&store, &[CommitFault::Before, settling]);
        let (read, reads) = channel();
        std::thread::scope(|scope| {
            let (writer, reader, blocked) = (&store, &store, &store);
            scope.spawn(move || assert_eq!(put(writer, "row"), Err(StoreErrorKind::Unknown)));
            barrier.wait();
            let also_read = read.clone();
            scope.spawn(move || read.send(has(reader, "row")).unwrap());
            scope.spawn(move || {
                let blocking = blocked.for_blocking_threads().unwrap();
                also_read.send(has(&*blocking, "row")).unwrap();
            });
            let early = reads.recv_timeout(Duration::from_millis(100));
            assert_eq!(early, Err(RecvTimeoutError::Timeout));
            barrier.wait();
            assert_eq!(reads.recv(), Ok(Ok(false)));
            assert_eq!(reads.recv(), Ok(Ok(false)));
        });
    }

    #[test]
    fn everybody_in_a_commit_in_doubt_is_told_so() {
        let folder = tempfile::tempdir().unwrap();
        let store = open(&folder);
        let blocking = store.for_blocking_threads().unwrap();
        let home = home();
        let mut one = blocking.apply(&home, Batch::new().put("one", "v"));
        let group = Group::from(vec![
            Batch::new().put("two", "v"),
            Batch::new().put("three", "v"),
        ]);
        let mut two = blocking.apply_all(&home, group);
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        assert!(one.as_mut().poll(&mut context).is_pending());
        assert!(two.as_mut().poll(&mut context).is_pending());
        fail(&store, &[CommitFault::Before]);
        blocking.before_park();
        assert_eq!(block_on(one).unwrap_err().kind(), StoreErrorKind::Unknown);
        let two = block_on(two);
        assert_eq!(two.outcomes, []);
        assert_eq!(two.stopped_by.unwrap().kind(), StoreErrorKind::Unknown);
        assert_eq!(has(&store, "two"), Ok(false));
    }

    #[test]
    fn what_the_writer_remembered_is_forgotten_with_a_commit_in_doubt() {
        let folder = tempfile::tempdir().unwrap();
        let store = open(&folder);
        let timer = |due_ms| dueline::rows::TimerKey {
            kind: TimerKind(16),
            due_ms,
            generation: 1,
            reference: dueline::Bytes::new(),
        };
        // The partition and its wake are in the writer's memory only if their commit arrived.
        fail(&store, &[CommitFault::Before]);
        let early = Batch::new().put(timer(2_000).encode(), "v");
        assert!(block_on(store.apply(&home(), early)).is_err());
        let later = Batch::new().put(timer(3_000).encode(), "v");
        assert!(
            block_on(store.apply(&home(), later))
                .unwrap()
                .is_committed()
        );
        let page = block_on(store.due_wakes(&KindSet::all(), u64::MAX, None, 9)).unwrap();
        assert_eq!(page.wakes.len(), 1);
        assert_eq!(page.wakes[0].at_ms, 3_000);
    }

    #[test]
    fn a_doubt_that_cannot_be_settled_closes_the_store_until_it_is_reopened() {
        for (fault, arrived) in [(CommitFault::Before, false), (CommitFault::After, true)] {
            let folder = tempfile::tempdir().unwrap();
            let store = open(&folder);
            let blocking = store.for_blocking_threads().unwrap();
            assert_eq!(put(&store, "first"), Ok(BatchOutcome::Committed));
            assert_eq!(has(&*blocking, "first"), Ok(true));
            fail(&store, &[fault.clone(), CommitFault::Before]);
            assert_eq!(put(&store, "doubtful"), Err(StoreErrorKind::Unknown));
            let unavailable = StoreErrorKind::Unavailable;
            assert_eq!(has(&store, "first"), Err(unavailable));
            assert_eq!(has(&*blocking, "first"), Err(unavailable));
            assert_eq!(put(&store, "next"), Err(unavailable));
            assert_eq!(block_on(store.probe()).unwrap_err().kind(), unavailable);
            fail(&store, &[CommitFault::Before]);
            assert_eq!(store.reopen().unwrap_err().kind(), unavailable);
            assert_eq!(has(&store, "first"), Err(unavailable));
            store.reopen().unwrap();
            assert!(block_on(store.probe()).is_ok());
            assert_eq!(has(&*blocking, "doubtful"), Ok(arrived));
            assert_eq!(put(&*blocking, "next"), Ok(BatchOutcome::Committed));
            assert_eq!(store.counters().reopened, 1);
            store.reopen().unwrap();
            assert_eq!(store.counters().reopened, 1);
        }
    }

    #[test]
    fn a_failed_store_opens_again_by_itself() {
        let folder = tempfile::tempdir().unwrap();
        let store = open(&folder);
        fail(&store, &[CommitFault::Before, CommitFault::Before]);
        assert_eq!(put(&store, "doubtful"), Err(StoreErrorKind::Unknown));
        // The first attempt comes after a second.
        let mut tries = 0;
        while has(&store, "doubtful").is_err() {
            tries += 1;
            assert!(tries < 3_000, "the store has not opened again");
            std::thread::park_timeout(Duration::from_millis(10));
        }
        assert_eq!(put(&store, "doubtful"), Ok(BatchOutcome::Committed));
    }

    #[test]
    fn a_full_disk_at_commit_is_full_for_puts_and_unavailable_for_deletes() {
        let folder = tempfile::tempdir().unwrap();
        let store = open(&folder);
        assert_eq!(put(&store, "row"), Ok(BatchOutcome::Committed));
        fail(&store, &[CommitFault::Full]);
        let passing = put(&store, "passing");
        assert_eq!(passing, Ok(BatchOutcome::Committed), "the log gave room");
        fail(&store, &[CommitFault::Full, CommitFault::Full]);
        assert_eq!(put(&store, "more"), Err(StoreErrorKind::Full));
        assert_eq!(has(&store, "more"), Ok(false));
        // The log has just been started over, and is not again.
        fail(&store, &[CommitFault::Full]);
        let delete = block_on(store.apply(&home(), Batch::new().delete("row")));
        assert_eq!(delete.unwrap_err().kind(), StoreErrorKind::Unavailable);
        assert_eq!(has(&store, "row"), Ok(true));
    }
}
