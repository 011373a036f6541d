//! A driver over a store in memory, at a time that moves only when a model moves it.

use std::sync::OnceLock;

use dueline::memory::MemoryStore;
use dueline::runtime::Runtime;
use dueline::store::{Batch, NamespaceStore, Partition, WakeStore};
use dueline::timers::{
    Engine, Fired, ListQuery, Policy, Registration, Registry, Timer, TimerError, TimerKind, Timers,
};
use dueline_testkit::{ManualClock, handler, partition, test_runtime};
use shuttle::future::block_on;

use super::driver::{Driver, Handle};
use super::sync::{Arc, Condvar, Mutex, PoisonError};

pub(super) const START_MS: i64 = 1_764_500_000_000;
pub(super) const KIND: TimerKind = TimerKind(16);

/// What outlives a driver.
pub(super) struct World {
    pub(super) clock: ManualClock,
    runtime: Runtime,
    store: Arc<dyn WakeStore>,
    fired: Fires,
}

/// How many times a handler has run.
#[derive(Clone, Default)]
pub(super) struct Fires(Arc<(Mutex<usize>, Condvar)>);

impl Fires {
    pub(super) fn count(&self) -> usize {
        *self.0.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self) {
        *self.0.0.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        self.0.1.notify_all();
    }

    /// Waits until so many have been counted.
    pub(super) fn reach(&self, wanted: usize) {
        let count = self.0.0.lock().unwrap_or_else(PoisonError::into_inner);
        drop(self.0.1.wait_while(count, |count| *count < wanted));
    }
}

impl World {
    pub(super) fn new() -> Self {
        let clock = ManualClock::new(START_MS);
        let store = MemoryStore::new(Arc::new(clock.clone()));
        Self {
            runtime: test_runtime(&clock),
            store: Arc::new(store),
            fired: Fires::default(),
            clock,
        }
    }

    pub(super) fn fired(&self) -> &Fires {
        &self.fired
    }

    /// Starts a driver of two threads. Its handler leaves a row, which must not be there: nothing takes
    /// effect twice.
    pub(super) fn drive(&self) -> Handle {
        let fired = self.fired.clone();
        let leaves_a_row = handler(move |_, timer| {
            fired.add();
            let row = timer.reference().clone();
            let effect = Batch::new().require_absent(row.clone()).put(row, "fired");
            Box::pin(async move { Ok(Fired::Done(effect)) })
        });
        let registry = Registry::new().with(KIND, Registration::inline(leaves_a_row));
        let registry = registry.unwrap_or_else(|error| panic!("{error}"));
        let of_engine: Arc<dyn NamespaceStore> = Arc::<dyn WakeStore>::clone(&self.store);
        let engine = Engine::new(of_engine, self.runtime.clone(), registry);
        let driver = Driver::builder(engine, Arc::<dyn WakeStore>::clone(&self.store))
            .tick_threads(2)
            .without_audit()
            .runtime(idle_runtime());
        driver.start().unwrap_or_else(|error| panic!("{error}"))
    }

    /// Whether the effect of this timer is there.
    pub(super) fn has_effect(&self, home: &Partition, reference: &'static str) -> bool {
        match block_on(self.store.get(home, &reference.into())) {
            Ok(row) => row.is_some(),
            Err(error) => panic!("{error}"),
        }
    }

    /// How many timers wait in this partition, or are dead.
    pub(super) fn left(&self, home: &Partition) -> usize {
        let store: Arc<dyn NamespaceStore> = Arc::<dyn WakeStore>::clone(&self.store);
        let timers = Timers::new(store, self.runtime.clone());
        match block_on(timers.list(home, &ListQuery::new(KIND))) {
            Ok(page) => page.timers.len(),
            Err(error) => panic!("{error}"),
        }
    }
}

/// An async runtime that runs nothing: no handler here calls out.
fn idle_runtime() -> tokio::runtime::Handle {
    static IDLE: OnceLock<tokio::runtime::Runtime> = OnceLock::new();
    let runtime = IDLE.get_or_init(|| {
        let built = tokio::runtime::Builder::new_current_thread().build();
        built.unwrap_or_else(|error| panic!("{error}"))
    });
    runtime.handle().clone()
}

/// Schedules a timer that is due so long after the beginning.
pub(super) fn schedule(
    handle: &Handle,
    home: &Partition,
    reference: &'static str,
    after_ms: u64,
) -> Result<(), TimerError> {
    let due_ms = START_MS.unsigned_abs().saturating_add(after_ms);
    let timer = Timer::new(KIND, reference).due_at(due_ms).named();
    block_on(handle.timers().schedule(home, timer, Policy::Replace)).map(|_| ())
}

pub(super) fn home(name: &'static str) -> Partition {
    partition(name)
}
