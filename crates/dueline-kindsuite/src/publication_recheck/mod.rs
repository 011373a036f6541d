//! A record released only when all its dependencies are visible.

mod budgets;
mod changes;
mod costs;
mod failures;
mod histories;
mod moods;
mod releasing;
mod walking;

pub use budgets::*;
pub use changes::*;
pub use costs::*;
pub use failures::*;
pub use histories::*;
pub use moods::*;
pub use releasing::*;
pub use walking::*;

use std::sync::Arc;

use dueline::BoxFuture;
use dueline::kinds::publication_recheck::{
    Dependency, Gate, Gated, GatedRecord, PUBLICATION_RECHECK, PublicationRecheck, Rechecks,
    RemoteAllowance,
};
use dueline::store::{Batch, Key, NamespaceStore, Partition, Value, WakeStore};
use dueline::timers::{Engine, HandlerError, RunReport, TimerCtx, TimerView, Timers};
use dueline_testkit::{FaultStore, block_on};

use crate::{Make, World};

const PERIOD_MS: u64 = 5_000;
const RECORD: &str = "post/1";
const STATE: &str = "state";

/// A record is text, a dependency a line: partition, blank, key. Its state is `generation|obligations|open`,
/// the last part empty when no obligation is open. A dependency is visible if its row says so, or if it is
/// called "none..." and has no row. The release moves the record behind "out/".
#[derive(Clone, Copy, Debug)]
pub struct Press;

impl Gate for Press {
    fn state_keys(&self, _: &Key) -> Vec<Key> {
        vec![STATE.into()]
    }

    fn gated(&self, record: &GatedRecord) -> Result<Option<Gated>, HandlerError> {
        let text = std::str::from_utf8(&record.value)?;
        let lines = text.lines().filter_map(|line| line.split_once(' '));
        let dependencies = lines.map(|(partition, key)| dependency(partition, key));
        let state = record.state[0].1.clone().unwrap_or("0||".into());
        let state = std::str::from_utf8(&state)?;
        let mut parts = state.split('|');
        let mut part = || parts.next().unwrap_or_default();
        Ok(Some(Gated {
            generation: part().parse()?,
            obligations: part().to_owned().into(),
            is_obliged: !part().is_empty(),
            dependencies: dependencies.collect(),
        }))
    }

    fn is_visible(&self, dependency: &Dependency, row: Option<&Value>) -> bool {
        match row {
            Some(row) => row == "visible",
            None => dependency.key.starts_with(b"none"),
        }
    }

    fn release<'a>(
        &'a self,
        _: &'a TimerCtx<'a>,
        record: &'a GatedRecord,
    ) -> BoxFuture<'a, Result<Batch, HandlerError>> {
        let out = [b"out/", record.key.as_ref()].concat();
        let batch = Batch::new()
            .delete(record.key.clone())
            .put(out, record.value.clone());
        Box::pin(async move { Ok(batch) })
    }
}

pub fn dependency(partition: &str, key: &str) -> Dependency {
    Dependency {
        partition: Partition::new(partition.to_owned()).unwrap(),
        key: Key::from(key.to_owned()),
    }
}

/// One record that waits, in partition "p".
#[derive(Debug)]
pub struct Rig {
    pub world: World,
    /// What the handler reads elsewhere, apart from what it reads at home.
    pub remote: Arc<FaultStore>,
    pub engine: Engine,
    pub rechecks: Rechecks,
    allowance: Option<Arc<dyn RemoteAllowanceDebug>>,
}

/// An allowance that a rig can show.
pub trait RemoteAllowanceDebug: RemoteAllowance + std::fmt::Debug + Send + Sync {}
impl<T: RemoteAllowance + std::fmt::Debug + Send + Sync> RemoteAllowanceDebug for T {}

impl Rig {
    pub fn new(make: Make<'_>) -> Self {
        Self::with_allowance(make, None)
    }

