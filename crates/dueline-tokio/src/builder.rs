use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use dueline::store::{NamespaceStore, WakeStore};
use dueline::timers::{Engine, TickBudget, Timers};
use tokio::runtime;

use crate::busy::Busy;
use crate::error::StartError;
use crate::handle::Handle;
use crate::scheduler;
use crate::shared::{AuditPace, Inbox, Settings, Shared};
use crate::status::Status;
use crate::store::DriverStore;
use crate::task_host::TaskHost;
use crate::work::{Calls, Pool};

/// Most threads that tick, unless said otherwise.
const TICK_THREADS_MAX: usize = 8;

/// The native driver: decides which partition ticks when.
#[derive(Debug)]
pub struct Driver;

impl Driver {
    /// A driver of this engine over this store, which is the store the engine was made with.
    pub fn builder(engine: Engine, store: impl Into<DriverStore>) -> DriverBuilder {
        DriverBuilder {
            engine,
            store: store.into(),
            runtime: None,
            settings: Settings {
                tick_threads: thread::available_parallelism()
                    .map_or(1, NonZeroUsize::get)
                    .min(TICK_THREADS_MAX),
                ticks_max: 256,
                window_max: 4_096,
                budget: TickBudget::native(),
                audit: Some(AuditPace {
                    partitions_per_second: 1_000,
                    pause: Duration::from_secs(3_600),
                }),
            },
        }
    }
}

/// How a driver is to run. The defaults suit a process that does other work too.
#[derive(Debug)]
#[must_use = "a driver runs once it is started"]
pub struct DriverBuilder {
    engine: Engine,
    store: DriverStore,
    runtime: Option<runtime::Handle>,
    settings: Settings,
}

impl DriverBuilder {
    /// Threads that tick, at least 1. Default: one a core, at most 8.
    pub fn tick_threads(mut self, threads: usize) -> Self {
        self.settings.tick_threads = threads.max(1);
        self
    }

    /// Most partitions ticked at a time, at least 1. Default: 256. While a thread waits for the
    /// commit of one it goes on with the others, and their commits become one.
    pub fn ticks_max(mut self, ticks: usize) -> Self {
        self.settings.ticks_max = ticks.max(1);
        self
    }

    /// Most near wakes read into memory at a time, at least 16. Default: 4,096. A backlog is read
    /// eight times as far and worked in partition order. All else that is pending stays in the store.
    pub fn window_max(mut self, wakes: usize) -> Self {
        self.settings.window_max = wakes.max(16);
        self
    }

    /// What one tick of one partition may do. Default: [`TickBudget::native`].
    pub fn budget(mut self, budget: TickBudget) -> Self {
        self.settings.budget = budget;
        self
    }

    /// How the audit of wakes walks: this many partitions a second, at least 1, and this long a
    /// pause, at least a second, between walks. Default: 1,000 a second and an hour.
    pub fn audit(mut self, partitions_per_second: usize, pause: Duration) -> Self {
        self.settings.audit = Some(AuditPace {
            partitions_per_second: partitions_per_second.max(1),
            pause: pause.max(Duration::from_secs(1)),
        });
        self
    }

    /// No audit: for tests that want to see a missing wake stay missing, and for stores that are
    /// audited elsewhere.
    pub fn without_audit(mut self) -> Self {
        self.settings.audit = None;
        self
    }

    /// The async runtime that runs detached calls. Default: the one `start` is called in.
    pub fn runtime(mut self, runtime: runtime::Handle) -> Self {
        self.runtime = Some(runtime);
        self
    }

    /// Starts the driver: what is due runs at once.
    ///
    /// # Errors
    /// Without a store that keeps wakes, an async runtime, or threads.
    pub fn start(self) -> Result<Handle, StartError> {
        let runtime = match &self.runtime {
            Some(runtime) => runtime.clone(),
            None => runtime::Handle::try_current().map_err(|_| StartError::NoRuntime)?,
        };
        let Parts {
            shared,
            handle,
            store,
            settings,
        } = self.parts(Arc::new(runtime))?;
        let jobs_max = settings.ticks_max.div_ceil(settings.tick_threads);
        // Whatever fails from here on, dropping the handle stops the threads that have begun.
        shared
            .pool
            .start(&shared.store, jobs_max)
            .map_err(StartError::NoThread)?;
        let alive = shared.pool.alive().begin();
        thread::Builder::new()
            .name("dueline-driver".to_owned())
            .spawn(move || {
                scheduler::run(&shared, &store, &settings);
                drop(alive);
            })
            .map_err(StartError::NoThread)?;
        Ok(handle)
    }

    /// Everything but what runs it.
    pub(crate) fn parts(self, runtime: Arc<dyn TaskHost>) -> Result<Parts, StartError> {
        if !self.store.inner.capabilities().wakes {
            return Err(StartError::NoWakes);
        }
        let of_threads = self.store.for_threads();
        let tick_store: Arc<dyn NamespaceStore> = of_threads.clone();
        let busy = Busy::default();
        let pool = Arc::new(Pool::new(self.settings.tick_threads, busy.clone()));
        let shared = Arc::new(Shared {
            engine: self.engine.clone().with_tick_store(tick_store),
            cautious_until_ms: self.store.inner.unclean_opened_at_ms(),
            store: of_threads,
            looks: Arc::clone(&self.store.looks),
            calls: Arc::new(Calls::new(Arc::clone(&runtime), busy.clone())),
            host: runtime,
            busy,
            inbox: Inbox::new(Arc::clone(self.store.looks.signal())),
            budget: self.settings.budget,
            paused: AtomicBool::new(false),
            status: Mutex::new(Status::default()),
            released: AtomicU64::new(0),
            unreleased: AtomicU64::new(0),
            pool,
        });
        let timers = Timers::new(self.store.to_store(), self.engine.runtime().clone());
        let store = Arc::clone(&self.store.inner);
        let handle = Handle::new(Arc::clone(&shared), self.store, timers, self.engine);
        Ok(Parts {
            shared,
            handle,
            store,
            settings: self.settings,
        })
    }
}

/// A driver that nothing runs yet.
pub(crate) struct Parts {
    pub(crate) shared: Arc<Shared>,
    pub(crate) handle: Handle,
    /// The store that wakes are read from.
    pub(crate) store: Arc<dyn WakeStore>,
    pub(crate) settings: Settings,
}
