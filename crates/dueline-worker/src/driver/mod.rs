mod alarm_run;
mod calls;
mod requeue;
mod schedule_all;

use std::future::poll_fn;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use dueline::runtime::Runtime;
use dueline::sql::SizeLimit;
use dueline::store::{NamespaceStore, StoreError};
use dueline::timers::{CALLS_MAX, Engine, Registry, TickBudget, TimerKind, Timers};

use crate::error::AlarmError;
use crate::mutants::{Mutant, planted};
use crate::report::{AlarmInfo, AlarmReport, Restored};
use crate::storage::ObjectStorage;
use crate::store::ObjectStore;
use alarm_run::AlarmRun;

/// How an instance of the object came about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Start {
    /// As usual: the object was needed and not in memory.
    #[default]
    Fresh,
    /// In place of an instance that trapped.
    AfterTrap,
}

/// How a driver works.
#[derive(Clone, Copy, Debug)]
pub struct ObjectOptions {
    /// What one tick over all partitions may do. Default: that of [`TickBudget`]. A tick has a second of its
    /// time at the most, and the ticks of an alarm that is behind have all of it together.
    pub budget: TickBudget,
    /// Most calls at a time, over all kinds. Default 32.
    pub calls_max: u32,
    /// How long an alarm goes on with what comes due while calls are under way, in milliseconds. Behind it
    /// it waits for those calls and begins only others that end before them by their deadlines; what can run is
    /// ticked once a second, and the next alarm takes over. So a call is late by less than its own deadline
    /// for that. Default 60,000.
    pub stay_ms: u64,
    /// Most ticks of an alarm that is behind and has no call under way: what a budget leaves is ticked in the
    /// same alarm, requests in between, while it has taken less than
    /// [`max_elapsed_ms`](TickBudget::max_elapsed_ms) in all. At least 1; default 16.
    pub drain_ticks_max: u32,
    /// Most ticks of one alarm, whatever the clock shows: it may stand while code runs. Default 64.
    pub ticks_max: u32,
    /// How large the database may grow; none is `None`, the default.
    pub size_limit: Option<SizeLimit>,
}

impl Default for ObjectOptions {
    fn default() -> Self {
        Self {
            budget: TickBudget::default(),
            calls_max: CALLS_MAX.min(32),
            stay_ms: 60_000,
            drain_ticks_max: 16,
            ticks_max: 64,
            size_limit: None,
        }
    }
}

/// The driver of one Durable Object: its store, its engine, its alarm.
///
/// Cheap to clone; clones share everything.
#[derive(Clone, Debug)]
pub struct ObjectDriver {
    engine: Engine,
    store: Arc<ObjectStore>,
    options: ObjectOptions,
    cautious_until_ms: Arc<Mutex<Option<u64>>>,
}

impl ObjectDriver {
    /// Opens the object's database, creating or migrating its tables. To be followed by
    /// [`restore`](Self::restore) in the constructor, before anything else is let in.
    ///
    /// # Errors
    /// `Unsupported` for a schema newer than this binary; else as the storage says.
    pub fn open(
        storage: Arc<dyn ObjectStorage>,
        runtime: Runtime,
        registry: Registry,
        start: Start,
        options: ObjectOptions,
    ) -> Result<Self, StoreError> {
        let store = Self::open_store(storage, &runtime, options)?;
        Ok(Self::over(store, runtime, registry, start, options))
    }

    /// As [`open`](Self::open), for handlers that need the verbs of the object: the built-in kinds, and those
    /// whose kinds are allotted by names that are stored. The registry is asked for once the tables are there.
    ///
    /// # Errors
    /// As [`open`](Self::open), and what the registry's making says.
    pub async fn open_with<E: From<StoreError>>(
        storage: Arc<dyn ObjectStorage>,
        runtime: Runtime,
        registry: impl AsyncFnOnce(&Timers) -> Result<Registry, E>,
        start: Start,
        options: ObjectOptions,
    ) -> Result<Self, E> {
        let store = Self::open_store(storage, &runtime, options)?;
        let shared = Arc::clone(&store) as Arc<dyn NamespaceStore>;
        let registry = registry(&Timers::new(shared, runtime.clone())).await?;
        Ok(Self::over(store, runtime, registry, start, options))
    }

