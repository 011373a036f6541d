//! What a random history is made of, and the model it is held against: rows in a map, guards by the
//! letter of the contract.

use std::collections::BTreeMap;

use dueline::limits::DUE_MS_MAX;
use dueline::rows::{PauseKey, lane_head};
use dueline::store::{Batch, BatchOutcome, Key, Precondition, Value, Write};
use dueline::timers::TimerKind;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use super::subject::{KIND, NOW_MS, OTHER, timer_key};

/// One step of a history. Partitions go by their index.
#[derive(Clone, Debug)]
pub(super) enum Step {
    Apply {
        partition: usize,
        batch: Batch,
    },
    Group {
        partition: usize,
        batches: Vec<Batch>,
        settles: bool,
    },
    Serve {
        limit: usize,
    },
    Advance {
        by_ms: u64,
    },
    Audit,
}

/// How many partitions a history plays in.
pub(super) const PARTITIONS: usize = 3;

/// The keys a history writes: plain ones, timers of three lanes about the first times of the
/// history, damaged timers, pauses.
pub(super) fn pool() -> Vec<Key> {
    let mut keys: Vec<Key> = ["", "a", "w", "w\x01", "z"].map(Key::from).into();
    for kind in [TimerKind::INVALID, KIND, OTHER] {
        for due_ms in [0, NOW_MS + 5, NOW_MS + 50, u64::MAX] {
            keys.push(timer_key(kind, due_ms, "r"));
        }
    }
    keys.extend([
        Key::from("w\0"),
        Key::from("w\0\x10"),
        Key::from("w\0\x10\0\0\x01"),
    ]);
    keys.extend([KIND, OTHER].map(|kind| PauseKey { kind }.encode()));
    keys
}

fn value() -> impl Strategy<Value = Value> {
    select(vec![Value::new(), Value::from("1"), Value::from("2")])
}

fn precondition() -> impl Strategy<Value = Precondition> {
    let bound_ms = || select(vec![0, NOW_MS, NOW_MS + 40, u64::MAX]);
    prop_oneof![
        3 => select(pool()).prop_map(Precondition::Absent),
        2 => select(pool()).prop_map(Precondition::Present),
        2 => (select(pool()), value()).prop_map(|(key, value)| Precondition::Equals(key, value)),
        1 => bound_ms().prop_map(Precondition::NotAfter),
        1 => bound_ms().prop_map(Precondition::NotBefore),
    ]
}

fn write() -> impl Strategy<Value = Write> {
    prop_oneof![
        3 => (select(pool()), value()).prop_map(|(key, value)| Write::Put(key, value)),
        2 => select(pool()).prop_map(Write::Delete),
    ]
}

fn batch() -> impl Strategy<Value = Batch> {
    let guards = prop_oneof![2 => Just(Vec::new()), 1 => vec(precondition(), 1..3)];
    (guards, vec(write(), 0..5)).prop_map(|(preconditions, writes)| Batch {
        preconditions,
        writes,
        uses_reserve: false,
    })
}

pub(super) fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => (0..PARTITIONS, batch())
            .prop_map(|(partition, batch)| Step::Apply { partition, batch }),
        4 => (0..PARTITIONS, vec(batch(), 0..5), any::<bool>())
            .prop_map(|(partition, batches, settles)| Step::Group { partition, batches, settles }),
        3 => (1_usize..5).prop_map(|limit| Step::Serve { limit }),
        2 => (0_u64..40).prop_map(|by_ms| Step::Advance { by_ms }),
        1 => Just(Step::Audit),
    ];
    vec(step, 1..40)
}

/// The rows of one partition as they should be.
#[derive(Clone, Debug, Default)]
pub(super) struct Model {
    pub(super) rows: BTreeMap<Key, Value>,
}

impl Model {
    pub(super) fn apply(&mut self, batch: &Batch, now_ms: u64) -> BatchOutcome {
        for (index, precondition) in batch.preconditions.iter().enumerate() {
            let (key, holds) = match precondition {
                Precondition::Absent(key) => (key, !self.rows.contains_key(key)),
                Precondition::Present(key) => (key, self.rows.contains_key(key)),
                Precondition::Equals(key, value) => (key, self.rows.get(key) == Some(value)),
                Precondition::NotAfter(ms) if now_ms > *ms => {
                    return BatchOutcome::DeadlinePassed {
                        backend_now_ms: now_ms,
                    };
                }
                Precondition::NotBefore(ms) if now_ms < *ms => {
                    return BatchOutcome::TooEarly {
                        backend_now_ms: now_ms,
                    };
                }
                Precondition::NotAfter(_) | Precondition::NotBefore(_) => continue,
            };
            if !holds {
                let observed = self.rows.get(key).cloned();
                return BatchOutcome::PreconditionFailed { index, observed };
            }
        }
        for write in &batch.writes {
            match write {
                Write::Put(key, value) => drop(self.rows.insert(key.clone(), value.clone())),
                Write::Delete(key) => drop(self.rows.remove(key)),
            }
        }
        BatchOutcome::Committed
    }

    /// The latest time at which each lane that is not paused must be looked at.
    pub(super) fn lanes(&self, now_ms: u64) -> BTreeMap<TimerKind, u64> {
        let mut lanes = BTreeMap::new();
        for head in self.rows.keys().filter_map(|key| lane_head(key)) {
            let wanted_ms = head.due_ms.max(now_ms).min(DUE_MS_MAX);
            let paused = head.kind.is_valid()
                && self
                    .rows
                    .contains_key(&PauseKey { kind: head.kind }.encode());
            if !paused {
                lanes
                    .entry(head.kind)
                    .and_modify(|ms: &mut u64| *ms = wanted_ms.min(*ms))
                    .or_insert(wanted_ms);
            }
        }
        lanes
    }
}
