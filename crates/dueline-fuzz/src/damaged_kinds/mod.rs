//! Stores that hold damaged rows of built-in kinds.

mod damage;
mod judge;
mod parts;
mod verbs;
mod world;

use std::collections::BTreeSet;

use dueline::memory::MemoryStore;
use dueline::store::Partition;
use dueline::timers::TimerError;

use crate::script::Script;
use world::World;

const STEPS_MAX: usize = 48;
/// How much time passes at once, in milliseconds.
const PAUSES_MS: [u64; 5] = [1, 5_000, 20_000, 60_000, 3_600_000];

/// What may be wrong with the kinds.
#[derive(Clone, Copy, Debug)]
pub struct Meddling {
    /// Done to the rows of a partition behind each of its ticks.
    pub behind_tick: fn(&MemoryStore, &Partition),
    /// What is told of a verb, given what it said.
    pub told: fn(Result<(), TimerError>) -> Result<(), TimerError>,
}

impl Meddling {
    /// Nothing is.
    pub const NONE: Self = Self {
        behind_tick: |_, _| {},
        told: |answer| answer,
    };
}

/// One store with two records of every built-in kind, which share its partitions. Rows of the one, and the
/// payloads of its timers, are damaged as the bytes say, rows and timers that nobody has made come in between;
/// every verb is asked of it, time passes, timers fire. The other must not notice.
///
/// Nothing panics, no tick of timers that are due goes on for ever; a verb that needs a row that does not
/// decode says `Corrupt`, and nothing is told as an error of the store, or as another writer's; a row that
/// does not decode stays as it is where its kind promises so. In the end the other record of every kind has
/// ended as it should, once.
///
/// # Panics
/// If one of these is not so.
pub fn damaged_kinds(data: &[u8]) {
    let _reached = damaged_kinds_meddled(data, &Meddling::NONE);
}

/// [`damaged_kinds`], with kinds that are made to look wrong. Returns what was reached: how each verb ended,
/// and which forms were damaged so that they do not decode, or so that they do.
///
/// # Panics
/// As [`damaged_kinds`].
pub fn damaged_kinds_meddled(data: &[u8], meddling: &Meddling) -> BTreeSet<String> {
    let mut script = Script::new(data);
    let mut world = World::new(script.next().is_multiple_of(2), *meddling);
    for _ in 0..STEPS_MAX {
        if script.is_over() {
            break;
        }
        match script.next() % 8 {
            0..=3 => world.damage(&mut script),
            4 | 5 => world.ask(&mut script),
            6 => world.insert(&mut script),
            _ => world.pass(script.pick(&PAUSES_MS)),
        }
    }
    world.come_to_rest();
    world.judge_the_other();
    world.reached
}
