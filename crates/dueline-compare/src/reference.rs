//! The reference's side: mkit-server 0.5.0, by its public interface.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use dueline_testkit::block_on;
use mkit_server::store::{PartitionStats, StoreCapabilities, keys};
use mkit_server::timers::registry::{TimerHandler, TimerKind, TimerRegistry};
use mkit_server::timers::{DueTimer, Fired, RunReport, TickBudget, TimerCtx, run_due};
use mkit_server::{
    Batch, BatchOutcome, BoxFuture, Cursor, Key, ManualClock, MemoryKv, NamespaceKey,
    NamespaceStore, Partition, Precondition, ScanPage, StoreError, Value, Write,
};

use crate::script::{COUNTER, EFFECT, Guard, Hands, LOG, Said, count_of};
use crate::{After, Budget, Counts, Fault, Id, KINDS, Row, Scenario, Script, Step};

/// The reference over its memory store, with the handlers of a script.
#[derive(Debug)]
pub struct Reference {
    /// Its clock.
    pub clock: Arc<ManualClock>,
    store: Arc<Faulty>,
    partition: Partition,
    script: Arc<Script>,
    caps: [Option<u32>; 3],
    budget: Budget,
}

impl Reference {
    /// A side for this scenario.
    pub fn new(scenario: &Scenario, script: &Arc<Script>) -> Self {
        Self::with(scenario, script, |store| store)
    }

    /// The same with another store.
    pub fn with(
        scenario: &Scenario,
        script: &Arc<Script>,
        make: impl FnOnce(MemoryKv) -> MemoryKv,
    ) -> Self {
        let clock = Arc::new(ManualClock::new(0));
        let inner = make(MemoryKv::with_clock(Arc::clone(&clock) as Arc<_>));
        Self {
            clock,
            store: Arc::new(Faulty {
                inner,
                fault: Mutex::new(None),
            }),
            partition: Partition::Namespace(NamespaceKey::deployment_default()),
            script: Arc::clone(script),
            caps: scenario.caps,
            budget: scenario.budget,
        }
    }

    /// Puts a timer.
    pub fn schedule(&self, id: &Id, due_ms: u64, payload: &Bytes) {
        let key = keys::timer(due_ms, id.kind, &id.reference);
        self.commit(Batch::new().put(key, Value::new(payload.clone())));
    }

    /// Puts a key of the timer class that does not decode.
    pub fn put_malformed(&self, tag: &Bytes, due_ms: u64) {
        let mut key = b"w\0".to_vec();
        key.extend_from_slice(&due_ms.to_be_bytes());
        key.push(crate::MALFORMED_KIND);
        key.extend_from_slice(tag);
        self.commit(Batch::new().put(Key::new(key), Value::new("?")));
    }

    /// What a step puts before its tick.
    pub fn prepare(&self, step: &Step) {
        self.clock
            .set(i64::try_from(step.now_ms).unwrap_or(i64::MAX));
        for (id, due_ms, payload) in &step.scheduled {
            self.schedule(id, *due_ms, payload);
        }
        for (tag, due_ms) in &step.malformed {
            self.put_malformed(tag, *due_ms);
        }
    }

    /// Runs one tick and tells what it left.
    pub fn tick(&self, step: &Step) -> After {
        self.script.begin(step.tick, step.now_ms);
        self.store.arm(step.fault.clone());
        let mut registry = TimerRegistry::new();
        for (kind, cap) in KINDS.into_iter().zip(self.caps) {
            registry = registry.register(Scripted {
                kind,
                cap,
                script: Arc::clone(&self.script),
                clock: Arc::clone(&self.clock),
            });
        }
        let budget = TickBudget::new(
            self.budget.fired,
            self.budget.per_kind,
            self.budget.scanned,
            self.budget.elapsed_ms,
        );
        let tick = run_due(
            self.store.as_ref(),
            &self.partition,
            &registry,
            self.clock.as_ref(),
            step.now_ms,
            &budget,
        );
        let report = block_on(tick);
        self.store.arm(None);
        let mut after = self.look();
        after.runs = self.script.take_runs();
        after.ended_ms = step.now_ms;
        if let Ok(report) = report {
            after.counts = counts(&report);
            after.wake_ms = report.next_wake_ms;
        }
        after
    }

    /// What lies in the store.
    pub fn look(&self) -> After {
        let mut after = After::default();
        for (key, value) in self.store.rows(&self.partition) {
            let bytes = key.as_bytes();
            if let Some((id, row)) = timer_of(&key, &value) {
                after.rows.insert(id, row);
            } else if let Some(body) = bytes.strip_prefix(b"w\0") {
                let (tail, due_ms) = crate::after::malformed_parts(body);
                after
                    .malformed
                    .insert(tail.slice(1.min(tail.len())..), due_ms);
            } else {
                after.note_effect_row(bytes, value.as_bytes(), EFFECT, LOG);
                if bytes == COUNTER {
                    after.counter = count_of(Some(&bytes_of(&value)));
                }
            }
        }
        after
    }

