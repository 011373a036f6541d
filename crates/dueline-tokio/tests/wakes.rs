//! The driver wakes when a timer is due, however the timer came to be stored, and at no other time.
//!
//! Method: a manual clock and a store in memory that counts its calls. A test that expects something
//! to happen waits for it; a test that expects nothing lets the driver run everything due first.
#![cfg(test)]

mod rig;

use std::future::Future;
use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::Duration;

use dueline::store::{Batch, LaneWake, NamespaceStore, WakeStore};
use dueline::timers::{Fired, Policy, Registration, Timer, TimerKind, Timers};
use dueline_testkit::handler;
use dueline_tokio::{Driver, StartError};
use rig::{
    CALLING, Caller, Door, GateStore, LOGGED, Log, START_MS, World, logging, named, registry_of,
    run_all, schedule,
};

#[tokio::test]
async fn a_restart_finds_what_is_stored_and_fires_it() {
    let (world, log) = (World::new(), Arc::new(Log::default()));
    schedule(
        &world.timers(),
        "a",
        Timer::new(LOGGED, "before").due_at(START_MS),
    )
    .await;
    let handle = world
        .driver(registry_of(LOGGED, logging(&log)))
        .start()
        .expect("starts");
    log.reached(1).await;
    handle.shutdown(Duration::from_secs(1)).await;

    schedule(
        &world.timers(),
        "a",
        Timer::new(LOGGED, "between").due_at(START_MS),
    )
    .await;
    let handle = world
        .driver(registry_of(LOGGED, logging(&log)))
        .start()
        .expect("starts");
    run_all(&handle).await;
    assert_eq!(log.lines(), ["a/before", "a/between"]);
}

#[tokio::test]
async fn an_earlier_timer_wakes_the_sleeping_driver() {
    let (world, log) = (World::new(), Arc::new(Log::default()));
    let handle = world
        .driver(registry_of(LOGGED, logging(&log)))
        .start()
        .expect("starts");
    schedule(
        handle.timers(),
        "a",
        Timer::new(LOGGED, "late").due_at(START_MS + 60_000),
    )
    .await;
    run_all(&handle).await;
    world.at_rest(&handle).await;
    assert_eq!(handle.status().next_wake_ms, Some(START_MS + 60_000));

    schedule(
        handle.timers(),
        "b",
        Timer::new(LOGGED, "now").due_at(START_MS),
    )
    .await;
    log.reached(1).await;
    assert_eq!(log.lines(), ["b/now"], "no time had to pass");
    world.advance(&handle, Duration::from_secs(60)).await;
    assert_eq!(log.lines(), ["b/now", "a/late"]);
}

#[tokio::test]
async fn a_timer_put_while_its_partition_ticks_survives() {
    let (world, log, door) = (World::new(), Arc::new(Log::default()), Door::closed());
    let (of_handler, behind) = (Arc::clone(&log), door.clone());
    let slow = Registration::inline(handler(move |ctx, timer| {
        of_handler.push(rig::name(ctx.partition(), timer.reference()));
        let behind = behind.clone();
        Box::pin(async move {
            behind.pass().await;
            Ok(Fired::Done(Batch::new()))
        })
    }));
    let handle = world
        .driver(registry_of(LOGGED, slow))
        .start()
        .expect("starts");
    schedule(
        handle.timers(),
        "a",
        Timer::new(LOGGED, "first").due_at(START_MS),
    )
    .await;
    log.reached(1).await;
    schedule(
        handle.timers(),
        "a",
        Timer::new(LOGGED, "meanwhile").due_at(START_MS),
    )
    .await;
    door.open();
    run_all(&handle).await;
    assert_eq!(log.lines(), ["a/first", "a/meanwhile"]);
}

#[tokio::test]
async fn a_timer_put_by_a_handler_for_another_kind_of_its_partition_fires() {
    let (world, log) = (World::new(), Arc::new(Log::default()));
    let chained = Registration::inline(handler(|ctx, _| {
        let key = dueline::rows::TimerKey {
            kind: LOGGED,
            due_ms: ctx.now_ms(),
            generation: 7,
            reference: "chained".into(),
        };
        let row = dueline::rows::TimerRow::default().encode();
        Box::pin(async move { Ok(Fired::Done(Batch::new().put(key.encode(), row))) })
    }));
    let registry = registry_of(LOGGED, logging(&log))
        .with(TimerKind(17), chained)
        .expect("another kind");
    let handle = world.driver(registry).start().expect("starts");
    schedule(
        handle.timers(),
        "a",
        Timer::new(TimerKind(17), "").due_at(START_MS),
    )
    .await;
    log.reached(1).await;
    assert_eq!(log.lines(), ["a/chained"]);
}

