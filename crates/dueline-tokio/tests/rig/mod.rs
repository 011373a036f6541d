//! What the tests of the driver share: a world whose clock stands still, and handlers that log.
#![allow(
    dead_code,
    unreachable_pub,
    unused_imports,
    clippy::expect_used,
    reason = "a module of every test file, each of which uses a part of it"
)]

mod caller;
mod gate_store;

pub use caller::Caller;
pub use gate_store::{GateStore, Wakeless};

use std::sync::{Arc, Mutex};
use std::time::Duration;

use dueline::memory::MemoryStore;
use dueline::runtime::Runtime;
use dueline::store::{Batch, NamespaceStore, Partition, WakeStore};
use dueline::timers::{
    Engine, Fired, ListQuery, Policy, Registration, Registry, Timer, TimerKind, Timers,
};
use dueline_testkit::{FaultStore, ManualClock, handler, test_runtime};
use dueline_tokio::{Driver, DriverBuilder, Handle};
use tokio::sync::Notify;

/// When the tests begin, in milliseconds since 1970.
pub const START_MS: u64 = 1_764_500_000_000;
/// The kind whose handler only logs.
pub const LOGGED: TimerKind = TimerKind(16);

/// A kind whose handler calls out.
pub const CALLING: TimerKind = TimerKind(40);

/// What handlers have done, in order.
#[derive(Debug, Default)]
pub struct Log {
    lines: Mutex<Vec<String>>,
    changed: Notify,
}

impl Log {
    pub fn push(&self, line: impl Into<String>) {
        self.lines
            .lock()
            .expect("no test panics here")
            .push(line.into());
        self.changed.notify_waiters();
    }

    pub fn lines(&self) -> Vec<String> {
        self.lines.lock().expect("no test panics here").clone()
    }

    pub fn len(&self) -> usize {
        self.lines.lock().expect("no test panics here").len()
    }

    /// Waits until there are this many lines.
    pub async fn reached(&self, lines: usize) {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if self.len() >= lines {
                return;
            }
            changed.await;
        }
    }
}

/// A handler that logs `partition/reference` and is done.
pub fn logging(log: &Arc<Log>) -> Registration {
    let log = Arc::clone(log);
    Registration::inline(handler(move |ctx, timer| {
        log.push(name(ctx.partition(), timer.reference()));
        Box::pin(async { Ok(Fired::Done(Batch::new())) })
    }))
}

/// `partition/reference`.
pub fn name(partition: &Partition, reference: &[u8]) -> String {
    format!("{partition}/{}", reference.escape_ascii())
}

/// A registry of one kind.
pub fn registry_of(kind: TimerKind, registration: Registration) -> Registry {
    Registry::new()
        .with(kind, registration)
        .expect("a kind of its own")
}

/// A store that outlives drivers, and the clock of everything.
pub struct World {
    pub clock: ManualClock,
    pub runtime: Runtime,
    pub store: Arc<FaultStore>,
}

impl World {
    pub fn new() -> Self {
        let clock = ManualClock::new(i64::try_from(START_MS).expect("in range"));
        let memory = Arc::new(MemoryStore::new(Arc::new(clock.clone())));
        Self {
            runtime: test_runtime(&clock),
            store: Arc::new(FaultStore::new(memory)),
            clock,
        }
    }

    /// The verbs of scheduling behind any driver's back.
    pub fn timers(&self) -> Timers {
        let store: Arc<dyn NamespaceStore> = self.store.clone();
        Timers::new(store, self.runtime.clone())
    }

    /// A driver of two threads, without an audit, to be changed and started.
    pub fn driver(&self, registry: Registry) -> DriverBuilder {
        self.driver_on(self.store.clone(), registry)
    }

    /// The same over another store.
    pub fn driver_on(&self, store: Arc<dyn WakeStore>, registry: Registry) -> DriverBuilder {
        let of_engine: Arc<dyn NamespaceStore> = store.clone();
        let engine = Engine::new(of_engine, self.runtime.clone(), registry);
        Driver::builder(engine, store)
            .tick_threads(2)
            .without_audit()
    }

    /// Waits until every thread has come to rest and only the driver's nap is left.
    pub async fn at_rest(&self, handle: &Handle) {
        while self.clock.sleepers() != 1 || handle.status().ticks_running > 0 {
            tokio::task::yield_now().await;
        }
    }

    /// Lets time pass and the driver notice.
    pub async fn advance(&self, handle: &Handle, by: Duration) {
        self.clock.advance(by);
        run_all(handle).await;
    }
}

/// Schedules a timer that must not fail to be scheduled.
pub async fn schedule(timers: &Timers, partition: &str, timer: Timer) {
    timers
        .schedule(&named(partition), timer, Policy::Replace)
        .await
        .expect("it is scheduled");
}

pub fn named(partition: &str) -> Partition {
    Partition::new(partition.to_owned()).expect("a sound name")
}

/// How many timers of a kind the partition holds, dead ones included, of the first hundred.
pub async fn left(handle: &Handle, partition: &str, kind: TimerKind) -> usize {
    let query = ListQuery::new(kind);
    let page = handle.timers().list(&named(partition), &query).await;
    page.expect("the store answers").timers.len()
}

/// Waits on the system's clocks until something is so, and fails after two minutes.
pub async fn until(runtime: &Runtime, what: &str, mut is_so: impl FnMut() -> bool) {
    let limit = runtime.monotonic() + Duration::from_secs(120);
    while !is_so() {
        assert!(runtime.monotonic() < limit, "waited two minutes for {what}");
        runtime.sleep(Duration::from_millis(10)).await;
    }
}

/// Waits until everything due has run.
pub async fn run_all(handle: &Handle) {
    let report = handle.drain(Duration::from_secs(86_400)).await;
    assert!(report.idle, "{report:?}: {:?}", handle.status());
}

/// A door that a handler waits behind.
#[derive(Clone, Debug)]
pub struct Door(Arc<tokio::sync::Semaphore>);

impl Door {
    pub fn closed() -> Self {
        Self(Arc::new(tokio::sync::Semaphore::new(0)))
    }

    pub fn open(&self) {
        self.0.add_permits(1_000_000);
    }

    pub async fn pass(&self) {
        if let Ok(permit) = self.0.acquire().await {
            permit.forget();
        }
    }
}