    /// Removes what the tick left beside timers.
    pub fn tidy(&self) {
        let others = self.store.rows(&self.partition).into_iter();
        self.delete(
            others
                .map(|(key, _)| key)
                .filter(|key| !is_timer_class(key)),
        );
    }

    /// Gives it these timers and malformed rows in place of its own.
    pub fn become_as(&self, wanted: &After) {
        let found = self.store.rows(&self.partition).into_iter();
        self.delete(found.map(|(key, _)| key).filter(is_timer_class));
        for (id, row) in &wanted.rows {
            let attempt = u8::try_from(row.attempt).unwrap_or(u8::MAX);
            let attempt = attempt.min(keys::MAX_TIMER_RETRY_ATTEMPT);
            let key =
                keys::timer_retry(row.due_ms, id.kind, &id.reference, row.original_ms, attempt);
            self.commit(Batch::new().put(key, Value::new(row.payload.clone())));
        }
        for (tag, due_ms) in &wanted.malformed {
            self.put_malformed(tag, *due_ms);
        }
    }

    fn delete(&self, keys: impl Iterator<Item = Key>) {
        for key in keys {
            self.commit(Batch::new().delete(key));
        }
    }

    fn commit(&self, batch: Batch) {
        let outcome = block_on(self.store.inner.apply(&self.partition, batch));
        assert!(
            matches!(outcome, Ok(BatchOutcome::Committed)),
            "the store takes it: {outcome:?}"
        );
    }
}

fn is_timer_class(key: &Key) -> bool {
    key.as_bytes().starts_with(b"w\0")
}

fn bytes_of(value: &Value) -> Bytes {
    Bytes::copy_from_slice(value.as_bytes())
}

/// A timer row: what follows `w 00`, due, kind, attempt and original due is the reference.
fn timer_of(key: &Key, value: &Value) -> Option<(Id, Row)> {
    let (original_ms, attempt) = keys::timer_retry_state(key)?;
    let body = key.as_bytes().get(2..)?;
    let due_ms = body.get(..8)?.try_into().map(u64::from_be_bytes).ok()?;
    let id = Id::new(*body.get(8)?, Bytes::copy_from_slice(body.get(18..)?));
    let row = Row {
        due_ms,
        original_ms,
        attempt: u16::from(attempt),
        payload: bytes_of(value),
    };
    Some((id, row))
}

fn counts(report: &RunReport) -> Counts {
    Counts {
        fired: u64::from(report.fired),
        failed: u64::from(report.failed),
        raced: u64::from(report.raced),
        deferred: u64::from(report.deferred),
        stopped: report.stopped_on_budget,
        ..Counts::default()
    }
}

/// The reference's memory store with one fault at the commit of one timer.
#[derive(Debug)]
struct Faulty {
    inner: MemoryKv,
    fault: Mutex<Option<Fault>>,
}

impl Faulty {
    fn arm(&self, fault: Option<Fault>) {
        *self.fault.lock().unwrap_or_else(PoisonError::into_inner) = fault;
    }

    /// The fault of this batch, taken, if it deletes the timer that the fault is about.
    fn take_fault(&self, batch: &Batch) -> Option<Fault> {
        let mut fault = self.fault.lock().unwrap_or_else(PoisonError::into_inner);
        let id = fault.as_ref()?.id().clone();
        let nothing = Value::new(Bytes::new());
        let hit = batch.writes.iter().any(|write| match write {
            Write::Delete(key) => timer_of(key, &nothing).is_some_and(|(found, _)| found == id),
            Write::Put(..) => false,
        });
        if hit { fault.take() } else { None }
    }

    fn rows(&self, partition: &Partition) -> Vec<(Key, Value)> {
        let (start, end) = (Key::new(vec![0x01]), Key::new(vec![0xff]));
        let mut rows = Vec::new();
        let mut after = None;
        loop {
            let page = block_on(
                self.inner
                    .scan(partition, &start, &end, after.as_ref(), 1_000),
            );
            let Ok(page) = page else { return rows };
            rows.extend(page.entries);
            match page.next {
                Some(next) => after = Some(next),
                None => return rows,
            }
        }
    }
}

impl NamespaceStore for Faulty {
    fn capabilities(&self) -> StoreCapabilities {
        self.inner.capabilities()
    }

    async fn get(&self, p: &Partition, key: &Key) -> Result<Option<Value>, StoreError> {
        self.inner.get(p, key).await
    }

