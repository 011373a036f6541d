//! Dueline's side.

mod handler;
mod history;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use dueline::memory::MemoryStore;
use dueline::rows::{QuarantineKey, TimerKey, TimerRow, class};
use dueline::store::{
    Batch, Group, LaneWake, NamespaceStore, Partition, StoreErrorKind, WakeStore, Write,
};
use dueline::timers::{
    Engine, Policy, Registration, Registry, RetryPolicy, RunReport, TickBudget, TickRequest, Timer,
    TimerKind, Timers,
};
use dueline_testkit::{
    CommitFault, FaultStore, ManualClock, block_on, commit, partition, test_runtime,
};

use crate::script::{COUNTER, EFFECT, LOG, count_of};
use crate::{After, Budget, Counts, Fault, Id, KINDS, Row, Scenario, Script, Step};
use dueline_history::Witness;
use handler::Scripted;
use history::History;

/// The back-off of the reference: 5 s doubling to 600 s, for ever, without jitter.
pub const BACK_OFF: RetryPolicy = RetryPolicy {
    attempts_max: None,
    initial_ms: 5_000,
    max_ms: 600_000,
    jitter_percent: 0,
};

/// Dueline over a memory store, with the handlers of a script.
#[derive(Debug)]
pub struct Ours {
    /// Its clock.
    pub clock: ManualClock,
    /// The store below the faults.
    pub memory: Arc<MemoryStore>,
    faults: Arc<FaultStore>,
    /// The store below the faults as another writer has it; what commits is recorded.
    users: Arc<Witness>,
    history: History,
    engine: Engine,
    partition: Partition,
    script: Arc<Script>,
    woken: bool,
    budget: Budget,
    /// The latest time the wall clock has shown.
    latest_ms: u64,
    /// Floored reschedules: the due as asked, and the due in the key that the reference is given.
    floored: BTreeMap<Id, (u64, u64)>,
}

impl Ours {
    /// A side for this scenario.
    pub fn new(scenario: &Scenario, script: &Arc<Script>) -> Self {
        Self::with(scenario, script, BACK_OFF, |store| store)
    }

    /// The same with another policy of retries and another store.
    pub fn with(
        scenario: &Scenario,
        script: &Arc<Script>,
        retry: RetryPolicy,
        make: impl FnOnce(MemoryStore) -> MemoryStore,
    ) -> Self {
        let clock = ManualClock::new(0);
        let memory = Arc::new(make(MemoryStore::new(Arc::new(clock.clone()))));
        let history = History::begin(scenario.seed, retry, &memory, &clock);
        let users = Arc::new(history.witness.for_users());
        let recorded = Arc::clone(&history.witness) as Arc<dyn WakeStore>;
        let faults = Arc::new(FaultStore::new(recorded));
        let runtime = test_runtime(&clock);
        let partition = partition("compared");
        let mut registry = Registry::new();
        for kind in KINDS {
            let handler = Scripted {
                script: Arc::clone(script),
                memory: Arc::clone(&memory),
                users: Arc::clone(&users),
                clock: clock.clone(),
                runtime: runtime.clone(),
                partition: partition.clone(),
            };
            let mut registration = Registration::inline(handler)
                .group_max(scenario.group_max)
                .retry(retry)
                .deadline_ms(u64::from(u32::MAX));
            if let Some(cap) = scenario.cap(kind) {
                registration = registration.per_tick_max(cap);
            }
            let registered = registry.register(TimerKind(kind), registration);
            assert!(registered.is_ok(), "kinds are distinct");
        }
        let store = Arc::clone(&faults) as Arc<dyn NamespaceStore>;
        Self {
            engine: Engine::new(store, runtime, registry),
            clock,
            memory,
            faults,
            users,
            history,
            partition,
            script: Arc::clone(script),
            woken: scenario.woken,
            budget: scenario.budget,
            latest_ms: 0,
            floored: BTreeMap::new(),
        }
    }

    /// The verbs of scheduling, below the faults.
    pub fn timers(&self) -> Timers {
        let store = Arc::clone(&self.users) as Arc<dyn NamespaceStore>;
        Timers::new(store, self.engine.runtime().clone())
    }

