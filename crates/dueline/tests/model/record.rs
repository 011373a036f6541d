//! What happens in a history, as the events that its checkers read.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use dueline::Bytes;
use dueline::runtime::Clock;
use dueline::store::{Key, Partition, ReadStore, ScanRange};
use dueline_history::{
    Commit, EffectMark, LaneWake, Occurrence, Octets, Recorder, RunLog, Scan, Source, Told, Verb,
    What,
};
use dueline_testkit::model::{self, Arena, Committed, EffectTold, cuts_of, effects_told};
use dueline_testkit::{ManualClock, block_on};

/// The handles of the first node; the second has the next number. Requests count from 1 below them.
const NODES: u64 = 1 << 32;

/// Records what happens; a handle is cheap to clone.
#[derive(Clone)]
pub struct Record {
    recorder: Arc<Recorder>,
    /// The store's clock, whose time that is never set is the true one.
    clock: ManualClock,
    requests: Arc<AtomicU64>,
    turns: Arc<AtomicU64>,
    epochs: Arc<Mutex<[u64; 2]>>,
    actors: Arc<[Arc<str>; 4]>,
}

impl Record {
    pub fn new(clock: &ManualClock) -> Self {
        let actors = ["node-0", "node-1", "client", "test"].map(Arc::from);
        Self {
            recorder: Arc::default(),
            clock: clock.clone(),
            requests: Arc::default(),
            turns: Arc::default(),
            epochs: Arc::default(),
            actors: Arc::new(actors),
        }
    }

    pub fn take(&self) -> Vec<dueline_history::Event> {
        self.recorder.take()
    }

    /// The test itself says this.
    pub fn test(&self, what: What) {
        self.by(3, what);
    }

    pub fn node(&self, node: usize, what: What) {
        self.by(node, what);
    }

    fn by(&self, actor: usize, what: What) {
        let now_ms = true_ms(self.clock.monotonic());
        self.recorder.record(now_ms, &self.actors[actor], what);
    }

    /// A node begins anew; the number of its handle of the store.
    pub fn start(&self, node: usize, kinds: &[u8]) -> u64 {
        let mut epochs = self.epochs.lock().unwrap();
        let epoch = epochs.iter().max().unwrap() + 1;
        epochs[node] = epoch;
        let number = node as u16;
        let started = What::Started {
            node: number,
            epoch,
        };
        self.by(node, started);
        let kinds = kinds.to_vec();
        self.by(
            node,
            What::Registry {
                node: number,
                kinds,
            },
        );
        NODES + node as u64 + (epoch << 33)
    }

    pub fn stop(&self, node: usize) {
        let stopped = What::Stopped {
            node: node as u16,
            crashed: true,
        };
        self.by(node, stopped);
    }

    pub fn next_request(&self) -> u64 {
        self.requests.fetch_add(1, Ordering::Relaxed) + 1
    }

    pub fn next_turn(&self) -> u64 {
        self.turns.fetch_add(1, Ordering::Relaxed) + 1
    }

    pub fn verb(&self, verb: Verb) {
        self.by(2, What::Verb(verb));
    }

    pub fn told(&self, request: u64, told: Told) {
        self.by(2, What::Told { request, told });
    }

    /// Records every commit of the arena.
    pub fn watch(&self, arena: &Arena) {
        let record = self.clone();
        arena.watch(move |committed| {
            let (actor, commit) = commit_of(committed);
            record.by(actor, What::Commit(commit));
        });
    }

    /// Records every row and wake of a partition.
    pub fn scan(&self, arena: &Arena, partition: &Partition, at_rest: bool) {
        let mut rows = Vec::new();
        let mut cursor = None;
        loop {
            let range = ScanRange::new(Key::new(), Bytes::from_static(&[255; 8]), 1_000);
            let range = range.after(cursor);
            let page = block_on(arena.memory().scan(partition, &range)).unwrap();
            rows.extend(page.rows.into_iter().map(|(k, v)| (Octets(k), Octets(v))));
            cursor = page.next;
            if cursor.is_none() {
                break;
            }
        }
        let wakes = arena.memory().wakes();
        self.test(What::Scan(Scan {
            partition: partition.into(),
            at_rest,
            rows,
            wakes: wakes.iter().map(LaneWake::from).collect(),
        }));
    }
}

/// Where the runs of a node are recorded, if anywhere.
#[derive(Clone)]
pub struct NodeLog(pub Option<(Record, usize)>);

impl RunLog for NodeLog {
    fn node(&self) -> u16 {
        self.0.as_ref().map_or(0, |(_, node)| *node as u16)
    }

    fn turn(&self) -> u64 {
        0
    }

    fn log(&self, what: What) {
        if let Some((record, node)) = &self.0 {
            record.by(*node, what);
        }
    }
}

fn effect_of(told: &EffectTold) -> EffectMark {
    EffectMark {
        occurrence: occurrence(&told.occurrence),
        attempt: told.attempt,
        due_ms: told.due_ms,
        next_due_ms: told.next_due_ms,
    }
}

fn true_ms(since_start: Duration) -> u64 {
    super::history::START_MS as u64 + since_start.as_millis() as u64
}

fn occurrence(of: &model::Occurrence) -> Occurrence {
    Occurrence {
        kind: of.kind.0,
        reference: Octets(of.reference.clone()),
        generation: of.generation,
    }
}

fn commit_of(committed: &Committed<'_>) -> (usize, Commit) {
    let owner = committed.owner;
    let node = (owner >= NODES).then_some(usize::from(owner & 1 == 1));
    let mut commit = match committed.batch {
        Some(batch) => Commit {
            effects: effects_told(batch).iter().map(effect_of).collect(),
            cuts: cuts_of(batch).iter().map(occurrence).collect(),
            ..Commit::of_batch(committed.partition, batch)
        },
        None => Commit {
            partition: committed.partition.into(),
            ..Commit::default()
        },
    };
    commit.source = match (committed.batch, committed.source) {
        (None, _) => Source::Store,
        (Some(_), model::Source::Engine) => Source::Engine,
        (Some(_), model::Source::User) => Source::User,
    };
    commit.node = node.map(|node| node as u16);
    commit.request = (node.is_none() && owner > 0).then_some(owner);
    commit.epoch = owner >> 33;
    commit.store_ms = committed.now_ms;
    commit.wakes = committed.wakes.iter().map(LaneWake::from).collect();
    commit.landed_late = committed.late_since.is_some();
    commit.asked_ms = committed.late_since.map(true_ms);
    (node.unwrap_or(2), commit)
}