#[tokio::test]
async fn a_commit_whose_caller_gave_up_still_wakes_the_driver_when_it_commits() {
    let (world, log, door) = (World::new(), Arc::new(Log::default()), Door::closed());
    let store = Arc::new(GateStore::new(world.store.clone(), door.clone()));
    let handle = world
        .driver_on(store, registry_of(LOGGED, logging(&log)))
        .start()
        .expect("starts");
    run_all(&handle).await;

    let timers = handle.timers().clone();
    let partition = named("a");
    let timer = Timer::new(LOGGED, "kept").due_at(START_MS);
    let mut request = Box::pin(timers.schedule(&partition, timer, Policy::Replace));
    let mut context = Context::from_waker(Waker::noop());
    assert!(
        request.as_mut().poll(&mut context).is_pending(),
        "the commit waits"
    );
    drop(request);
    run_all(&handle).await;
    assert_eq!(log.len(), 0, "nothing is committed yet");

    door.open();
    log.reached(1).await;
    assert_eq!(log.lines(), ["a/kept"]);
}

#[tokio::test]
async fn a_commit_given_up_on_a_thread_without_an_async_runtime_still_wakes_the_driver() {
    let (world, log, door) = (World::new(), Arc::new(Log::default()), Door::closed());
    let store = Arc::new(GateStore::new(world.store.clone(), door.clone()));
    let handle = world
        .driver_on(store, registry_of(LOGGED, logging(&log)))
        .start()
        .expect("starts");
    run_all(&handle).await;

    let timers = handle.timers().clone();
    let gives_up = std::thread::spawn(move || {
        let partition = named("a");
        let timer = Timer::new(LOGGED, "kept").due_at(START_MS);
        let mut request = Box::pin(timers.schedule(&partition, timer, Policy::Replace));
        let mut context = Context::from_waker(Waker::noop());
        assert!(request.as_mut().poll(&mut context).is_pending());
    });
    gives_up.join().expect("it gives up");
    door.open();
    log.reached(1).await;
    assert_eq!(log.lines(), ["a/kept"]);
}

#[tokio::test]
async fn a_commit_that_was_never_begun_is_not_made() {
    let (world, log) = (World::new(), Arc::new(Log::default()));
    let handle = world
        .driver(registry_of(LOGGED, logging(&log)))
        .start()
        .expect("starts");
    let partition = named("a");
    let timer = Timer::new(LOGGED, "unborn").due_at(START_MS);
    drop(handle.timers().schedule(&partition, timer, Policy::Replace));
    run_all(&handle).await;
    assert_eq!(log.len(), 0);
}

#[tokio::test]
async fn a_driver_with_nothing_due_asks_the_store_nothing() {
    let (world, log) = (World::new(), Arc::new(Log::default()));
    let handle = world
        .driver(registry_of(LOGGED, logging(&log)))
        .start()
        .expect("starts");
    schedule(
        handle.timers(),
        "a",
        Timer::new(LOGGED, "late").due_at(START_MS + 600_000),
    )
    .await;
    run_all(&handle).await;
    world.at_rest(&handle).await;

    let before = world.store.counts();
    for _ in 0..120 {
        world.clock.advance(Duration::from_secs(1));
        world.at_rest(&handle).await;
    }
    assert_eq!(world.store.counts(), before, "two idle minutes");
    world.advance(&handle, Duration::from_secs(480)).await;
    assert_eq!(log.lines(), ["a/late"]);
}

#[tokio::test]
async fn a_store_that_others_write_is_asked_every_second() {
    let (world, log) = (World::new(), Arc::new(Log::default()));
    world.store.set_shared(true);
    let handle = world
        .driver(registry_of(LOGGED, logging(&log)))
        .start()
        .expect("starts");
    run_all(&handle).await;
    world.at_rest(&handle).await;

    schedule(
        &world.timers(),
        "a",
        Timer::new(LOGGED, "theirs").due_at(START_MS),
    )
    .await;
    world.clock.advance(Duration::from_secs(1));
    log.reached(1).await;
    assert_eq!(log.lines(), ["a/theirs"]);
}

#[tokio::test]
async fn a_wake_that_comes_too_early_fires_nothing_and_is_set_again() {
    let (world, log) = (World::new(), Arc::new(Log::default()));
    let handle = world
        .driver(registry_of(LOGGED, logging(&log)))
        .start()
        .expect("starts");
    // The wake of the earlier due stays behind when the timer moves 15 ms later.
    let timer = Timer::new(LOGGED, "noon").named();
    schedule(handle.timers(), "a", timer.clone().due_at(START_MS + 985)).await;
    schedule(handle.timers(), "a", timer.due_at(START_MS + 1_000)).await;
    run_all(&handle).await;

    world.advance(&handle, Duration::from_millis(985)).await;
    assert_eq!(handle.status().ticks, 1, "the early wake was served");
    assert_eq!(log.len(), 0, "and nothing fired");
    world.advance(&handle, Duration::from_millis(14)).await;
    assert_eq!(log.len(), 0);
    world.advance(&handle, Duration::from_millis(1)).await;
    world.advance(&handle, Duration::from_secs(5)).await;
    assert_eq!(log.lines(), ["a/noon"], "exactly once");
}

