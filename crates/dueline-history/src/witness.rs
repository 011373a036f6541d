use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dueline::BoxFuture;
use dueline::runtime::Clock;
use dueline::store::{
    AuditPage, Batch, BatchOutcome, Capabilities, Group, GroupOutcome, Key, NamespaceStore,
    Partition, PartitionPage, PartitionStats, ReadStore, ScanPage, ScanRange, StoreError, Value,
    WakeCursor, WakePage, WakeStore,
};
use dueline::timers::KindSet;

use crate::{Commit, EffectMark, LaneWake, Occurrence, Recorder, Scan, Source, What};

/// What a batch says of the timers that take effect in it and of those that its handler removes.
pub type Marked = fn(&Batch) -> (Vec<EffectMark>, Vec<Occurrence>);

/// A store that records what commits through it, for tests whose calls run one at a time.
pub struct Witness {
    inner: Arc<dyn WakeStore>,
    recorder: Arc<Recorder>,
    clock: Arc<dyn Clock>,
    marked: Marked,
    asker: Mutex<Asker>,
}

#[derive(Clone)]
struct Asker {
    actor: Arc<str>,
    node: u16,
    epoch: u64,
    is_user: bool,
    request: Option<u64>,
    turn: u64,
}

impl Witness {
    /// Records the commits of this store. The engine that uses it is the node, started as the epoch;
    /// the clock is the store's and, never set, the history's.
    pub fn new(
        inner: Arc<dyn WakeStore>,
        recorder: Arc<Recorder>,
        clock: Arc<dyn Clock>,
        (node, epoch): (u16, u64),
        marked: Marked,
    ) -> Self {
        Self {
            inner,
            recorder,
            clock,
            marked,
            asker: Mutex::new(Asker {
                actor: format!("node-{node}").into(),
                node,
                epoch,
                is_user: false,
                request: None,
                turn: 0,
            }),
        }
    }

    /// The same store for users: what commits through it is no engine's, whatever it is.
    #[must_use]
    pub fn for_users(&self) -> Self {
        let mut asker = self.asker().clone();
        asker.actor = "user".into();
        asker.is_user = true;
        Self {
            inner: Arc::clone(&self.inner),
            recorder: Arc::clone(&self.recorder),
            clock: Arc::clone(&self.clock),
            marked: self.marked,
            asker: Mutex::new(asker),
        }
    }

    /// The commits from now on are those of a user's request, or again of the engine.
    pub fn set_request(&self, request: Option<u64>) {
        self.asker().request = request;
    }

    /// The commits from now on are those of this turn; 0 for none.
    pub fn set_turn(&self, turn: u64) {
        self.asker().turn = turn;
    }

    /// Records an event of the node.
    pub fn record(&self, what: What) {
        let actor = Arc::clone(&self.asker().actor);
        self.recorder.record(self.now_ms(), &actor, what);
    }

    fn now_ms(&self) -> u64 {
        u64::try_from(self.clock.wall_ms()).unwrap_or(0)
    }

    fn asker(&self) -> MutexGuard<'_, Asker> {
        self.asker.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records the batches that committed, or the settles alone.
    async fn committed(
        &self,
        partition: &Partition,
        batches: &[Batch],
        has_settles: bool,
    ) -> Result<(), StoreError> {
        if batches.is_empty() && !has_settles {
            return Ok(());
        }
        let wakes = wakes_of(self.inner.as_ref(), partition).await?;
        let asker = self.asker().clone();
        let by_user = asker.is_user || asker.request.is_some();
        let source = if by_user {
            Source::User
        } else {
            Source::Engine
        };
        let mut commits: Vec<Commit> = batches
            .iter()
            .map(|batch| {
                let (effects, cuts) = (self.marked)(batch);
                Commit {
                    source,
                    effects,
                    cuts,
                    has_more: true,
                    ..Commit::of_batch(partition, batch)
                }
            })
            .collect();
        if commits.is_empty() {
            commits.push(Commit {
                source: Source::Store,
                partition: partition.into(),
                ..Commit::default()
            });
        }
        if let Some(last) = commits.last_mut() {
            last.has_more = false;
            last.wakes = wakes;
        }
        for mut commit in commits {
            commit.node = (!by_user).then_some(asker.node);
            commit.request = asker.request;
            commit.epoch = if by_user { 0 } else { asker.epoch };
            commit.turn = asker.turn;
            commit.store_ms = self.now_ms();
            self.record(What::Commit(commit));
        }
        Ok(())
    }
}

