//! What a kind must keep, as a scenario: what its clients ask for, and what is judged at every commit and in
//! the end. The storms of this crate play scenarios, and so does the simulator.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex};

use dueline::rows::class;
use dueline::store::{Batch, Key, Partition, Value, Write};
use dueline::timers::{Registration, TimerKind, Timers};
use dueline::{BoxFuture, MaybeSend};
use dueline_testkit::model::{Random, Source};

use crate::{
    lease_sweep, outcome_delivery, publication_recheck, quota_rollup, reservation_reconcile,
    ticket_expiry,
};

/// Makes a scenario that counts in this tally.
pub type MakeScenario = fn(&Tally) -> Box<dyn Scenario>;

/// The scenarios of all built-in kinds, by the names of the kinds.
pub const SCENARIOS: [(&str, MakeScenario); 6] = [
    ("lease_sweep", lease_sweep::scenario),
    ("ticket_expiry", ticket_expiry::model::scenario),
    ("quota_rollup", quota_rollup::scenario),
    ("outcome_delivery", outcome_delivery::scenario),
    ("reservation_reconcile", reservation_reconcile::scenario),
    ("publication_recheck", publication_recheck::scenario),
];

/// What the client asks for, as a task.
pub type Ask = BoxFuture<'static, ()>;

/// How often each thing has happened in all histories together: a rule that never had a case shows
/// nothing.
#[derive(Clone, Debug, Default)]
pub struct Tally(Arc<Mutex<BTreeMap<&'static str, u64>>>);

impl Tally {
    pub fn count(&self, what: &'static str) {
        *self.0.lock().unwrap().entry(what).or_default() += 1;
    }

    /// What was counted, and how often.
    pub fn counted(&self) -> BTreeMap<&'static str, u64> {
        self.0.lock().unwrap().clone()
    }

    /// Panics unless each of these has happened this often.
    #[track_caller]
    pub fn assert_at_least(&self, least: u64, what: &[&'static str]) {
        let counted = self.0.lock().unwrap();
        for what in what {
            let times = counted.get(what).copied().unwrap_or(0);
            assert!(times >= least, "{what}: {times} times only, {counted:?}");
        }
    }
}

/// The rows of a partition that are not the engine's.
pub type Rows = BTreeMap<Key, Value>;

/// A kind under a storm.
pub trait Scenario: MaybeSend {
    /// Where it happens; more than one for a kind that reaches over partitions.
    fn partitions(&self) -> Vec<Partition> {
        vec![Partition::new("p").unwrap()]
    }

    /// The kinds of a process, over its own timers.
    fn kinds(&self, timers: &Timers) -> Vec<(TimerKind, Registration)>;

    /// Whether some pages are short, as the contract allows.
    fn has_short_pages(&self) -> bool {
        false
    }

    /// Whether its rules hold only while the store's clock is never set back.
    fn needs_growing_store_time(&self) -> bool {
        false
    }

    /// Something for the client to ask for next.
    fn ask(&mut self, random: &mut Random, client: &Timers, partition: &Partition) -> Ask;

    /// Judges one commit, given every row of the partition as it was before; what is wrong with it.
    fn judge(&mut self, change: &Change<'_>) -> Vec<String>;

    /// Nothing goes wrong any more and nothing is asked for: what has to be so that everything ends.
    fn calm(&mut self) {}

    /// What a client asks for once nothing goes wrong any more, if something is to be mended.
    fn mend(&mut self, _client: &Timers, _partition: &Partition) -> Option<Ask> {
        None
    }

    /// Judges what is left when all timers of the kinds have ended; what is wrong with it.
    fn judge_end(&mut self, rows: &Rows) -> Vec<String>;

    /// The same for all partitions together.
    fn judge_end_of_all(&mut self, all: &BTreeMap<Partition, Rows>) -> Vec<String> {
        let empty = Rows::new();
        let partitions = self.partitions();
        let rows = partitions.iter().map(|of| all.get(of).unwrap_or(&empty));
        rows.flat_map(|rows| self.judge_end(rows)).collect()
    }
}

/// A batch that was committed.
#[derive(Debug)]
pub struct Change<'a> {
    pub source: Source,
    pub now_ms: u64,
    pub partition: &'a Partition,
    pub before: &'a Rows,
    pub after: &'a Rows,
    /// Every partition as it is afterwards.
    pub all: &'a BTreeMap<Partition, Rows>,
    /// The timers of the partition as they are afterwards.
    pub timers: &'a Rows,
    pub batch: &'a Batch,
}

impl Change<'_> {
    /// The keys that changed, with their values before and after.
    pub fn of_prefix(&self, prefix: &[u8]) -> Vec<(Key, Option<Value>, Option<Value>)> {
        let mut keys: Vec<&Key> = self.before.keys().chain(self.after.keys()).collect();
        keys.retain(|key| key.starts_with(prefix));
        keys.sort();
        keys.dedup();
        keys.into_iter()
            .map(|key| {
                let (before, after) = (self.before.get(key), self.after.get(key));
                (key.clone(), before.cloned(), after.cloned())
            })
            .filter(|(_, before, after)| before != after)
            .collect()
    }
}

/// A scenario, and the rows of every partition as the commits so far have left them.
pub struct Watched {
    pub scenario: Box<dyn Scenario>,
    all: BTreeMap<Partition, Rows>,
    timers: BTreeMap<Partition, Rows>,
    /// What was broken so far.
    pub broken: Vec<String>,
}

impl Watched {
    /// Nothing is written yet.
    pub fn new(scenario: Box<dyn Scenario>) -> Self {
        Self {
            scenario,
            all: BTreeMap::new(),
            timers: BTreeMap::new(),
            broken: Vec::new(),
        }
    }

    /// A batch was committed, at this time by the store's clock.
    pub fn committed(&mut self, source: Source, partition: &Partition, batch: &Batch, now_ms: u64) {
        let rows = self.all.entry(partition.clone()).or_default();
        let before = rows.clone();
        write(rows, batch, |key| {
            key.get(1) != Some(&0) || key.first() == Some(&class::BUILT_IN)
        });
        let timers = self.timers.entry(partition.clone()).or_default();
        write(timers, batch, |key| key.starts_with(&[class::TIMER, 0]));
        let change = Change {
            source,
            now_ms,
            partition,
            before: &before,
            after: &self.all[partition],
            all: &self.all,
            timers,
            batch,
        };
        let broken = self.scenario.judge(&change);
        self.broken.extend(broken);
    }

    /// Everything has ended: what was broken in all.
    pub fn conclude(&mut self) -> Vec<String> {
        let mut broken = std::mem::take(&mut self.broken);
        broken.extend(self.scenario.judge_end_of_all(&self.all));
        broken
    }

    /// The partitions that were written to, and those of the scenario.
    pub fn partitions(&self) -> Vec<Partition> {
        let mut partitions = self.scenario.partitions();
        partitions.extend(self.all.keys().cloned());
        partitions.sort();
        partitions.dedup();
        partitions
    }
}

impl fmt::Debug for Watched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watched")
            .field("broken", &self.broken)
            .finish_non_exhaustive()
    }
}

/// Writes what a batch does to some of the keys.
fn write(rows: &mut Rows, batch: &Batch, is_of: impl Fn(&Key) -> bool) {
    for write in &batch.writes {
        if !is_of(write.key()) {
            continue;
        }
        match write {
            Write::Put(key, value) => rows.insert(key.clone(), value.clone()),
            Write::Delete(key) => rows.remove(key),
        };
    }
}