    /// Schedules an anonymous timer.
    pub fn schedule(&self, id: &Id, due_ms: u64, payload: &Bytes) {
        let timer = Timer::new(TimerKind(id.kind), id.reference.clone())
            .due_at(due_ms)
            .payload(payload.clone());
        let scheduled = block_on(
            self.timers()
                .schedule(&self.partition, timer, Policy::Replace),
        );
        assert!(
            scheduled.is_ok(),
            "a timer within the limits: {scheduled:?}"
        );
    }

    /// Puts a key of the timer class that does not decode.
    pub fn put_malformed(&self, tag: &Bytes, due_ms: u64) {
        let mut key = vec![class::TIMER, 0, crate::MALFORMED_KIND];
        key.extend_from_slice(&due_ms.to_be_bytes());
        key.extend_from_slice(tag);
        commit(
            self.users.as_ref(),
            &self.partition,
            Batch::new().put(key, "?"),
        );
    }

    /// What a step puts before its tick.
    pub fn prepare(&self, step: &Step) {
        self.clock
            .set_wall_ms(i64::try_from(step.now_ms).unwrap_or(i64::MAX));
        for (id, due_ms, payload) in &step.scheduled {
            self.schedule(id, *due_ms, payload);
        }
        for (tag, due_ms) in &step.malformed {
            self.put_malformed(tag, *due_ms);
        }
    }

    /// Runs one tick and tells what it left.
    pub fn tick(&mut self, step: &Step) -> After {
        self.script.begin(step.tick, step.now_ms);
        if let Some(fault) = &step.fault {
            self.arm(fault.clone());
        }
        let wakes = self.due_wakes(step.now_ms);
        let asleep = self.asleep(&wakes);
        let request = TickRequest {
            partition: &self.partition,
            wakes: self.woken.then_some(wakes.as_slice()),
            cautious_until_ms: None,
        };
        let budget = TickBudget {
            max_fired: self.budget.fired,
            max_per_kind: self.budget.per_kind,
            max_scanned: self.budget.scanned,
            max_elapsed_ms: self.budget.elapsed_ms,
        };
        let began = self.history.begin_tick(&self.engine);
        let mut state = self.engine.start_tick(budget);
        let tick = block_on(self.engine.tick(request, &mut state));
        let report = &tick.report;
        self.history
            .end_tick(&self.engine, &self.partition, began, (&budget, report));
        self.faults.heal();
        let wake_ms = if self.woken {
            self.stored_wake_ms(step.now_ms)
        } else {
            tick.report.next_wake_ms
        };
        let mut after = self.look();
        after.runs = self.script.take_runs();
        for run in &mut after.runs {
            run.told_ms = self.as_given(&run.id, run.told_ms);
        }
        after.counts = counts(&tick.report);
        after.asleep = asleep;
        after.ended_ms = self.engine.runtime().now_ms();
        self.latest_ms = self.latest_ms.max(after.ended_ms);
        after.latest_ms = self.latest_ms;
        after.wake_ms = wake_ms;
        self.normalise(&mut after);
        after
    }

    /// Removes what the tick left beside timers, so that it is not compared twice.
    pub fn tidy(&self) {
        let mut batch = Batch::new();
        for (key, _) in self.memory.rows(&self.partition) {
            if !key.starts_with(&[class::TIMER, 0]) {
                batch = batch.delete(key);
            }
            if batch.ops() == 90 {
                commit(
                    self.users.as_ref(),
                    &self.partition,
                    std::mem::take(&mut batch),
                );
            }
        }
        commit(self.users.as_ref(), &self.partition, batch);
    }

    /// Holds everything that was committed so far to every invariant, and begins a new history.
    ///
    /// # Errors
    /// What was broken, and where the history is kept.
    pub fn judge(&mut self) -> Result<(), String> {
        self.history.judge(&self.memory, &self.partition)
    }

    /// What lies in the store.
    pub fn look(&self) -> After {
        let mut after = After::default();
        for (key, value) in self.memory.rows(&self.partition) {
            match (TimerKey::decode(&key), TimerRow::decode(&value)) {
                (Ok(key), Ok(row)) => {
                    let id = Id::new(key.kind.0, key.reference);
                    let row = Row {
                        due_ms: key.due_ms,
                        original_ms: row.header.original_due_ms,
                        attempt: row.header.attempt,
                        payload: row.payload,
                    };
                    after.rows.insert(id, row);
                }
                _ => note_other(&mut after, &key, &value),
            }
        }
        after
    }

