//! Random timers, budgets and races that can be played several times.

use dueline::memory::MemoryStore;
use dueline::rows::{Flags, Header, NameKey, NameRow, TimerKey, TimerRow};
use dueline::store::{Batch, Key, Partition};
use dueline::timers::TickBudget;
use dueline_testkit::commit;
use dueline_testkit::model::Random;

use dueline_testkit::model::script::{KINDS, Op, REFERENCES, payload, random_payload};

pub const START_MS: u64 = 1_000_000;

/// What another writer does just before the batch of a timer commits for the first time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Race {
    Cancel,
    Replace,
    /// Writes the row that many handlers guard.
    Log,
}

#[derive(Clone, Debug)]
pub struct Plan {
    pub timers: Vec<(TimerKey, TimerRow)>,
    pub races: Vec<(Key, Race)>,
    pub budgets: Vec<TickBudget>,
}

impl Plan {
    pub fn of(seed: u64, races: &[Race]) -> Self {
        let mut random = Random::new(seed);
        let mut timers = Vec::new();
        for number in 0..random.below(70) + 2 {
            let named = random.chance(40);
            let key = TimerKey {
                kind: random.pick(&KINDS),
                due_ms: START_MS - random.below(30) * 10,
                generation: number + 1_000,
                reference: if named {
                    REFERENCES[number as usize % 5].into()
                } else {
                    format!("r{number}").into()
                },
            };
            let taken = |(other, row): &(TimerKey, TimerRow)| {
                row.header.flags.named && other.kind == key.kind && other.reference == key.reference
            };
            if named && timers.iter().any(taken) {
                continue;
            }
            timers.push((
                key.clone(),
                row(named, key.due_ms, random_payload(&mut random)),
            ));
        }
        let hit = (0..races.len().min(1) * 3)
            .map(|_| {
                let place = random.below(timers.len() as u64) as usize;
                (timers[place].0.encode(), random.pick(races))
            })
            .collect();
        // With races the budget never ends a tick: a timer that an earlier one removes, until that
        // one loses a race, is back when others may have used up the fires, and waits a tick.
        let few = if races.is_empty() { 1 } else { 1_000 };
        let budgets = (0..60)
            .map(|_| TickBudget {
                max_fired: random.pick(&[1, 2, 7, 64, 1_000]).max(few),
                max_per_kind: random.pick(&[1, 5, 32, 1_000]).max(few),
                max_scanned: u32::MAX,
                max_elapsed_ms: 30_000,
            })
            .collect();
        Self {
            timers,
            races: hit,
            budgets,
        }
    }
}

fn row(named: bool, original_due_ms: u64, payload: dueline::Bytes) -> TimerRow {
    let flags = Flags {
        named,
        ..Flags::default()
    };
    let header = Header {
        flags,
        original_due_ms,
        ..Header::default()
    };
    TimerRow { header, payload }
}

pub fn put(key: &TimerKey, row: &TimerRow, batch: Batch) -> Batch {
    let batch = batch.put(key.encode(), row.encode());
    if !row.header.flags.named {
        return batch;
    }
    let name = NameKey {
        kind: key.kind,
        reference: key.reference.clone(),
    };
    batch.put(name.encode(), NameRow::of(key, &row.header).encode())
}

/// Does to the timer of this key what the race says, as another writer would.
pub fn run_race(memory: &MemoryStore, partition: &Partition, at: &Key, race: Race, number: u64) {
    let rows = memory.rows(partition);
    let value = |key: &Key| rows.iter().find(|(found, _)| found == key).map(|(_, v)| v);
    if race == Race::Log {
        let log = value(&Key::from_static(b"log"))
            .cloned()
            .unwrap_or_default();
        let batch = Batch::new().put("log", [&log[..], b"! "].concat());
        return commit(memory, partition, batch);
    }
    let Some(found) = value(at) else { return };
    let key = TimerKey::decode(at).unwrap();
    let old = TimerRow::decode(found).unwrap();
    let name = NameKey {
        kind: key.kind,
        reference: key.reference.clone(),
    };
    let mut batch = Batch::new().delete(at.clone());
    if old.header.flags.named && race != Race::Replace {
        batch = batch.delete(name.encode());
    }
    if race == Race::Replace {
        let key = TimerKey {
            due_ms: START_MS + 800,
            generation: number + 1,
            ..key
        };
        let new = row(
            old.header.flags.named,
            key.due_ms,
            payload(Op::Log, 0, key.kind, "a"),
        );
        batch = put(&key, &new, batch);
    }
    commit(memory, partition, batch);
}
