//! A driver over a store in memory or on SQLite, at a time that moves only when a model moves it.

use std::sync::OnceLock;

use dueline::BoxFuture;
use dueline::memory::MemoryStore;
use dueline::runtime::Runtime;
use dueline::store::{Batch, Partition, WakeStore};
use dueline::timers::{
    DetachedHandler, DueTimer, Engine, Fired, HandlerError, ListQuery, Policy, Registration,
    Registry, Timer, TimerCtx, TimerKind, Timers,
};
use dueline_testkit::{ManualClock, handler, test_runtime};
use shuttle::future::block_on;
use tempfile::TempDir;

use super::driver::{Driver, DriverStore, Handle};
use super::store_world::open;
use super::sync::{Arc, Condvar, Mutex, PoisonError};
use crate::new_folder;

const START_MS: i64 = 1_764_500_000_000;
/// The kind whose handler leaves a row.
pub(super) const KIND: TimerKind = TimerKind(16);
/// The kind whose handler calls out before it does.
pub(super) const CALLING: TimerKind = TimerKind(40);

/// What outlives a driver.
pub(super) struct World {
    pub(super) clock: ManualClock,
    runtime: Runtime,
    store: DriverStore,
    fired: Fires,
    /// Dropped last: the store lies in it.
    _folder: Option<TempDir>,
}

/// How many times a handler has run, or begun to call out.
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
    pub(super) fn in_memory() -> Self {
        let clock = ManualClock::new(START_MS);
        let store = Arc::new(MemoryStore::new(Arc::new(clock.clone())));
        Self::new(clock, store, None)
    }

    pub(super) fn on_sqlite() -> Self {
        let (clock, folder) = (ManualClock::new(START_MS), new_folder());
        let store = Arc::new(open(&folder, &clock));
        Self::new(clock, store, Some(folder))
    }

    fn new(clock: ManualClock, store: Arc<dyn WakeStore>, folder: Option<TempDir>) -> Self {
        Self {
            runtime: test_runtime(&clock),
            store: DriverStore::new(store),
            fired: Fires::default(),
            clock,
            _folder: folder,
        }
    }

    pub(super) fn fired(&self) -> &Fires {
        &self.fired
    }

    /// Starts a driver of so many threads that tick. Its handlers leave a row, which must not be there:
    /// nothing takes effect twice.
    pub(super) fn drive(&self, tick_threads: usize) -> Handle {
        let fired = self.fired.clone();
        let caller = Caller {
            begun: fired.clone(),
        };
        let leaves_a_row = handler(move |_, timer| {
            fired.add();
            let effect = row_of(timer);
            Box::pin(async move { Ok(Fired::Done(effect)) })
        });
        let registry = Registry::new()
            .with(KIND, Registration::inline(leaves_a_row))
            .and_then(|registry| registry.with(CALLING, Registration::detached(caller)));
        let registry = registry.unwrap_or_else(|error| panic!("{error}"));
        let engine = Engine::new(self.store.to_store(), self.runtime.clone(), registry);
        let driver = Driver::builder(engine, self.store.clone())
            .tick_threads(tick_threads)
            .without_audit()
            .runtime(idle_runtime());
        driver.start().unwrap_or_else(|error| panic!("{error}"))
    }

    /// The verbs of scheduling, which wake whatever driver runs.
    pub(super) fn timers(&self) -> Timers {
        Timers::new(self.store.to_store(), self.runtime.clone())
    }

    /// Whether the effect of this timer is there.
    pub(super) fn has_effect(&self, home: &Partition, reference: &'static str) -> bool {
        match block_on(self.store.to_store().get(home, &reference.into())) {
            Ok(row) => row.is_some(),
            Err(error) => panic!("{error}"),
        }
    }

    /// How many timers wait in this partition, or are dead.
    pub(super) fn left(&self, home: &Partition) -> usize {
        let of_kind = |kind| match block_on(self.timers().list(home, &ListQuery::new(kind))) {
            Ok(page) => page.timers.len(),
            Err(error) => panic!("{error}"),
        };
        of_kind(KIND) + of_kind(CALLING)
    }
}

fn row_of(timer: &DueTimer) -> Batch {
    let row = timer.reference().clone();
    Batch::new().require_absent(row.clone()).put(row, "fired")
}

/// Calls out, and takes some turns of its task for it.
struct Caller {
    begun: Fires,
}

impl DetachedHandler for Caller {
    type Output = ();

    fn call<'a>(
        &'a self,
        _: &'a TimerCtx<'a>,
        _: &'a DueTimer,
    ) -> BoxFuture<'a, Result<(), HandlerError>> {
        Box::pin(async {
            self.begun.add();
            for _ in 0..3 {
                shuttle::future::yield_now().await;
            }
            Ok(())
        })
    }

    fn settle<'a>(
        &'a self,
        _: &'a TimerCtx<'a>,
        timer: &'a DueTimer,
        (): &'a (),
    ) -> BoxFuture<'a, Result<Fired, HandlerError>> {
        let effect = row_of(timer);
        Box::pin(async move { Ok(Fired::Done(effect)) })
    }
}

/// An async runtime that runs nothing: what a driver gives it runs as a task of the checker.
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
    timers: &Timers,
    home: &Partition,
    kind: TimerKind,
    reference: &'static str,
    after_ms: u64,
) {
    let due_ms = START_MS.unsigned_abs().saturating_add(after_ms);
    let timer = Timer::new(kind, reference).due_at(due_ms).named();
    if let Err(error) = block_on(timers.schedule(home, timer, Policy::Replace)) {
        panic!("{error}");
    }
}