    fn due_wakes(&self, now_ms: u64) -> Vec<LaneWake> {
        let mut wakes: Vec<LaneWake> = self
            .memory
            .wakes()
            .into_iter()
            .filter(|wake| wake.at_ms <= now_ms)
            .map(|wake| LaneWake {
                kind: wake.kind,
                at_ms: wake.at_ms,
            })
            .collect();
        wakes.sort_by_key(|wake| wake.at_ms);
        wakes
    }

    /// Kinds whose wake lies ahead, and not later than a time the clock has shown.
    fn asleep(&self, due: &[LaneWake]) -> BTreeSet<u8> {
        let seen = self.memory.wakes().into_iter();
        let seen = seen.filter(|wake| self.woken && wake.at_ms <= self.latest_ms);
        seen.map(|wake| wake.kind)
            .filter(|kind| due.iter().all(|wake| wake.kind != *kind))
            .map(|kind| kind.0)
            .collect()
    }

    /// The earliest stored wake of a kind that has a handler.
    fn stored_wake_ms(&self, now_ms: u64) -> Option<u64> {
        self.memory
            .wakes()
            .into_iter()
            .filter(|wake| KINDS.contains(&wake.kind.0))
            .map(|wake| wake.at_ms.max(now_ms))
            .min()
    }

    fn arm(&self, fault: Fault) {
        let mut armed = true;
        self.faults.fail_commits_with(move |_, group| {
            if !armed || !settles_timer(group, fault.id()) {
                return None;
            }
            armed = false;
            Some(match fault {
                Fault::Refused(_) => CommitFault::NotWritten(StoreErrorKind::Unavailable),
                Fault::AnswerLost(_) => CommitFault::AnswerLost,
            })
        });
    }

    /// The due as the reference knows it: a floored one is asked for in the past here, and lies at its
    /// floor there.
    fn as_given(&self, id: &Id, original_ms: u64) -> u64 {
        match self.floored.get(id) {
            Some((asked_ms, floor_ms)) if *asked_ms == original_ms => *floor_ms,
            _ => original_ms,
        }
    }

    fn normalise(&mut self, after: &mut After) {
        for (id, row) in &mut after.rows {
            if row.attempt == 0 && row.original_ms < row.due_ms {
                self.floored
                    .insert(id.clone(), (row.original_ms, row.due_ms));
            } else if row.attempt == 0 && row.original_ms == row.due_ms {
                self.floored.remove(id);
            }
            row.original_ms = self.as_given(id, row.original_ms);
        }
        self.floored.retain(|id, _| after.rows.contains_key(id));
    }
}

fn note_other(after: &mut After, key: &Bytes, value: &Bytes) {
    if let Some(body) = key.strip_prefix(&[class::TIMER, 0]) {
        let (tag, due_ms) = crate::after::malformed_parts(body.get(1..).unwrap_or_default());
        after.malformed.insert(tag, due_ms);
    } else if let Ok(found) = QuarantineKey::decode(key) {
        let body = found.malformed.get(1..).unwrap_or_default();
        after
            .set_aside
            .insert(crate::after::malformed_parts(body).0);
    } else if key.starts_with(&[class::DEAD, 0]) {
        after.dead += 1;
    } else {
        after.note_effect_row(key, value, EFFECT, LOG);
        if key.as_ref() == COUNTER {
            after.counter = count_of(Some(value));
        }
    }
}

/// Whether a batch of the group deletes this timer's row.
fn settles_timer(group: &Group, id: &Id) -> bool {
    group.batches.iter().any(|batch| {
        batch.writes.iter().any(|write| match write {
            Write::Delete(key) => TimerKey::decode(key)
                .is_ok_and(|key| key.kind.0 == id.kind && key.reference == id.reference),
            Write::Put(..) => false,
        })
    })
}

fn counts(report: &RunReport) -> Counts {
    let total = &report.total;
    Counts {
        fired: total.fired + total.rescheduled,
        failed: total.failed,
        raced: total.raced,
        deferred: total.deferred,
        held: total.held,
        doubtful: total.unknown_outcome,
        set_aside: report.quarantined,
        stopped: report.stopped_on_budget,
    }
}

impl Ours {
    /// References that lie in the store more than once.
    pub fn doubles(&self) -> usize {
        let mut seen = BTreeSet::new();
        let rows = self.memory.rows(&self.partition);
        rows.iter()
            .filter_map(|(key, _)| TimerKey::decode(key).ok())
            .filter(|key| !seen.insert(Id::new(key.kind.0, key.reference.clone())))
            .count()
    }
}