    pub fn with_allowance(
        make: Make<'_>,
        allowance: Option<Arc<dyn RemoteAllowanceDebug>>,
    ) -> Self {
        let world = World::new(make);
        let below = Arc::clone(&world.store) as Arc<dyn WakeStore>;
        let remote = Arc::new(FaultStore::new(below));
        let engine = engine(&world, &remote, allowance.clone());
        Self {
            rechecks: Rechecks::new(world.timers.clone()),
            world,
            remote,
            engine,
            allowance,
        }
    }

    /// The same world seen by a process that has just started.
    pub fn restart(&mut self) {
        self.engine = engine(&self.world, &self.remote, self.allowance.clone());
    }

    /// Writes a record with these dependencies, and its timer.
    #[track_caller]
    pub fn publish(&self, dependencies: &[(String, String)]) {
        let plan = self.rechecks.plan_new(&RECORD.into()).unwrap();
        self.world.commit(record(dependencies).append(plan.batch));
    }

    /// Makes a dependency visible, or not any more.
    pub fn show(&self, partition: &str, key: &str, is_visible: bool) {
        let partition = Partition::new(partition.to_owned()).unwrap();
        let row = if is_visible { "visible" } else { "draft" };
        write(&self.world.store, &partition, key.to_owned(), row);
    }

    pub fn set_state(&self, state: &'static str) {
        write(&self.world.store, &self.world.partition, STATE, state);
    }

    pub fn tick(&self) -> RunReport {
        self.world.tick(&self.engine)
    }

    /// The next look, when it is due: how many reads of other partitions it made.
    #[track_caller]
    pub fn look(&self) -> u64 {
        let timer = self.timer().expect("the record waits");
        let wait_ms = timer.next_at_ms.saturating_sub(self.world.now_ms());
        self.world.advance_ms(wait_ms);
        let before = self.remote.counts();
        let report = self.tick();
        assert_eq!(
            report.total.fired + report.total.rescheduled,
            1,
            "{:?}",
            report.total
        );
        (self.remote.counts() - before).get_manys
    }

    pub fn timer(&self) -> Option<TimerView> {
        let key = Key::from_static(RECORD.as_bytes());
        let timers: &Timers = &self.world.timers;
        block_on(timers.get(&self.world.partition, PUBLICATION_RECHECK, &key)).unwrap()
    }

    /// The position in the payload; `None` before the first look.
    #[track_caller]
    pub fn position(&self) -> Option<u32> {
        let payload = self.timer().expect("the record waits").payload;
        (!payload.is_empty()).then(|| {
            assert_eq!((payload.len(), payload[0]), (37, 1));
            u32::from_be_bytes(payload[33..].try_into().unwrap())
        })
    }

    pub fn is_released(&self) -> bool {
        let out = [b"out/", RECORD.as_bytes()].concat();
        self.world.get(&out.into()).is_some()
    }
}

fn engine(
    world: &World,
    remote: &Arc<FaultStore>,
    allowance: Option<Arc<dyn RemoteAllowanceDebug>>,
) -> Engine {
    let store = Arc::clone(remote) as Arc<dyn NamespaceStore>;
    let timers = Timers::new(store, world.runtime.clone());
    let mut handler = PublicationRecheck::new(Press, timers);
    if let Some(allowance) = allowance {
        handler = handler.allowance(allowance);
    }
    world.engine_of([handler.entry()])
}

fn record(dependencies: &[(String, String)]) -> Batch {
    let lines = dependencies
        .iter()
        .map(|(partition, key)| format!("{partition} {key}\n"));
    Batch::new().put(RECORD, lines.collect::<String>())
}

pub fn write(
    store: &FaultStore,
    partition: &Partition,
    key: impl Into<Key>,
    row: impl Into<Value>,
) {
    let batch = Batch::new().put(key, row);
    let done = block_on(store.inner().apply(partition, batch)).unwrap();
    assert!(done.is_committed());
}

/// Dependencies of these partitions, this many each, with keys "d000"...
pub fn dependencies(of: &[(&str, usize)]) -> Vec<(String, String)> {
    of.iter()
        .flat_map(|(partition, many)| {
            (0..*many).map(|number| ((*partition).to_owned(), format!("d{number:03}")))
        })
        .collect()
}
