//! The small database that every run begins with, as a killed process left it.

use std::sync::Arc;

use dueline::Bytes;
use dueline::store::Partition;
use dueline::timers::{Policy, Timer, TimerKind};
use dueline_sqlite::{Durability, SqliteStore};
use dueline_testkit::{ManualClock, test_runtime};

use crate::Failure;
use crate::check::Expected;
use crate::disk::Files;
use crate::folder::WatchedFolder;
use crate::random::Random;
use crate::script::{DATABASE, Fate, START_MS, options};
use crate::world::{CALLING, GROUPED, REPEATS, Rows, SINGLE, engine, read_all, run};

/// Files, rows, and what is to become of the timers in them.
#[derive(Debug)]
pub(crate) struct Base {
    pub(crate) files: Files,
    pub(crate) rows: Rows,
    pub(crate) expected: Vec<Expected>,
}

const TIMERS: [(TimerKind, &str, Fate); 6] = [
    (GROUPED, "plain-base", Fate::Effects(1)),
    (GROUPED, "flaky-base", Fate::Effects(1)),
    (GROUPED, "doomed-base", Fate::Dead),
    (CALLING, "called-base", Fate::Effects(1)),
    (SINGLE, "repeat-base", Fate::Effects(REPEATS)),
    (SINGLE, "single-base", Fate::Effects(1)),
];

impl Base {
    pub(crate) fn new() -> Result<Self, Failure> {
        let folder = WatchedFolder::new(&Files::new())?;
        let clock = ManualClock::new(START_MS);
        let durability = Durability::PowerLoss;
        let store = SqliteStore::open(folder.file(DATABASE), options(&clock, durability))?;
        let engine = engine(Arc::new(store.clone()), test_runtime(&clock))?;
        let mut expected = Vec::new();
        for home in ["here", "there"] {
            let partition = Partition::new(home)?;
            for (kind, reference, fate) in TIMERS {
                let timer = Timer::new(kind, reference)
                    .due_at(engine.runtime().now_ms() + 1_000)
                    .payload(vec![7; 100])
                    .named();
                run(
                    &store,
                    engine.timers().schedule(&partition, timer, Policy::Replace),
                )?;
                expected.push(Expected {
                    partition: partition.clone(),
                    reference: Bytes::from(reference),
                    allowed: vec![fate.outcome()],
                });
            }
        }
        Ok(Self {
            files: folder.watched().disk(&mut Random::new(0)).live(),
            rows: run(&store, read_all(&store))?,
            expected,
        })
    }
}
