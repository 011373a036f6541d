//! Counters kept per shard, rolled up into a total.

mod admission;
mod closing;
mod costs;
mod failures;
mod histories;
mod own_charges;
mod rolling;

pub use admission::*;
pub use closing::*;
pub use costs::*;
pub use failures::*;
pub use histories::*;
pub use own_charges::*;
pub use rolling::*;

use std::sync::{Arc, Mutex};

use dueline::kinds::quota_rollup::{
    Amounts, BackOff, Quota, QuotaMeter, QuotaNote, QuotaRollup, Quotas, Window,
};
use dueline::rows::{class, class_end, class_start};
use dueline::store::{Batch, Key, Partition, Value};
use dueline::timers::{Engine, RunReport, TickBudget, run_due};
use dueline_testkit::block_on;

use crate::{Make, World};

/// An hour, in milliseconds.
const HOUR_MS: u64 = 3_600_000;
const PERIOD_MS: u64 = 60_000;
/// When all of a window of an hour is gone: grace, one period over which the last roll-ups are spread, and
/// the wait before the rows go.
const OVER_MS: u64 = HOUR_MS + 30_000 + PERIOD_MS + 60_000 + 1_000;
const COORDINATOR: &str = "tenant";

/// Counts what it is told.
#[derive(Debug, Default)]
pub struct Meter {
    told: Mutex<Told>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Told {
    pub rebaselined: Vec<(Amounts, Amounts)>,
    pub backed_off: Vec<BackOff>,
    pub drained: u64,
}

impl QuotaMeter for Meter {
    fn note(&self, note: &QuotaNote<'_>) {
        let mut told = self.told.lock().unwrap();
        match note {
            QuotaNote::Rebaselined {
                absorbed, shown, ..
            } => told.rebaselined.push((*absorbed, *shown)),
            QuotaNote::BackedOff { reason, .. } => told.backed_off.push(*reason),
            QuotaNote::Drained { rows, .. } => told.drained += rows,
            _ => panic!("what is {note:?}?"),
        }
    }
}

/// A quota over one world, with all its partitions.
#[derive(Debug)]
pub struct Rig {
    pub world: World,
    pub quotas: Quotas,
    pub engine: Engine,
    meter: Arc<Meter>,
}

impl Rig {
    /// A quota "api" with windows of an hour, at the beginning of one.
    pub fn new(make: Make<'_>) -> Self {
        Self::of(make, HOUR_MS, |quota| quota)
    }

    /// A quota "api" with windows of this length, at the beginning of an hour.
    pub fn of(make: Make<'_>, window_ms: u64, configure: impl FnOnce(Quota) -> Quota) -> Self {
        let world = World::new(make);
        let to_next_hour_ms = HOUR_MS - world.now_ms() % HOUR_MS;
        world.advance_ms(to_next_hour_ms);
        let coordinator = Partition::new(COORDINATOR).unwrap();
        let quota = configure(Quota::new("api", coordinator, window_ms).unwrap());
        let quotas = Quotas::new(world.timers.clone(), quota);
        let meter = Arc::new(Meter::default());
        let handler = QuotaRollup::new(world.timers.clone()).metered(meter.clone());
        let engine = world.engine_of([handler.entry()]);
        Self {
            world,
            quotas,
            engine,
            meter,
        }
    }

    pub fn at(&self, partition: &'static str) -> World {
        self.world.in_partition(partition)
    }

    pub fn window(&self) -> Window {
        self.quotas.quota().window_at(self.world.now_ms())
    }

    #[track_caller]
    pub fn charge<const N: usize>(&self, partition: &'static str, amounts: [u64; N]) {
        let partition = Partition::new(partition).unwrap();
        block_on(self.quotas.charge(&partition, amounts)).unwrap();
    }

    #[track_caller]
    pub fn total(&self, window: Window) -> Option<[u64; 4]> {
        let total = block_on(self.quotas.total(window)).unwrap();
        total.map(|total| total.as_array())
    }

    /// One tick of the partition.
    pub fn tick(&self, partition: &'static str) -> RunReport {
        self.at(partition).tick(&self.engine)
    }

    /// Lets this much time pass, with a tick of each partition every ten seconds.
    pub fn run_for(&self, partitions: &[&'static str], ms: u64) {
        for _ in 0..ms.div_ceil(10_000) {
            self.world.advance_ms(10_000);
            for partition in partitions {
                self.tick(partition);
            }
        }
    }

    /// A tick whose calls are run, and whose process then dies.
    pub fn tick_and_crash(&self, partition: &'static str) -> usize {
        let partition = Partition::new(partition).unwrap();
        block_on(async {
            let tick = run_due(&self.engine, &partition, TickBudget::default()).await;
            let calls = tick.calls.len();
            for call in tick.calls {
                let _finished = call.run().await;
            }
            calls
        })
    }

    pub fn told(&self) -> Told {
        self.meter.told.lock().unwrap().clone()
    }

    /// Nothing of the quota is left in these partitions, rows or timers.
    #[track_caller]
    pub fn assert_gone(&self, partitions: &[&'static str]) {
        for partition in partitions {
            let world = self.at(partition);
            assert_eq!(world.kind_rows(), [], "rows in {partition}");
            assert_eq!(world.timer_keys(), Vec::<Key>::new(), "in {partition}");
            let dead = world.rows(class_start(class::DEAD), class_end(class::DEAD));
            assert_eq!(dead, [], "dead in {partition}");
        }
    }
}

/// A key of the quota "api", put together by hand.
pub fn key(letter: u8, window: Window, rest: &str) -> Key {
    let mut key = vec![b'b', 0, 5, letter, 3];
    key.extend_from_slice(b"api");
    key.extend_from_slice(&window.length_ms.to_be_bytes());
    key.extend_from_slice(&window.start_ms.to_be_bytes());
    key.extend_from_slice(rest.as_bytes());
    key.into()
}

/// The row of a shard that shows these amounts, put together by hand.
pub fn amounts_row(amounts: [u64; 4]) -> Value {
    let mut value = vec![1];
    for amount in amounts {
        value.extend_from_slice(&amount.to_be_bytes());
    }
    value.into()
}

/// Writes without guards, as an operator or a restored backup does.
pub fn write(world: &World, key: Key, value: Option<Value>) {
    let batch = match value {
        Some(value) => Batch::new().put(key, value),
        None => Batch::new().delete(key),
    };
    let store = world.store.inner();
    assert!(
        block_on(store.apply(&world.partition, batch))
            .unwrap()
            .is_committed()
    );
}