    async fn scan(
        &self,
        p: &Partition,
        start: &Key,
        end: &Key,
        after: Option<&Cursor>,
        limit: u32,
    ) -> Result<ScanPage, StoreError> {
        self.inner.scan(p, start, end, after, limit).await
    }

    async fn apply(&self, p: &Partition, batch: Batch) -> Result<BatchOutcome, StoreError> {
        let failed = || StoreError::Unavailable("as the script says".into());
        match self.take_fault(&batch) {
            None => self.inner.apply(p, batch).await,
            Some(Fault::Refused(_)) => Err(failed()),
            Some(Fault::AnswerLost(_)) => {
                self.inner.apply(p, batch).await?;
                Err(failed())
            }
        }
    }

    async fn stats(&self, p: &Partition) -> Result<PartitionStats, StoreError> {
        self.inner.stats(p).await
    }

    async fn probe(&self) -> Result<(), StoreError> {
        self.inner.probe().await
    }
}

/// A handler that does what the script says.
struct Scripted {
    kind: u8,
    cap: Option<u32>,
    script: Arc<Script>,
    clock: Arc<ManualClock>,
}

struct TheirHands<'a> {
    store: &'a Faulty,
    partition: &'a Partition,
    clock: &'a ManualClock,
}

impl TheirHands<'_> {
    fn own_key(&self, id: &Id) -> Option<Key> {
        let rows = self.store.rows(self.partition);
        rows.into_iter()
            .find(|(key, value)| timer_of(key, value).is_some_and(|(found, _)| found == *id))
            .map(|(key, _)| key)
    }

    fn commit(&self, batch: Batch) {
        let outcome = block_on(self.store.inner.apply(self.partition, batch));
        assert!(
            matches!(outcome, Ok(BatchOutcome::Committed)),
            "{outcome:?}"
        );
    }
}

impl Hands for TheirHands<'_> {
    fn read(&self, key: &Bytes) -> Option<Bytes> {
        let found = block_on(self.store.get(self.partition, &Key::new(key.clone())));
        found.ok().flatten().map(|value| bytes_of(&value))
    }

    fn interfere(&self, key: Bytes, value: Bytes) {
        self.commit(Batch::new().put(Key::new(key), Value::new(value)));
    }

    fn remove_timer(&self, id: &Id, then_at_ms: Option<u64>) {
        if let Some(key) = self.own_key(id) {
            self.commit(Batch::new().delete(key));
        }
        if let Some(due_ms) = then_at_ms {
            let key = keys::timer(due_ms, id.kind, &id.reference);
            self.commit(Batch::new().put(key, Value::new("moved")));
        }
    }

    fn pass(&self, ms: u64) {
        self.clock.advance(i64::try_from(ms).unwrap_or(i64::MAX));
    }

    fn step_back(&self, ms: u64) {
        self.clock.advance(-i64::try_from(ms).unwrap_or(i64::MAX));
    }
}

impl TimerHandler<Faulty> for Scripted {
    fn kind(&self) -> TimerKind {
        TimerKind::new(self.kind)
    }

    fn max_per_tick(&self) -> Option<u32> {
        self.cap
    }

    fn fire<'a>(
        &'a self,
        ctx: &'a TimerCtx<'a, Faulty>,
        timer: &'a DueTimer,
    ) -> BoxFuture<'a, Result<Fired, StoreError>> {
        Box::pin(async move {
            let id = Id::new(timer.kind.get(), timer.reference.clone());
            let hands = TheirHands {
                store: ctx.store,
                partition: ctx.partition,
                clock: &self.clock,
            };
            let answer = self.script.run(&id, timer.due_at_ms, ctx.now_ms, &hands);
            let mut batch = Batch::new();
            for guard in answer.guards {
                batch = batch.require(match guard {
                    Guard::Unchanged(key, Some(found)) => {
                        Precondition::Equals(Key::new(key), Value::new(found))
                    }
                    Guard::Unchanged(key, None) => Precondition::Absent(Key::new(key)),
                    Guard::NotAfter(ms) => Precondition::NotAfter(ms),
                });
            }
            for (key, value) in answer.puts {
                batch = batch.put(Key::new(key), Value::new(value));
            }
            if let Some((id, due_ms)) = answer.spawned {
                let key = keys::timer(due_ms, id.kind, &id.reference);
                batch = batch.put(key, Value::new("spawned"));
            }
            if answer.writes_own_row
                && let Some(key) = hands.own_key(&id)
            {
                batch = batch.put(key, Value::new("own"));
            }
            match answer.said {
                Said::Done => Ok(Fired::Done(batch)),
                Said::Reschedule(due_at_ms) => Ok(Fired::Reschedule {
                    due_at_ms,
                    value: Value::new("again"),
                    batch,
                }),
                Said::Retry => Ok(Fired::Retry),
                Said::Fail => Err(StoreError::Invalid("the script says so".into())),
            }
        })
    }
}
