//! The histories of the sweeps: what the script asked for and what committed, and how what an image
//! holds goes on to its end, held to every invariant.

use std::sync::Arc;

use dueline::Bytes;
use dueline::rows::TimerKey;
use dueline::runtime::Clock;
use dueline::store::{Batch, Partition, StoreError, WakeStore, Write};
use dueline::timers::{Cancelled, Scheduled, TimerKind};
use dueline_history::{
    Commit, EffectMark, EngineRules, Event, Occurrence, Outcome, Recorder, Recurring, Retries,
    Source, Told, Verb, VerbName, What, Witness, check_all, keep, scan, trace_hash,
};
use dueline_testkit::ManualClock;

use crate::Failure;
use crate::world::{
    Counter, KINDS, REPEAT_EVERY_MS, Rows, counter_of, read_all, retry_policy, run,
};

/// The one node; each opening of the database is a start of it.
const NODE: u16 = 0;

/// A history that has begun: what it is held to.
pub(crate) fn begun(clock: &ManualClock) -> Recorder {
    let rules = EngineRules {
        skew_ms: Some(0),
        recurring: KINDS
            .map(|kind| Recurring {
                kind: kind.0,
                every_ms: REPEAT_EVERY_MS,
                may_skip: false,
            })
            .to_vec(),
        retries: KINDS
            .map(|kind| Retries::of(kind, &retry_policy()))
            .to_vec(),
        wakes_kept: true,
        ..EngineRules::default()
    };
    let recorder = Recorder::new();
    let begin = What::Begin {
        seed: 0,
        deadline_ms: 0,
        lag_ms: 0,
        rules: Some(Box::new(rules)),
    };
    recorder.record(now_ms(clock), &"script".into(), begin);
    recorder
}

fn now_ms(clock: &ManualClock) -> u64 {
    u64::try_from(clock.wall_ms()).unwrap_or(0)
}

/// The store of an engine that starts now.
pub(crate) fn witness(
    store: &Arc<dyn WakeStore>,
    history: &Arc<Recorder>,
    clock: &ManualClock,
) -> Witness {
    // Starts come in the order of the history, so its length tells one from the next.
    let epoch = history.len() as u64;
    let clock = Arc::new(clock.clone()) as Arc<dyn Clock>;
    let (store, history) = (Arc::clone(store), Arc::clone(history));
    let witness = Witness::new(store, history, clock, (NODE, epoch), marked);
    witness.record(What::Started { node: NODE, epoch });
    witness.record(What::Registry {
        node: NODE,
        kinds: KINDS.map(|kind| kind.0).to_vec(),
    });
    witness
}

/// A batch that counts a timer and deletes its row is its effect.
fn marked(batch: &Batch) -> (Vec<EffectMark>, Vec<Occurrence>) {
    let mut effects = Vec::new();
    for write in &batch.writes {
        let Write::Put(key, value) = write else {
            continue;
        };
        let Some(reference) = counter_of(key) else {
            continue;
        };
        let ended = batch.writes.iter().find_map(|write| match write {
            Write::Delete(key) => TimerKey::decode(key)
                .ok()
                .filter(|it| it.reference == reference),
            Write::Put(..) => None,
        });
        if let (Some(counter), Some(ended)) = (Counter::read(value), ended) {
            effects.push(EffectMark {
                occurrence: Occurrence {
                    kind: ended.kind.0,
                    reference: ended.reference.into(),
                    generation: ended.generation,
                },
                attempt: counter.attempt,
                due_ms: counter.due_ms,
                next_due_ms: counter.next_due_ms,
            });
        }
    }
    (effects, Vec::new())
}

/// What is asked for, still without its number.
pub(crate) fn asked(
    partition: &Partition,
    kind: TimerKind,
    reference: &str,
    verb: VerbName,
) -> Verb {
    Verb {
        request: 0,
        partition: partition.into(),
        kind: kind.0,
        reference: Bytes::copy_from_slice(reference.as_bytes()).into(),
        verb,
        policy: None,
        named: false,
        due_ms: None,
    }
}