#[tokio::test]
async fn a_lane_that_is_resumed_runs_at_once() {
    let (world, log) = (World::new(), Arc::new(Log::default()));
    let handle = world
        .driver(registry_of(LOGGED, logging(&log)))
        .start()
        .expect("starts");
    assert!(
        handle
            .pause_kind(&named("a"), LOGGED)
            .await
            .expect("paused")
    );
    schedule(
        handle.timers(),
        "a",
        Timer::new(LOGGED, "waits").due_at(START_MS),
    )
    .await;
    run_all(&handle).await;
    assert_eq!(log.len(), 0);
    handle
        .timers()
        .resume(&named("a"), LOGGED)
        .await
        .expect("resumed");
    log.reached(1).await;
    assert_eq!(log.lines(), ["a/waits"]);
}

#[tokio::test]
async fn the_audit_finds_a_lost_wake_counts_it_and_the_timer_fires() {
    let (world, log, door) = (World::new(), Arc::new(Log::default()), Door::closed());
    door.open();
    let mut store = GateStore::new(world.store.clone(), door);
    store.lost = Some(named("lost"));
    let store: Arc<dyn WakeStore> = Arc::new(store);
    schedule(
        &world.timers(),
        "lost",
        Timer::new(LOGGED, "found").due_at(START_MS),
    )
    .await;
    let handle = world
        .driver_on(store, registry_of(LOGGED, logging(&log)))
        .audit(1_000, Duration::from_secs(3_600))
        .start()
        .expect("starts");
    log.reached(1).await;
    run_all(&handle).await;
    let status = handle.status();
    assert_eq!((status.wakes_repaired, status.audits_completed), (1, 1));
}

#[tokio::test]
async fn a_store_that_keeps_no_wakes_starts_no_driver() {
    let world = World::new();
    let store: Arc<dyn NamespaceStore> = world.store.clone();
    let engine = dueline::timers::Engine::new(
        store,
        world.runtime.clone(),
        dueline::timers::Registry::new(),
    );
    let wakeless: Arc<dyn WakeStore> = Arc::new(rig::Wakeless(world.store.clone()));
    let refused = Driver::builder(engine, wakeless).start();
    assert!(matches!(refused, Err(StartError::NoWakes)), "{refused:?}");
}

#[tokio::test]
async fn a_stored_wake_of_a_kind_without_a_handler_is_left_alone() {
    let (world, log) = (World::new(), Arc::new(Log::default()));
    let timers: Timers = world.timers();
    schedule(
        &timers,
        "a",
        Timer::new(TimerKind(99), "unknown").due_at(START_MS),
    )
    .await;
    schedule(&timers, "a", Timer::new(LOGGED, "known").due_at(START_MS)).await;
    let handle = world
        .driver(registry_of(LOGGED, logging(&log)))
        .start()
        .expect("starts");
    run_all(&handle).await;
    assert_eq!(log.lines(), ["a/known"]);
    let all = dueline::timers::KindSet::all();
    let left = world
        .store
        .due_wakes(&all, u64::MAX, None, 10)
        .await
        .expect("read");
    let left: Vec<LaneWake> = left
        .wakes
        .iter()
        .map(|wake| LaneWake {
            kind: wake.kind,
            at_ms: wake.at_ms,
        })
        .collect();
    let kept = LaneWake {
        kind: TimerKind(99),
        at_ms: START_MS,
    };
    assert_eq!(left, [kept]);
}

#[tokio::test]
async fn a_wake_that_the_end_of_a_call_has_left_is_looked_at_though_its_timer_is_gone() {
    let (world, log, door) = (World::new(), Arc::new(Log::default()), Door::closed());
    door.open();
    let caller = Caller {
        log: Arc::clone(&log),
        door,
    };
    // Put before the driver begins: the wake of the first serves the lane, the second has none.
    let timers = world.timers();
    for (name, in_ms) in [("first", 500), ("second", 90_000)] {
        let timer = Timer::new(CALLING, name).due_at(START_MS + in_ms);
        schedule(&timers, "p", timer.named()).await;
    }
    let calling = Registration::detached(caller).concurrency(2);
    let driver = world.driver(registry_of(CALLING, calling));
    let handle = driver.start().expect("starts");
    // Never drained: that would read the store from end to end.
    world.at_rest(&handle).await;
    world.clock.advance(Duration::from_millis(500));
    while handle.status().totals.fired < 1 {
        tokio::task::yield_now().await;
    }
    let (partition, second) = (named("p"), "second".into());
    let cancelled = timers.cancel(&partition, CALLING, &second, None).await;
    assert!(cancelled.expect("the store works").is_some());
    for seconds in [41, 49] {
        world.at_rest(&handle).await;
        world.clock.advance(Duration::from_secs(seconds));
    }
    world.at_rest(&handle).await;
    let all = [CALLING].into_iter().collect();
    let left = world.store.due_wakes(&all, u64::MAX, None, 9).await;
    assert_eq!(left.expect("the store works").wakes, []);
}
