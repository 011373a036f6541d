//! What handlers do: a function of the seed, the timer and the tick, the same on both sides.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;

use crate::random::Random;
use crate::{Id, Run, Scenario};

/// What a timer's handler does in one tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// Commits its effects; the timer goes.
    Done,
    /// Adds 1 to a row that all share, guarded.
    Count,
    /// Schedules itself again so much after the tick's time, in milliseconds.
    Later(u64),
    /// Schedules itself again so much before the tick's time, in milliseconds.
    Past(u64),
    /// Schedules itself again at the due it was told.
    SameDue,
    /// Schedules another timer so much after the tick's time, in milliseconds, and is done.
    Spawn(u64),
    /// Fails with an error.
    Fail,
    /// Asks to be tried again.
    Retry,
    /// Guards something that never holds.
    LoseAlways,
    /// Guards a row that another writer changes during its first run.
    LoseOnce,
    /// May commit until a time that has passed.
    Late,
    /// Another writer deletes the timer during the run.
    Vanish,
    /// Another writer moves the timer so much after the tick's time, in milliseconds, during the run.
    MoveAway(u64),
    /// Commits a batch of so many operations.
    Operations(usize),
    /// Writes its own row.
    OwnRow,
    /// Takes so long, in milliseconds, and is done.
    Slow(u64),
    /// Takes so long, in milliseconds, while the wall clock steps back by a second, and is done.
    SlowBackward(u64),
    /// Panics.
    Panic,
}

/// A guard of a handler's batch.
#[derive(Clone, Debug)]
pub(crate) enum Guard {
    Unchanged(Bytes, Option<Bytes>),
    NotAfter(u64),
}

/// What a handler returns.
#[derive(Clone, Debug)]
pub(crate) enum Said {
    Done,
    Reschedule(u64),
    Retry,
    Fail,
}

/// A handler's whole answer.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) said: Said,
    pub(crate) guards: Vec<Guard>,
    pub(crate) puts: Vec<(Bytes, Bytes)>,
    pub(crate) spawned: Option<(Id, u64)>,
    pub(crate) writes_own_row: bool,
}

/// What a handler can do on either side beside returning an answer.
pub(crate) trait Hands {
    /// Reads a row of the partition as handlers read.
    fn read(&self, key: &Bytes) -> Option<Bytes>;
    /// Writes a row as another writer.
    fn interfere(&self, key: Bytes, value: Bytes);
    /// Deletes or moves the timer's own row as another writer.
    fn remove_timer(&self, id: &Id, then_at_ms: Option<u64>);
    /// Lets time pass.
    fn pass(&self, ms: u64);
    /// Steps the wall clock back.
    fn step_back(&self, ms: u64);
}

/// The script of a scenario, and what one side's handlers have done in the tick under way.
#[derive(Debug)]
pub struct Script {
    scenario: Scenario,
    forced: Option<Act>,
    tick: Mutex<Tick>,
}

#[derive(Debug, Default)]
struct Tick {
    number: u32,
    now_ms: u64,
    runs: Vec<Run>,
}

impl Script {
    /// The script of a scenario.
    pub fn new(scenario: Scenario) -> Arc<Self> {
        Arc::new(Self {
            scenario,
            forced: None,
            tick: Mutex::default(),
        })
    }

    /// A script in which every timer does the same.
    pub fn always(act: Act) -> Arc<Self> {
        Arc::new(Self {
            scenario: Scenario::plain(0),
            forced: Some(act),
            tick: Mutex::default(),
        })
    }

    pub(crate) fn begin(&self, number: u32, now_ms: u64) {
        *self.lock() = Tick {
            number,
            now_ms,
            runs: Vec::new(),
        };
    }

    pub(crate) fn take_runs(&self) -> Vec<Run> {
        std::mem::take(&mut self.lock().runs)
    }

    /// What a timer does in a tick.
    pub fn act(&self, tick: u32, id: &Id) -> Act {
        self.forced
            .unwrap_or_else(|| draw(&self.scenario, tick, id))
    }

    pub(crate) fn run(&self, id: &Id, told_ms: u64, ctx_now_ms: u64, hands: &dyn Hands) -> Answer {
        let (number, now_ms) = {
            let mut tick = self.lock();
            tick.runs.push(Run {
                id: id.clone(),
                told_ms,
                now_ms: ctx_now_ms,
            });
            (tick.number, tick.now_ms)
        };
        answer(self.act(number, id), number, now_ms, id, told_ms, hands)
    }