    fn open_store(
        storage: Arc<dyn ObjectStorage>,
        runtime: &Runtime,
        options: ObjectOptions,
    ) -> Result<Arc<ObjectStore>, StoreError> {
        ObjectStore::open(storage, runtime.clone(), options.size_limit).map(Arc::new)
    }

    fn over(
        store: Arc<ObjectStore>,
        runtime: Runtime,
        registry: Registry,
        start: Start,
        options: ObjectOptions,
    ) -> Self {
        let mut kinds = registry.kinds();
        // Rows too damaged to name their kind are set aside by whoever ticks.
        kinds.insert(TimerKind::INVALID);
        store.set_kinds(kinds);
        let is_left = store.take_left_mark() || start == Start::AfterTrap;
        let cautious_until_ms = is_left.then(|| runtime.now_ms());
        let engine = Engine::new(
            Arc::clone(&store) as Arc<dyn NamespaceStore>,
            runtime,
            registry,
        );
        Self {
            engine: engine.calls_max(options.calls_max.max(1)),
            store,
            options,
            cautious_until_ms: Arc::new(Mutex::new(cautious_until_ms)),
        }
    }

    /// The verbs of scheduling. What they commit sets the alarm.
    pub fn timers(&self) -> &Timers {
        self.engine.timers()
    }

    /// The engine.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// The store, for batches of one's own.
    pub fn store(&self) -> &Arc<ObjectStore> {
        &self.store
    }

    /// Sets the alarm again if timers are pending and it is missing, too late, or long over without
    /// having been served: the platform gives an alarm up after some failed tries. For the
    /// constructor and the entry of every request. Costs one read of the alarm while all is well.
    ///
    /// # Errors
    /// The alarm or the heads could not be read, or the alarm could not be set. A request may go on all
    /// the same; the next one looks again.
    pub async fn restore(&self) -> Result<Restored, AlarmError> {
        self.store.see_to_alarm().await
    }

    /// Whether the alarm that the platform has just told is the one that this instance knows of and will come,
    /// or is being served. If not, [`restore`](Self::restore) looks closer: this is what a host asks first
    /// whose calls are dear.
    pub fn is_alarm_sound(&self, found_ms: Option<u64>) -> bool {
        self.store.is_alarm_sound(found_ms)
    }

    /// Serves an alarm: runs what is due, then sets the alarm for what is next.
    ///
    /// Whatever a timer can cause (a failing handler, a panic that unwinds, a deadline, a store that
    /// refuses a batch) is dealt with here and never an error. Dropping the future is a cut: claims
    /// come back when they end.
    ///
    /// # Errors
    /// The heads could not be read, or the alarm could not be set. To be thrown to the platform, which
    /// tries the alarm again.
    pub async fn on_alarm(&self, info: AlarmInfo) -> Result<AlarmReport, AlarmError> {
        if info.is_retry || info.retry_count > 0 {
            self.be_cautious();
        }
        // One at a time; the platform keeps this alarm until its handler has ended.
        poll_fn(|context| self.store.poll_serving(info.scheduled_at_ms, context)).await;
        let _serving = Serving(&self.store);
        let mut run = AlarmRun::new(self);
        run.serve().await;
        run.finish().await
    }

    /// Lanes whose wakes are not later than now run each timer claimed and counted first.
    fn be_cautious(&self) {
        let now_ms = self.engine.runtime().now_ms();
        let mut until_ms = self
            .cautious_until_ms
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        *until_ms = Some(until_ms.map_or(now_ms, |earlier| earlier.max(now_ms)));
    }

    fn cautious_until_ms(&self) -> Option<u64> {
        if planted(Mutant::AlarmCautionIgnored) {
            return None;
        }
        *self
            .cautious_until_ms
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn stay(&self) -> Duration {
        Duration::from_millis(self.options.stay_ms)
    }
}

/// The alarm is being served until this is dropped, or its end has been told to the store.
struct Serving<'a>(&'a ObjectStore);

impl Drop for Serving<'_> {
    fn drop(&mut self) {
        self.0.stop_serving();
    }
}
