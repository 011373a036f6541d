use std::fmt;
use std::sync::Arc;

use dueline::rows::{PauseKey, PauseRow, TimerKey};
use dueline::store::{
    Batch, BatchOutcome, Group, GroupOutcome, Key, NamespaceStore, Partition, ScanRange,
    StoreErrorKind, Value, Wake, WakeSettle, WakeStore,
};
use dueline::timers::{KindSet, TimerKind};

use crate::{ManualClock, block_on, commit};

/// Makes a fresh, empty store.
pub type Make<'a> = &'a dyn Fn(Setup) -> Subject;

/// What a case wants of the store that is made for it.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The backend's clock: time bounds and wakes must go by it.
    pub clock: ManualClock,
    /// Whether the store must be `Full` after at most 64 MiB of puts. Stores that do not list the
    /// feature `capacity` are never asked.
    pub small: bool,
}

/// How a store is stopped before it is opened again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// Closed as it should be.
    Clean,
    /// As after a kill: nothing that closes a store has run.
    Crash,
}

type Reopen = Box<dyn FnOnce(Stop) -> Subject + Send>;

/// A store under test, with the clock it goes by.
pub struct Subject {
    store: Arc<dyn NamespaceStore>,
    wakes: Option<Arc<dyn WakeStore>>,
    clock: ManualClock,
    reopen: Option<Reopen>,
}

/// The wall at which the cases' stores begin, in milliseconds since 1970.
pub(super) const NOW_MS: u64 = 1_700_000_000_000;
/// The lane most cases use.
pub(super) const KIND: TimerKind = TimerKind(16);
/// Another lane.
pub(super) const OTHER: TimerKind = TimerKind(0xEF);

impl Subject {
    /// A store that keeps no wakes.
    pub fn without_wakes(store: Arc<dyn NamespaceStore>, clock: ManualClock) -> Self {
        Self {
            store,
            wakes: None,
            clock,
            reopen: None,
        }
    }

