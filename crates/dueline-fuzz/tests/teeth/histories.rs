//! Engines that look wrong, because what they write reaches the store otherwise.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use dueline::BoxFuture;
use dueline::rows::{TimerRow, class, is_of_class};
use dueline::store::{
    AuditPage, Batch, BatchOutcome, Capabilities, Group, GroupOutcome, Key, NamespaceStore,
    Partition, PartitionPage, PartitionStats, Precondition, ReadStore, ScanPage, ScanRange,
    StoreError, StoreErrorKind, Value, WakeCursor, WakePage, WakeStore, Write,
};
use dueline::timers::KindSet;
use dueline_fuzz::{Disguise, operations_disguised};
use dueline_testkit::model::ActorStore;

const INPUTS_MAX: usize = 5_000;

/// What is wrong with a batch of the engine; told whether the one before was in doubt.
type Fault = fn(&mut Batch, bool);

/// The store of an engine with a fault.
#[derive(Debug)]
struct Disguised {
    inner: Arc<ActorStore>,
    fault: Fault,
    in_doubt: AtomicBool,
}

impl Disguised {
    fn over(inner: Arc<ActorStore>, fault: Fault) -> Arc<dyn WakeStore> {
        Arc::new(Self {
            inner,
            fault,
            in_doubt: AtomicBool::new(false),
        })
    }

    fn heard(&self, error: Option<&StoreError>) {
        let in_doubt = error.is_some_and(|error| error.kind() == StoreErrorKind::Unknown);
        self.in_doubt.store(in_doubt, Ordering::Relaxed);
    }

    fn spoil(&self, batch: &mut Batch) {
        (self.fault)(batch, self.in_doubt.load(Ordering::Relaxed));
    }
}

fn puts(write: &Write, of: u8) -> bool {
    matches!(write, Write::Put(key, _) if is_of_class(key, of))
}

fn deletes(write: &Write, of: u8) -> bool {
    matches!(write, Write::Delete(key) if is_of_class(key, of))
}

/// Whether the batch moves a timer to another place.
fn is_move(batch: &Batch) -> bool {
    let has = |is: fn(&Write, u8) -> bool, of| batch.writes.iter().any(|write| is(write, of));
    has(deletes, class::TIMER) && (has(puts, class::TIMER) || has(puts, class::DEAD))
}

/// Changes the rows of timers that a batch puts.
fn change_rows(batch: &mut Batch, change: impl Fn(&mut TimerRow)) {
    for write in &mut batch.writes {
        if let Write::Put(key, value) = write
            && is_of_class(key, class::TIMER)
            && let Ok(mut row) = TimerRow::decode(value)
        {
            change(&mut row);
            *value = row.encode();
        }
    }
}

fn loses_a_timer_in_doubt(batch: &mut Batch, in_doubt: bool) {
    if in_doubt && is_move(batch) {
        let of_timers = |write: &Write| puts(write, class::TIMER) || puts(write, class::DEAD);
        batch.writes.retain(|write| !of_timers(write));
    }
}

fn loses_the_dead(batch: &mut Batch, _: bool) {
    batch.writes.retain(|write| !puts(write, class::DEAD));
}

fn does_not_guard_the_due(batch: &mut Batch, _: bool) {
    let is_time = |guard: &Precondition| matches!(guard, Precondition::NotBefore(_));
    batch.preconditions.retain(|guard| !is_time(guard));
}

fn does_not_guard_the_timer(batch: &mut Batch, _: bool) {
    let is_timer = |guard: &Precondition| matches!(guard, Precondition::Present(key) if is_of_class(key, class::TIMER));
    batch.preconditions.retain(|guard| !is_timer(guard));
}

fn leaves_the_name_behind(batch: &mut Batch, _: bool) {
    if is_move(batch) {
        batch.writes.retain(|write| !puts(write, class::NAME));
    }
}

fn leaves_the_timer_behind(batch: &mut Batch, _: bool) {
    if is_move(batch) {
        batch.writes.retain(|write| !deletes(write, class::TIMER));
    }
}

fn throws_the_malformed_away(batch: &mut Batch, _: bool) {
    batch.writes.retain(|write| !puts(write, class::QUARANTINE));
}

fn charges_what_is_given_back(batch: &mut Batch, _: bool) {
    change_rows(batch, |row| {
        let failure = row.header.failure.as_ref();
        let is_doubt = failure.is_some_and(|failure| failure.error.contains("unknown"));
        row.header.attempt += u16::from(is_doubt);
    });
}

fn forgets_the_due_as_asked(batch: &mut Batch, _: bool) {
    if is_move(batch) {
        change_rows(batch, |row| row.header.original_due_ms += 1);
    }
}

fn forgets_the_payload(batch: &mut Batch, _: bool) {
    if is_move(batch) {
        change_rows(batch, |row| row.payload = row.payload.slice(..0));
    }
}

#[test]
fn an_engine_that_breaks_a_promise_is_found() {
    let faults: [(&str, Disguise); 10] = [
        ("a timer is lost when a commit was in doubt", |store| {
            Disguised::over(store, loses_a_timer_in_doubt)
        }),
        ("a timer that dies is lost", |store| {
            Disguised::over(store, loses_the_dead)
        }),
        ("a timer fires before its due", |store| {
            Disguised::over(store, does_not_guard_the_due)
        }),
        ("a timer takes effect twice", |store| {
            Disguised::over(store, does_not_guard_the_timer)
        }),
        ("a name stays behind", |store| {
            Disguised::over(store, leaves_the_name_behind)
        }),
        ("a timer lies at two places", |store| {
            Disguised::over(store, leaves_the_timer_behind)
        }),
        ("a malformed row is thrown away", |store| {
            Disguised::over(store, throws_the_malformed_away)
        }),
        ("an attempt is charged for the store's fault", |store| {
            Disguised::over(store, charges_what_is_given_back)
        }),
        ("a move forgets the due as asked", |store| {
            Disguised::over(store, forgets_the_due_as_asked)
        }),
        ("a move forgets the payload", |store| {
            Disguised::over(store, forgets_the_payload)
        }),
    ];
    for (fault, disguise) in faults {
        super::is_found(fault, "operations", INPUTS_MAX, |input| {
            let _reached = operations_disguised(input, disguise);
        });
    }
}

impl ReadStore for Disguised {
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

impl NamespaceStore for Disguised {
    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    fn apply<'a>(
        &'a self,
        partition: &'a Partition,
        mut batch: Batch,
    ) -> BoxFuture<'a, Result<BatchOutcome, StoreError>> {
        Box::pin(async move {
            self.spoil(&mut batch);
            let answer = self.inner.apply(partition, batch).await;
            self.heard(answer.as_ref().err());
            answer
        })
    }

    fn apply_all<'a>(
        &'a self,
        partition: &'a Partition,
        mut group: Group,
    ) -> BoxFuture<'a, GroupOutcome> {
        Box::pin(async move {
            for batch in &mut group.batches {
                self.spoil(batch);
            }
            let done = self.inner.apply_all(partition, group).await;
            self.heard(done.stopped_by.as_ref());
            done
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

impl WakeStore for Disguised {
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
}
