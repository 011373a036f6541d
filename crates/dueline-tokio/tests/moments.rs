//! A commit that falls between the driver's look at the clock and its look at the store is not lost.
//!
//! Method: a clock that holds the driver's thread up just after it has read the time. Meanwhile time
//! passes and something commits; then the driver goes on with the old time. A timer that the driver
//! has missed is not found by waiting: nothing else happens that would make it look again.
#![cfg(test)]

mod rig;

use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

use dueline::runtime::{Clock, Runtime};
use dueline::store::{Batch, NamespaceStore, WakeStore};
use dueline::timers::{Engine, Fired, KindSet, Registration, Timer};
use dueline_sqlite::{Options, SqliteStore};
use dueline_testkit::{ManualClock, handler, test_runtime};
use dueline_tokio::{Driver, Handle};
use rig::{
    CALLING, Caller, Door, LOGGED, Log, START_MS, World, logging, registry_of, run_all, schedule,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hold {
    Off,
    /// The next reading of the driver's thread is held up.
    Armed,
    Read,
    Held,
}

/// The manual clock, which can hold up the driver's thread behind its reading of the wall clock.
#[derive(Debug)]
struct HoldingClock {
    inner: ManualClock,
    hold: Mutex<Hold>,
    changed: Condvar,
}

impl HoldingClock {
    fn set(&self, hold: Hold) {
        *self.hold.lock().expect("no test panics here") = hold;
        self.changed.notify_all();
    }

    fn is(&self, hold: Hold) -> bool {
        *self.hold.lock().expect("no test panics here") == hold
    }

    fn of_driver() -> bool {
        thread::current().name() == Some("dueline-driver")
    }

    /// Waits until the driver's thread is held up behind a reading of the clock as it is now.
    async fn hold_driver(&self, handle: &Handle) {
        self.set(Hold::Armed);
        handle.resume();
        while !self.is(Hold::Held) {
            tokio::task::yield_now().await;
        }
    }
}

impl Clock for HoldingClock {
    fn wall_ms(&self) -> i64 {
        let wall_ms = self.inner.wall_ms();
        if Self::of_driver() && self.is(Hold::Armed) {
            self.set(Hold::Read);
        }
        wall_ms
    }

    fn monotonic(&self) -> Duration {
        if Self::of_driver() && self.is(Hold::Read) {
            self.set(Hold::Held);
            let hold = self.hold.lock().expect("no test panics here");
            drop(
                self.changed
                    .wait_while(hold, |hold| *hold == Hold::Held)
                    .expect("no test panics here"),
            );
        }
        self.inner.monotonic()
    }
}

fn holding(world: &World) -> (Arc<HoldingClock>, Runtime) {
    let clock = Arc::new(HoldingClock {
        inner: world.clock.clone(),
        hold: Mutex::new(Hold::Off),
        changed: Condvar::new(),
    });
    let plain = test_runtime(&world.clock);
    let runtime = Runtime::new(
        clock.clone(),
        Arc::new(world.clock.clone()),
        Arc::new(Random(plain)),
    );
    (clock, runtime)
}

#[derive(Debug)]
struct Random(Runtime);

impl dueline::runtime::Entropy for Random {
    fn next_u64(&self) -> u64 {
        self.0.random_u64()
    }
}

#[tokio::test]
async fn a_timer_that_is_due_at_once_and_put_behind_the_drivers_reading_of_the_clock_fires() {
    let (world, log) = (World::new(), Arc::new(Log::default()));
    let (clock, runtime) = holding(&world);
    let store: Arc<dyn NamespaceStore> = world.store.clone();
    let engine = Engine::new(store, runtime, registry_of(LOGGED, logging(&log)));
    let store: Arc<dyn WakeStore> = world.store.clone();
    let driver = Driver::builder(engine, store).tick_threads(1);
    let handle = driver.without_audit().start().expect("starts");
    run_all(&handle).await;
    world.at_rest(&handle).await;

    clock.hold_driver(&handle).await;
    world.clock.advance(Duration::from_millis(5));
    let overdue = Timer::new(LOGGED, "at-once").due_at(START_MS);
    schedule(handle.timers(), "a", overdue).await;
    clock.set(Hold::Off);

    world.at_rest(&handle).await;
    world.clock.advance(Duration::from_secs(1));
    world.at_rest(&handle).await;
    assert_eq!(log.lines(), ["a/at-once"]);
}

#[tokio::test]
async fn a_wake_that_a_settle_moves_behind_the_drivers_reading_of_the_clock_is_found() {
    let (world, log, door) = (World::new(), Arc::new(Log::default()), Door::closed());
    let (clock, runtime) = holding(&world);
    let folder = tempfile::tempdir().expect("a folder");
    let options = Options::new(Arc::new(world.clock.clone()));
    let sqlite = SqliteStore::open(folder.path().join("timers.db"), options).expect("opens");
    let store = Arc::new(sqlite);
    let caller = Caller {
        log: Arc::clone(&log),
        door: door.clone(),
    };
    let registration = Registration::detached(caller).concurrency(1);
    let of_engine: Arc<dyn NamespaceStore> = store.clone();
    let engine = Engine::new(of_engine, runtime, registry_of(CALLING, registration));
    let slots = engine.slots().clone();
    let driver = Driver::builder(engine, Arc::clone(&store)).tick_threads(1);
    let handle = driver.without_audit().start().expect("starts");
    let first = Timer::new(CALLING, "first").due_at(START_MS);
    schedule(handle.timers(), "a", first).await;
    log.reached(1).await;
    // While the only slot is taken the driver is told of this one and does not read it.
    let second = Timer::new(CALLING, "second").due_at(START_MS);
    schedule(handle.timers(), "a", second).await;

    clock.hold_driver(&handle).await;
    world.clock.advance(Duration::from_millis(5));
    door.open();
    let kinds = KindSet::from_iter([CALLING]);
    loop {
        let page = store.due_wakes(&kinds, START_MS + 5, None, 10).await;
        let wakes = page.expect("it is readable").wakes;
        if slots.used() == 0 && wakes.iter().all(|wake| wake.at_ms == START_MS + 5) {
            break;
        }
    }
    // The slot is free; the thread that settled says so in a moment.
    for _ in 0..1_000 {
        tokio::task::yield_now().await;
    }
    clock.set(Hold::Off);

    // The driver sleeps again, or the second call runs and its deadline does.
    while world.clock.sleepers() == 0 {
        tokio::task::yield_now().await;
    }
    world.clock.advance(Duration::from_secs(1));
    log.reached(2).await;
    assert_eq!(log.lines(), ["call a", "call a"]);
    handle.shutdown(Duration::from_secs(1)).await;
}

#[tokio::test]
async fn a_drain_asked_for_behind_the_drivers_reading_of_the_clock_waits_for_what_is_due_by_then() {
    let world = World::new();
    let door = Door::closed();
    let behind = door.clone();
    let waits = Registration::inline(handler(move |_, _| {
        let behind = behind.clone();
        Box::pin(async move {
            behind.pass().await;
            Ok(Fired::Done(Batch::new()))
        })
    }));
    let (clock, runtime) = holding(&world);
    let store: Arc<dyn NamespaceStore> = world.store.clone();
    let engine = Engine::new(store, runtime, registry_of(LOGGED, waits));
    let store: Arc<dyn WakeStore> = world.store.clone();
    let driver = Driver::builder(engine, store).tick_threads(1);
    let handle = driver.without_audit().start().expect("starts");
    run_all(&handle).await;
    world.at_rest(&handle).await;

    clock.hold_driver(&handle).await;
    world.clock.advance(Duration::from_millis(5));
    let overdue = Timer::new(LOGGED, "at-once").due_at(START_MS);
    schedule(handle.timers(), "a", overdue).await;
    let of_drain = handle.clone();
    let mut drains = tokio::task::JoinSet::new();
    let drain = drains.spawn(async move { of_drain.drain(Duration::from_secs(86_400)).await });
    tokio::task::yield_now().await;
    clock.set(Hold::Off);
    for _ in 0..100_000 {
        tokio::task::yield_now().await;
    }
    assert!(!drain.is_finished(), "the timer is due and has not run");
    door.open();
    while !drain.is_finished() {
        world.clock.advance(Duration::from_millis(1));
        tokio::task::yield_now().await;
    }
    let report = drains.join_next().await.expect("it was begun");
    assert!(report.expect("it ends").idle);
    assert_eq!(handle.status().totals.fired, 1);
}
