//! What happens in a history, as the events that its checkers read.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use dueline::Bytes;
use dueline::runtime::Clock;
use dueline::store::{Batch, Key, Partition, ReadStore, ScanRange, Write};
use dueline::timers::DueTimer;
use dueline_history::{
    Commit, EffectMark, LaneWake, Occurrence, Octets, Recorder, Run, Scan, Source, Told, Verb, What,
};
use dueline_testkit::model::{
    self, Arena, Committed, cuts_of, effect_key, effect_key_of, effects_of,
};
use dueline_testkit::{ManualClock, block_on};

pub use dueline_history::Ended;

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

    /// A run of a handler begins: it is recorded when it ends, or is dropped.
    pub fn run<'a>(
        &'a self,
        (node, is_call): (usize, bool),
        partition: &Partition,
        timer: &DueTimer,
        now_ms: u64,
    ) -> Running<'a> {
        let run = Run {
            node: node as u16,
            turn: 0,
            partition: partition.into(),
            kind: timer.kind().0,
            reference: timer.reference().into(),
            generation: timer.generation(),
            attempt: timer.attempt(),
            due_ms: timer.due_at_ms(),
            now_ms,
            ended: Ended::Cut,
        };
        Running {
            record: self,
            is_call,
            run,
        }
    }
}

/// A run under way.
pub struct Running<'a> {
    record: &'a Record,
    is_call: bool,
    run: Run,
}

impl Running<'_> {
    pub fn end(mut self, ended: Ended) {
        self.run.ended = ended;
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        let mut run = self.run.clone();
        if run.ended == Ended::Cut && std::thread::panicking() {
            run.ended = Ended::Panic;
        }
        let node = usize::from(run.node);
        let what = if self.is_call {
            What::Called(run)
        } else {
            What::Fire(run)
        };
        self.record.by(node, what);
    }
}

/// What the row of an effect says: `attempt:u16 due_ms:u64`, and the due that comes next, if any.
pub fn mark_effect(batch: Batch, timer: &DueTimer, next_due_ms: Option<u64>) -> Batch {
    let mut said = timer.attempt().to_be_bytes().to_vec();
    said.extend(timer.due_at_ms().to_be_bytes());
    said.extend(next_due_ms.iter().flat_map(|due_ms| due_ms.to_be_bytes()));
    batch.put(effect_key(timer), said)
}

fn effect_of(batch: &Batch, of: &model::Occurrence) -> EffectMark {
    let key = effect_key_of(of);
    let mut said = Bytes::new();
    for write in &batch.writes {
        if let Write::Put(at, value) = write
            && *at == key
        {
            said = value.clone();
        }
    }
    let number = |at: usize| Some(u64::from_be_bytes(said.get(at..at + 8)?.try_into().ok()?));
    EffectMark {
        occurrence: occurrence(of),
        attempt: u16::from_be_bytes([said[0], said[1]]),
        due_ms: number(2).unwrap(),
        next_due_ms: number(10),
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
        Some(batch) => {
            let effects = effects_of(batch);
            Commit {
                effects: effects.iter().map(|of| effect_of(batch, of)).collect(),
                cuts: cuts_of(batch).iter().map(occurrence).collect(),
                ..Commit::of_batch(committed.partition, batch)
            }
        }
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