/// Every wake of a partition.
async fn wakes_of(
    store: &dyn WakeStore,
    partition: &Partition,
) -> Result<Vec<LaneWake>, StoreError> {
    let (kinds, mut wakes) = (KindSet::all(), Vec::new());
    let mut after: Option<WakeCursor> = None;
    loop {
        let page = store.due_wakes(&kinds, u64::MAX, after.as_ref(), 1_000);
        let page = page.await?;
        let ours = page.wakes.iter().filter(|it| it.partition == *partition);
        wakes.extend(ours.map(LaneWake::from));
        after = page.next;
        if after.is_none() {
            return Ok(wakes);
        }
    }
}

/// Reads a partition from end to end.
///
/// # Errors
/// What the store says.
pub async fn scan(
    store: &dyn WakeStore,
    partition: &Partition,
    at_rest: bool,
) -> Result<Scan, StoreError> {
    let mut rows = Vec::new();
    let mut range = ScanRange::new(Key::new(), Key::from_static(&[0xff; 8]), 500);
    loop {
        let page = store.scan(partition, &range).await?;
        let found = page.rows.into_iter();
        rows.extend(found.map(|(key, value)| (key.into(), value.into())));
        if page.next.is_none() {
            break;
        }
        range = range.after(page.next);
    }
    let wakes = if store.capabilities().wakes {
        wakes_of(store, partition).await?
    } else {
        Vec::new()
    };
    Ok(Scan {
        partition: partition.into(),
        at_rest,
        rows,
        wakes,
    })
}

impl ReadStore for Witness {
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

impl NamespaceStore for Witness {
    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    fn is_contended(&self) -> bool {
        self.inner.is_contended()
    }

    fn apply<'a>(
        &'a self,
        partition: &'a Partition,
        batch: Batch,
    ) -> BoxFuture<'a, Result<BatchOutcome, StoreError>> {
        Box::pin(async move {
            let outcome = self.inner.apply(partition, batch.clone()).await?;
            if outcome == BatchOutcome::Committed {
                self.committed(partition, &[batch], false).await?;
            }
            Ok(outcome)
        })
    }

    fn apply_all<'a>(
        &'a self,
        partition: &'a Partition,
        group: Group,
    ) -> BoxFuture<'a, GroupOutcome> {
        Box::pin(async move {
            let (batches, settles) = (group.batches.clone(), group.settles.len());
            let mut outcome = self.inner.apply_all(partition, group).await;
            let committed = batches.get(..outcome.committed()).unwrap_or_default();
            let has_settles = settles > 0 && outcome.stopped_by.is_none();
            let told = self.committed(partition, committed, has_settles).await;
            if let (None, Err(error)) = (&outcome.stopped_by, told) {
                outcome.stopped_by = Some(error);
            }
            outcome
        })
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

impl WakeStore for Witness {
    fn due_wakes<'a>(
        &'a self,
        kinds: &'a KindSet,
        until_ms: u64,
        after: Option<&'a WakeCursor>,
        limit: usize,
    ) -> BoxFuture<'a, Result<WakePage, StoreError>> {
        self.inner.due_wakes(kinds, until_ms, after, limit)
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

    fn end_reads(&self) {
        self.inner.end_reads();
    }

    fn before_park(&self) {
        self.inner.before_park();
    }
}

impl fmt::Debug for Witness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Witness").finish_non_exhaustive()
    }
}
