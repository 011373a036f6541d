//! A partition under test, the engine's moves done by hand, and the check that names and timers
//! agree.

use std::collections::BTreeMap;
use std::sync::Arc;

use dueline::Bytes;
use dueline::memory::MemoryStore;
use dueline::rows::{
    DeadKey, DeadReason, DeadRow, Failure, NameKey, NameRow, NameState, TimerKey, TimerRow, class,
    is_of_class,
};
use dueline::store::{Batch, BatchOutcome, Key, NamespaceStore, Partition, Value};
use dueline::timers::{
    Policy, Scheduled, Timer, TimerKind, TimerState, TimerStates, TimerView, Timers,
};
use dueline_testkit::{FaultStore, ManualClock, block_on, test_runtime};

pub const NOW_MS: u64 = 10_000;
pub const KIND: TimerKind = TimerKind(16);

pub struct World {
    pub clock: ManualClock,
    pub memory: Arc<MemoryStore>,
    pub store: Arc<FaultStore>,
    pub timers: Timers,
    pub partition: Partition,
}

impl World {
    pub fn new() -> Self {
        Self::with(|memory| memory)
    }

    pub fn with(configure: impl FnOnce(MemoryStore) -> MemoryStore) -> Self {
        let clock = ManualClock::new(NOW_MS.try_into().unwrap());
        let memory = Arc::new(configure(MemoryStore::new(Arc::new(clock.clone()))));
        let store = Arc::new(FaultStore::new(memory.clone()));
        let timers = Timers::new(store.clone(), test_runtime(&clock));
        Self {
            clock,
            memory,
            store,
            timers,
            partition: Partition::new("tenant").unwrap(),
        }
    }

    pub fn schedule(&self, timer: Timer) -> Scheduled {
        block_on(
            self.timers
                .schedule(&self.partition, timer, Policy::Replace),
        )
        .unwrap()
    }

    pub fn get(&self, reference: &str) -> Option<TimerView> {
        block_on(
            self.timers
                .get(&self.partition, KIND, &reference_of(reference)),
        )
        .unwrap()
    }

    pub fn rows(&self) -> BTreeMap<Key, Value> {
        self.memory.rows(&self.partition).into_iter().collect()
    }

    /// The rows of one class.
    pub fn class_rows(&self, class: u8) -> Vec<(Key, Value)> {
        let rows = self.rows().into_iter();
        rows.filter(|(key, _)| is_of_class(key, class)).collect()
    }

    pub fn write(&self, batch: Batch) {
        let outcome = block_on(self.memory.apply(&self.partition, batch)).unwrap();
        assert_eq!(outcome, BatchOutcome::Committed);
    }

    /// A named timer in this state: asked for at 5,000 (pending: 50,000), its next look at `at_ms`.
    pub fn put_in_state(&self, reference: &str, state: TimerState, at_ms: u64) -> u64 {
        let due_ms = if state == TimerState::Pending {
            at_ms
        } else {
            5_000
        };
        let timer = Timer::new(KIND, reference_of(reference)).due_at(due_ms);
        let made = self.schedule(timer.payload("old").named());
        if state != TimerState::Pending {
            self.write(move_batch(
                &self.memory,
                &self.partition,
                reference,
                state,
                at_ms,
            ));
        }
        self.check();
        made.generation
    }

    /// Each name points at a row of its state, each named row has a name that points at it.
    pub fn check(&self) {
        let rows = self.rows();
        let mut pointed_at = BTreeMap::new();
        for (key, value) in rows.iter().filter(|(key, _)| is_of_class(key, class::NAME)) {
            let name = NameKey::decode(key).unwrap();
            let row = NameRow::decode(value).unwrap();
            let target = row.target(&name);
            assert!(rows.contains_key(&target), "{name:?} points at nothing");
            pointed_at.insert(target, row.state);
        }
        for (key, value) in &rows {
            let header = if is_of_class(key, class::TIMER) {
                TimerKey::decode(key).unwrap();
                TimerRow::decode(value).unwrap().header
            } else if is_of_class(key, class::DEAD) {
                DeadRow::decode(value).unwrap().header
            } else {
                continue;
            };
            let state = pointed_at.remove(key);
            assert_eq!(
                header.flags.named,
                state.is_some(),
                "{key:?} and its name disagree"
            );
            let Some(state) = state else { continue };
            let expected = if is_of_class(key, class::DEAD) {
                NameState::Dead
            } else if header.flags.claimed {
                NameState::Claimed
            } else if header.attempt > 0 {
                NameState::Retrying
            } else {
                NameState::Pending
            };
            assert_eq!(
                state, expected,
                "{key:?} is in another state than its name says"
            );
        }
    }
}

pub fn reference_of(reference: &str) -> Bytes {
    Bytes::copy_from_slice(reference.as_bytes())
}

pub fn states(states: &[TimerState]) -> TimerStates {
    states.iter().copied().collect()
}

fn row_at(store: &MemoryStore, partition: &Partition, key: &Key) -> Value {
    let rows = store.rows(partition);
    let found = rows.into_iter().find(|(found, _)| found == key);
    found.expect("the row is there").1
}

/// What the engine does to a named timer that is not dead: a retry, a claim, a death, or (pending)
/// a release.
pub fn move_batch(
    store: &MemoryStore,
    partition: &Partition,
    reference: &str,
    state: TimerState,
    at_ms: u64,
) -> Batch {
    let name = NameKey {
        kind: KIND,
        reference: reference_of(reference),
    };
    let old = NameRow::decode(&row_at(store, partition, &name.encode())).unwrap();
    let from = old.target(&name);
    let mut row = TimerRow::decode(&row_at(store, partition, &from)).unwrap();
    row.header.flags.claimed = false;
    let stored = match state {
        TimerState::Pending => NameState::Pending,
        TimerState::Retrying => {
            row.header.attempt += 1;
            row.header.failure = Some(Failure::new(6_000, "refused"));
            NameState::Retrying
        }
        TimerState::Claimed => {
            row.header.attempt += 1;
            row.header.flags.claimed = true;
            NameState::Claimed
        }
        TimerState::Dead => {
            row.header.attempt = 20;
            row.header.failure = Some(Failure::new(at_ms, "gone"));
            NameState::Dead
        }
    };
    let moved = NameRow {
        state: stored,
        due_ms: at_ms,
        ..old
    };
    let value = if state == TimerState::Dead {
        DeadRow {
            header: row.header,
            reason: DeadReason::Exhausted,
            codec_version: 0,
            payload: row.payload,
        }
        .encode()
    } else {
        row.encode()
    };
    Batch::new()
        .require_equals(name.encode(), old.encode())
        .delete(from)
        .put(moved.target(&name), value)
        .put(name.encode(), moved.encode())
}

/// An anonymous dead timer.
pub fn bury_anonymous(world: &World, reference: &str, generation: u64, row: &DeadRow) -> Key {
    let key = DeadKey {
        kind: KIND,
        dead_at_ms: 9_000,
        generation,
        reference: reference_of(reference),
    }
    .encode();
    world.write(Batch::new().put(key.clone(), row.encode()));
    key
}