    /// A store that keeps wakes.
    pub fn with_wakes<S: WakeStore + 'static>(store: Arc<S>, clock: ManualClock) -> Self {
        let wakes = Arc::clone(&store) as Arc<dyn WakeStore>;
        Self {
            store,
            wakes: Some(wakes),
            clock,
            reopen: None,
        }
    }

    /// The same, for a store that outlives its process: stops it in this way and opens it again.
    /// When the closure is called the subject's own handles of the store are gone.
    #[must_use]
    pub fn reopened_by(mut self, reopen: impl FnOnce(Stop) -> Self + Send + 'static) -> Self {
        self.reopen = Some(Box::new(reopen));
        self
    }

    pub(super) fn make(make: Make<'_>) -> Self {
        Self::at(make, i64::try_from(NOW_MS).unwrap_or(i64::MAX))
    }

    pub(super) fn at(make: Make<'_>, wall_ms: i64) -> Self {
        make(Setup {
            clock: ManualClock::new(wall_ms),
            small: false,
        })
    }

    pub(super) fn store(&self) -> &dyn NamespaceStore {
        &*self.store
    }

    #[track_caller]
    pub(super) fn wake_store(&self) -> &dyn WakeStore {
        self.wakes
            .as_deref()
            .expect("the feature `wakes` needs a subject made `with_wakes`")
    }

    pub(super) fn clock(&self) -> &ManualClock {
        &self.clock
    }

    pub(super) fn stop_and_reopen(self, stop: Stop) -> Self {
        let Self {
            store,
            wakes,
            reopen,
            ..
        } = self;
        drop((store, wakes));
        reopen.expect("the feature `reopen` needs a subject that is `reopened_by` something")(stop)
    }

    #[track_caller]
    pub(super) fn commit(&self, partition: &Partition, batch: Batch) {
        commit(self.store(), partition, batch);
    }

    #[track_caller]
    pub(super) fn apply(&self, partition: &Partition, batch: Batch) -> BatchOutcome {
        block_on(self.store.apply(partition, batch)).expect("an outcome")
    }

    /// The kind of the error that the batch ends in.
    #[track_caller]
    pub(super) fn refusal(&self, partition: &Partition, batch: Batch) -> StoreErrorKind {
        block_on(self.store.apply(partition, batch))
            .expect_err("the batch is refused")
            .kind()
    }

    pub(super) fn group(&self, partition: &Partition, group: impl Into<Group>) -> GroupOutcome {
        block_on(self.store.apply_all(partition, group.into()))
    }

    #[track_caller]
    pub(super) fn get(&self, partition: &Partition, key: impl Into<Key>) -> Option<Value> {
        block_on(self.store.get(partition, &key.into())).expect("a read")
    }

    /// All rows of a range, its pages followed to their end.
    #[track_caller]
    pub(super) fn scan_all(&self, partition: &Partition, range: &ScanRange) -> Vec<(Key, Value)> {
        let mut rows = Vec::new();
        let mut range = range.clone();
        loop {
            let page = block_on(self.store.scan(partition, &range)).expect("a page");
            assert!(
                page.rows.len() <= range.limit,
                "a page has at most `limit` rows"
            );
            rows.extend(page.rows);
            assert!(
                rows.is_sorted_by(|(one, _), (next, _)| one < next),
                "rows ascend, none twice"
            );
            if page.next.is_none() {
                return rows;
            }
            assert_ne!(page.next, range.after, "a page moves its cursor on");
            range.after = page.next;
        }
    }

    /// All rows of a partition but one whose key is 1,024 times `ff`.
    #[track_caller]
    pub(super) fn rows(&self, partition: &Partition) -> Vec<(Key, Value)> {
        self.scan_all(partition, &ScanRange::new("", vec![0xff; 1_024], 1_000))
    }

    #[track_caller]
    pub(super) fn keys(&self, partition: &Partition) -> Vec<Key> {
        self.rows(partition)
            .into_iter()
            .map(|(key, _)| key)
            .collect()
    }

    /// All wakes of some kinds, the pages followed to their end.
    #[track_caller]
    pub(super) fn wakes_of(&self, kinds: &KindSet, until_ms: u64, limit: usize) -> Vec<Wake> {
        let mut wakes = Vec::new();
        let mut after = None;
        loop {
            let page =
                block_on(
                    self.wake_store()
                        .due_wakes(kinds, until_ms, after.as_ref(), limit),
                )
                .expect("a page of wakes");
            assert!(
                page.wakes.len() <= limit,
                "a page has at most `limit` wakes"
            );
            wakes.extend(page.wakes);
            if page.next.is_none() {
                return wakes;
            }
            assert_ne!(page.next, after, "a page moves its cursor on");
            after = page.next;
        }
    }

    #[track_caller]
    pub(super) fn wakes(&self) -> Vec<Wake> {
        self.wakes_of(&KindSet::all(), u64::MAX, 1_000)
    }

    /// The times of the wakes of one lane.
    #[track_caller]
    pub(super) fn lane_wakes(&self, partition: &Partition, kind: TimerKind) -> Vec<u64> {
        let wakes = self.wakes_of(&KindSet::from_iter([kind]), u64::MAX, 1_000);
        let of_lane = wakes
            .into_iter()
            .filter(|wake| wake.partition == *partition);
        of_lane.map(|wake| wake.at_ms).collect()
    }

    #[track_caller]
    pub(super) fn settle(
        &self,
        partition: &Partition,
        kind: TimerKind,
        served_ms: &[u64],
    ) -> Option<u64> {
        let settle = WakeSettle {
            kind,
            served_ms: served_ms.to_vec(),
        };
        block_on(self.wake_store().settle_wake(partition, settle)).expect("a settle")
    }
}

impl fmt::Debug for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subject")
            .field("store", &self.store)
            .finish_non_exhaustive()
    }
}

/// The partition most cases use.
pub(super) fn home() -> Partition {
    crate::partition("home")
}

/// The key of a timer with a short reference.
pub(super) fn timer_key(kind: TimerKind, due_ms: u64, reference: &'static str) -> Key {
    TimerKey {
        kind,
        due_ms,
        generation: 1,
        reference: reference.into(),
    }
    .encode()
}

/// A batch that puts one timer.
pub(super) fn put_timer(kind: TimerKind, due_ms: u64) -> Batch {
    Batch::new().put(timer_key(kind, due_ms, ""), "timer")
}

/// A batch that deletes the timer of [`put_timer`].
pub(super) fn delete_timer(kind: TimerKind, due_ms: u64) -> Batch {
    Batch::new().delete(timer_key(kind, due_ms, ""))
}

/// A batch that pauses a lane.
pub(super) fn pause(kind: TimerKind) -> Batch {
    Batch::new().put(
        PauseKey { kind }.encode(),
        PauseRow { since_ms: NOW_MS }.encode(),
    )
}

/// A batch that resumes a lane.
pub(super) fn resume(kind: TimerKind) -> Batch {
    Batch::new().delete(PauseKey { kind }.encode())
}
