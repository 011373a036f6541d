//! Guards folded into their writes, effects combined over a whole transaction: for random batches
//! and settles of many callers in one transaction the outcomes and the rows are those of the memory
//! store, which runs them one after another by the letter of the contract. The wakes may differ, so
//! the audit looks at them: it must find nothing to repair.
#![cfg(test)]
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

mod support;

use std::cell::Cell;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use dueline::memory::MemoryStore;
use dueline::runtime::Clock;
use dueline::store::{
    Batch, BatchOutcome, Group, Key, Partition, Precondition, ReadStore, ScanRange, Value,
    WakeSettle, WakeStore, Write,
};
use dueline::timers::TimerKind;
use dueline_sqlite::{Durability, SqliteStore};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use support::{Home, KIND, block_on, partition, pause, poll_once, timer, wakes};

const OTHER: TimerKind = TimerKind(17);

fn key() -> impl Strategy<Value = Key> {
    let mut keys = ["a", "b", "c"].map(Key::from).to_vec();
    keys.extend([500, 2_000, 3_000].map(|due_ms| timer(KIND, due_ms, 1)));
    keys.extend([timer(OTHER, 3_000, 1), pause(KIND)]);
    select(keys)
}

fn settle() -> impl Strategy<Value = WakeSettle> {
    let kind = select(vec![KIND, OTHER]);
    let served = vec(select(vec![1_000, 2_000, 3_000]), 0..3);
    (kind, served).prop_map(|(kind, served_ms)| WakeSettle { kind, served_ms })
}

fn value() -> impl Strategy<Value = Value> {
    select(vec![Value::from("1"), Value::from("2")])
}

fn guard() -> impl Strategy<Value = Precondition> {
    prop_oneof![
        4 => key().prop_map(Precondition::Absent),
        4 => key().prop_map(Precondition::Present),
        2 => (key(), value()).prop_map(|(key, value)| Precondition::Equals(key, value)),
        1 => Just(Precondition::NotAfter(5)),
        1 => Just(Precondition::NotBefore(5)),
    ]
}

fn write() -> impl Strategy<Value = Write> {
    prop_oneof![
        (key(), value()).prop_map(|(key, value)| Write::Put(key, value)),
        key().prop_map(Write::Delete),
    ]
}

/// A write with the guard that folds into it, as the engine's own batches have them.
fn guarded_write() -> impl Strategy<Value = (Vec<Precondition>, Vec<Write>)> {
    write().prop_map(|write| {
        let key = write.key().clone();
        let guard = match &write {
            Write::Put(..) => Precondition::Absent(key),
            Write::Delete(_) => Precondition::Present(key),
        };
        (vec![guard], vec![write])
    })
}

fn batch() -> impl Strategy<Value = Batch> {
    let free = (vec(guard(), 0..3), vec(write(), 0..4));
    (vec(guarded_write(), 0..3), free, any::<bool>()).prop_map(|(pairs, free, guards_first)| {
        let mut batch = Batch::new();
        let mut parts = pairs;
        parts.insert(if guards_first { 0 } else { parts.len() }, free);
        for (guards, writes) in parts {
            batch.preconditions.extend(guards);
            batch.writes.extend(writes);
        }
        batch
    })
}

type Calls = Vec<(bool, Group)>;

fn group() -> impl Strategy<Value = Group> {
    (vec(batch(), 0..4), vec(settle(), 0..2))
        .prop_map(|(batches, settles)| Group { batches, settles })
}

fn rows(store: &dyn ReadStore, partition: &Partition) -> Vec<(Key, Value)> {
    block_on(store.scan(partition, &ScanRange::new("", "z", 100)))
        .unwrap()
        .rows
}

fn outcomes(
    store: &dyn WakeStore,
    names: &[Partition; 2],
    calls: &Calls,
) -> Vec<Vec<BatchOutcome>> {
    let mut futures: Vec<_> = calls
        .iter()
        .map(|(second, group)| store.apply_all(&names[usize::from(*second)], group.clone()))
        .collect();
    let early: Vec<_> = futures
        .iter_mut()
        .map(|future| match poll_once(future) {
            std::task::Poll::Ready(done) => Some(done),
            std::task::Poll::Pending => None,
        })
        .collect();
    store.before_park();
    early
        .into_iter()
        .zip(futures)
        .map(|(early, future)| {
            let done = early.unwrap_or_else(|| block_on(future));
            assert!(done.stopped_by.is_none());
            done.outcomes
        })
        .collect()
}

#[test]
fn many_callers_in_one_transaction_come_to_what_one_after_another_comes_to() {
    let home = Home::new();
    let options = home.options().durability(Durability::ProcessCrash);
    let sqlite = SqliteStore::open(home.path(), options).unwrap();
    let memory = MemoryStore::new(Arc::clone(&home.clock) as Arc<dyn Clock>);
    let sqlite_async = sqlite.clone();
    let stores = Mutex::new((sqlite.for_blocking_threads().unwrap(), memory));
    let case = Cell::new(0);
    let calls = vec((any::<bool>(), group()), 1..8);
    let seeded = vec((key(), value()), 0..4);
    let config = ProptestConfig {
        cases: 1_500,
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    proptest!(config, |(calls in calls, seeded in seeded)| {
        let stores = stores.lock().unwrap();
        let (sqlite, memory) = (&*stores.0, &stores.1);
        case.set(case.get() + 1);
        let names = ["x", "y"].map(|side| partition(&format!("{:06}{side}", case.get())));
        let seed = seeded.iter().fold(Batch::new(), |batch, (key, value)| {
            batch.put(key.clone(), value.clone())
        });
        let seed = vec![(false, Group::from(vec![seed]))];
        prop_assert_eq!(outcomes(sqlite, &names, &seed), outcomes(memory, &names, &seed));
        prop_assert_eq!(outcomes(sqlite, &names, &calls), outcomes(memory, &names, &calls));
        for name in &names {
            prop_assert_eq!(rows(sqlite, name), rows(memory, name));
        }
        let before = partition(&format!("{:06}", case.get()));
        let audit = block_on(sqlite_async.audit_wakes(Some(&before), 2)).unwrap();
        prop_assert_eq!(audit.repairs, []);
    });
    let counters = sqlite.counters();
    assert!(counters.transactions < counters.applies, "{counters:?}");
    // The partitions listed are those that hold a row or a wake.
    let listed = block_on(sqlite.partitions(None, 10_000))
        .unwrap()
        .partitions;
    let woken: BTreeSet<_> = wakes(&sqlite)
        .into_iter()
        .map(|(_, name, _)| name)
        .collect();
    for case in 1..=case.get() {
        for name in ["x", "y"].map(|side| partition(&format!("{case:06}{side}"))) {
            let held = !rows(&sqlite, &name).is_empty() || woken.contains(&name.to_string());
            assert_eq!(listed.binary_search(&name).is_ok(), held, "{name}");
        }
    }
}
