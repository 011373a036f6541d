//! The reference's side: mkit-server 0.5.0, by its public interface.

mod faulty;
mod handler;

use std::sync::Arc;

use bytes::Bytes;
use dueline_testkit::block_on;
use mkit_server::store::keys;
use mkit_server::timers::registry::TimerRegistry;
use mkit_server::timers::{RunReport, TickBudget, run_due};
use mkit_server::{
    Batch, BatchOutcome, Key, ManualClock, MemoryKv, NamespaceKey, NamespaceStore, Partition, Value,
};

use crate::script::{COUNTER, EFFECT, LOG, count_of};
use crate::{After, Budget, Counts, Id, KINDS, Row, Scenario, Script, Step};
use faulty::Faulty;
use handler::Scripted;

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
            store: Arc::new(Faulty::new(inner)),
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