/// What an answer of a verb says.
pub(crate) trait Answer {
    /// As a history tells it.
    fn told(&self) -> Told;
}

impl Answer for Scheduled {
    fn told(&self) -> Told {
        Told::Ok {
            outcome: self.outcome.into(),
            generation: self.generation,
        }
    }
}

impl Answer for Option<Cancelled> {
    fn told(&self) -> Told {
        Told::Ok {
            outcome: self.map_or(Outcome::NotFound, |_| Outcome::Removed),
            generation: self.map_or(0, |it| it.generation),
        }
    }
}

impl Answer for bool {
    fn told(&self) -> Told {
        Told::Ok {
            outcome: if *self {
                Outcome::Written
            } else {
                Outcome::Kept
            },
            generation: 0,
        }
    }
}

/// A history that begins with what a database holds.
pub(crate) fn from_rows(
    store: &dyn WakeStore,
    clock: &ManualClock,
) -> Result<Arc<Recorder>, StoreError> {
    let recorder = begun(clock);
    for partition in run(store, store.partitions(None, 1_000))?.partitions {
        let found = run(store, scan(store, &partition, false))?;
        let rows = found.rows.into_iter();
        let commit = Commit {
            source: Source::User,
            partition: found.partition,
            store_ms: now_ms(clock),
            rows: rows.map(|(key, value)| (key, Some(value))).collect(),
            wakes: found.wakes,
            ..Commit::default()
        };
        recorder.record(now_ms(clock), &"script".into(), What::Commit(commit));
    }
    Ok(Arc::new(recorder))
}

/// A history that goes on from these events behind a crash: the store holds what they say.
pub(crate) fn behind_crash(
    store: &dyn WakeStore,
    clock: &ManualClock,
    mut events: Vec<Event>,
    recovered: Option<(u64, u64)>,
) -> Result<Arc<Recorder>, StoreError> {
    let mut more = vec![What::Stopped {
        node: NODE,
        crashed: true,
    }];
    more.extend(recovered.map(|(once, twice)| What::Recovered { once, twice }));
    for partition in run(store, store.partitions(None, 1_000))?.partitions {
        more.push(What::Scan(run(store, scan(store, &partition, false))?));
    }
    events.extend(more.into_iter().map(|what| Event {
        at_ms: now_ms(clock),
        actor: "script".into(),
        what,
    }));
    Ok(Arc::new(Recorder::behind(events)))
}

/// Everything has run to its end: holds the whole history to every invariant.
///
/// # Errors
/// What it broke, and where the history is kept.
pub(crate) fn judge(
    store: &dyn WakeStore,
    clock: &ManualClock,
    history: &Recorder,
) -> Result<(), Failure> {
    for partition in run(store, store.partitions(None, 1_000))?.partitions {
        let mut found = run(store, scan(store, &partition, true))?;
        // A wake too many is a look for nothing, and may be left.
        found.wakes.clear();
        history.record(now_ms(clock), &"script".into(), What::Scan(found));
    }
    let events = history.take();
    let broken = check_all(&events);
    if broken.is_empty() {
        return Ok(());
    }
    // Tests run side by side: the name tells one history from another.
    let name = format!("faultfs-{:016x}", trace_hash(&events));
    Err(keep(&name, &events, &broken).into())
}

/// A fingerprint of all rows: 64-bit FNV-1a over lengths and bytes.
pub(crate) fn fingerprint(store: &dyn WakeStore) -> Result<u64, StoreError> {
    let rows: Rows = run(store, read_all(store))?;
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut add = |bytes: &[u8]| {
        for byte in bytes {
            hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    };
    for ((partition, key), value) in &rows {
        for part in [partition, key, value] {
            add(&(part.len() as u64).to_be_bytes());
            add(part);
        }
    }
    Ok(hash)
}