    fn lock(&self) -> MutexGuard<'_, Tick> {
        self.tick.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(crate) const LOG: &[u8] = b"log";
pub(crate) const COUNTER: &[u8] = b"counter";
pub(crate) const EFFECT: &[u8] = b"effect/";

#[allow(clippy::panic, reason = "a handler that panics is one of the acts")]
fn answer(act: Act, tick: u32, now_ms: u64, id: &Id, told_ms: u64, hands: &dyn Hands) -> Answer {
    let mut answer = Answer {
        said: Said::Done,
        guards: Vec::new(),
        puts: Vec::new(),
        spawned: None,
        writes_own_row: false,
    };
    match act {
        Act::Done => {}
        Act::Count => count(&mut answer, hands),
        Act::Later(ms) => answer.said = Said::Reschedule(now_ms.saturating_add(ms)),
        Act::Past(ms) => answer.said = Said::Reschedule(now_ms.saturating_sub(ms)),
        Act::SameDue => answer.said = Said::Reschedule(told_ms),
        Act::Spawn(ms) => {
            let mut reference = id.reference.to_vec();
            reference.extend_from_slice(format!(".{tick}").as_bytes());
            answer.spawned = Some((Id::new(id.kind, reference), now_ms.saturating_add(ms)));
        }
        Act::Fail => answer.said = Said::Fail,
        Act::Retry => answer.said = Said::Retry,
        Act::LoseAlways => answer.guards.push(Guard::Unchanged(
            Bytes::from_static(b"never there"),
            Some(Bytes::from_static(b"this")),
        )),
        Act::LoseOnce => {
            let mut key = b"rival/".to_vec();
            key.extend_from_slice(&id.reference);
            let key = Bytes::from(key);
            let found = hands.read(&key);
            if found.is_none() {
                hands.interfere(key.clone(), Bytes::from_static(b"changed"));
            }
            answer.guards.push(Guard::Unchanged(key, found));
        }
        Act::Late => answer
            .guards
            .push(Guard::NotAfter(now_ms.saturating_sub(1))),
        Act::Vanish => hands.remove_timer(id, None),
        Act::MoveAway(ms) => hands.remove_timer(id, Some(now_ms.saturating_add(ms))),
        Act::Operations(_) => {}
        Act::OwnRow => answer.writes_own_row = true,
        Act::Slow(ms) => hands.pass(ms),
        Act::SlowBackward(ms) => {
            hands.pass(ms);
            hands.step_back(1_000);
        }
        Act::Panic => panic!("a handler panics, as the script says"),
    }
    if matches!(answer.said, Said::Done | Said::Reschedule(_)) {
        note_effect(&mut answer, id, hands);
    }
    if let Act::Operations(operations) = act {
        let held = answer.guards.len() + answer.puts.len();
        for number in held..operations {
            let key = Bytes::from(format!("bulk/{number}"));
            answer.puts.push((key, Bytes::new()));
        }
    }
    answer
}

/// Adds the row of the effect, and the timer to the log, which is read and guarded.
fn note_effect(answer: &mut Answer, id: &Id, hands: &dyn Hands) {
    let log = Bytes::from_static(LOG);
    let found = hands.read(&log);
    let mut longer = found.clone().unwrap_or_default().to_vec();
    longer.push(id.kind);
    longer.extend_from_slice(&id.reference);
    longer.push(b'\n');
    answer.guards.push(Guard::Unchanged(log.clone(), found));
    answer.puts.push((log, longer.into()));
    let mut effect = EFFECT.to_vec();
    effect.push(id.kind);
    effect.extend_from_slice(&id.reference);
    answer.puts.push((effect.into(), Bytes::new()));
}

fn count(answer: &mut Answer, hands: &dyn Hands) {
    let key = Bytes::from_static(COUNTER);
    let found = hands.read(&key);
    let sum = count_of(found.as_ref()).saturating_add(1);
    answer.guards.push(Guard::Unchanged(key.clone(), found));
    answer
        .puts
        .push((key, Bytes::copy_from_slice(&sum.to_be_bytes())));
}

pub(crate) fn count_of(value: Option<&Bytes>) -> u64 {
    value
        .and_then(|bytes| bytes.as_ref().try_into().ok())
        .map_or(0, u64::from_be_bytes)
}

/// What a timer does, drawn from the seed.
fn draw(scenario: &Scenario, tick: u32, id: &Id) -> Act {
    // Some fail for ever, so that attempts add up.
    if Random::of_name(scenario.seed, 0, &id.reference).one_in(8) {
        return Act::Fail;
    }
    let random = Random::of_name(scenario.seed, u64::from(tick) + 1, &id.reference);
    let past = random.below(3) * random.below(5_000);
    let later = 1 + random.below(3) * random.below(20_000);
    match random.below(if scenario.races { 20 } else { 11 }) {
        0..=3 => Act::Done,
        4 => Act::Count,
        5 | 6 => Act::Later(later),
        7 => Act::Spawn(later),
        8 => Act::Fail,
        9 => Act::Retry,
        10 if scenario.slow => Act::Slow(1 + random.below(900)),
        10 => Act::Count,
        // A reschedule into the past may run twice in a tick that reads many pages there.
        11 | 12 if scenario.is_paged() => Act::Later(later),
        11 => Act::Past(past),
        12 => Act::SameDue,
        13 => Act::LoseAlways,
        14 => Act::LoseOnce,
        15 => Act::Late,
        16 => Act::Vanish,
        17 => Act::MoveAway(later),
        18 => random
            .pick(&[92, 93, 98, 99])
            .map_or(Act::Done, Act::Operations),
        _ => Act::OwnRow,
    }
}
