//! Guards folded into their writes, effects combined over a whole transaction: for random batches
//! of many callers in one transaction the outcomes and the rows are those of the memory store, which
//! runs the batches one after another by the letter of the contract.

mod support;

use std::cell::Cell;
use std::sync::{Arc, Mutex};

use dueline::memory::MemoryStore;
use dueline::runtime::Clock;
use dueline::store::{
    Batch, BatchOutcome, Group, Key, Partition, Precondition, ReadStore, ScanRange, Value,
    WakeStore, Write,
};
use dueline_sqlite::{Durability, SqliteStore};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use support::{Home, block_on, partition, poll_once};

const KEYS: [&str; 4] = ["a", "b", "c", "d"];

fn key() -> impl Strategy<Value = Key> {
    select(&KEYS[..]).prop_map(Key::from)
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

type Calls = Vec<(bool, Vec<Batch>)>;

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
        .map(|(second, batches)| {
            store.apply_all(&names[usize::from(*second)], Group::from(batches.clone()))
        })
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
    let stores = Mutex::new((sqlite.for_blocking_threads().unwrap(), memory));
    let case = Cell::new(0);
    let calls = vec((any::<bool>(), vec(batch(), 1..4)), 1..8);
    let seeded = vec((key(), value()), 0..4);
    proptest!(ProptestConfig::with_cases(1_500), |(calls in calls, seeded in seeded)| {
        let stores = stores.lock().unwrap();
        let (sqlite, memory) = (&*stores.0, &stores.1);
        case.set(case.get() + 1);
        let names = ["x", "y"].map(|side| partition(&format!("{side}{}", case.get())));
        let seed = seeded.iter().fold(Batch::new(), |batch, (key, value)| {
            batch.put(key.clone(), value.clone())
        });
        let seed = vec![(false, vec![seed])];
        prop_assert_eq!(outcomes(sqlite, &names, &seed), outcomes(memory, &names, &seed));
        prop_assert_eq!(outcomes(sqlite, &names, &calls), outcomes(memory, &names, &calls));
        for name in &names {
            prop_assert_eq!(rows(sqlite, name), rows(memory, name));
        }
    });
    let counters = sqlite.counters();
    assert!(counters.transactions < counters.applies, "{counters:?}");
    let listed = block_on(sqlite.partitions(None, 10_000))
        .unwrap()
        .partitions;
    let stores = stores.lock().unwrap();
    let expected = block_on(stores.1.partitions(None, 10_000))
        .unwrap()
        .partitions;
    assert_eq!(listed.len(), expected.len());
}
