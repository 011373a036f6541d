//! What a program does with a running driver: drain it, pause it, watch it.
//!
//! Method: a manual clock, and calls and handlers behind doors that the test opens.
#![cfg(test)]

mod rig;

use std::sync::Arc;
use std::time::Duration;

use dueline::store::Batch;
use dueline::timers::{Fired, Registration, Timer, TimerKind};
use dueline_testkit::handler;
use rig::{
    CALLING, Caller, Door, LOGGED, Log, START_MS, World, logging, registry_of, run_all, schedule,
};

#[tokio::test]
async fn a_call_over_its_deadline_is_dropped_and_counts_as_failed() {
    let (world, calls) = (World::new(), Arc::new(Log::default()));
    let caller = Caller {
        log: Arc::clone(&calls),
        door: Door::closed(),
    };
    let registration = Registration::detached(caller).deadline_ms(5_000);
    let handle = world
        .driver(registry_of(CALLING, registration))
        .start()
        .expect("starts");
    schedule(
        handle.timers(),
        "a",
        Timer::new(CALLING, "").due_at(START_MS),
    )
    .await;
    calls.reached(1).await;
    world.clock.advance(Duration::from_millis(5_000));
    run_all(&handle).await;
    let status = handle.status();
    assert_eq!((status.totals.failed, status.calls_running), (1, 0));
    world.clock.advance(Duration::from_millis(6_100));
    calls.reached(2).await;
}

#[tokio::test]
async fn a_drain_waits_for_calls_and_gives_up_at_its_deadline() {
    let (world, calls, door) = (World::new(), Arc::new(Log::default()), Door::closed());
    let caller = Caller {
        log: Arc::clone(&calls),
        door: door.clone(),
    };
    let registration = Registration::detached(caller);
    let handle = world
        .driver(registry_of(CALLING, registration))
        .start()
        .expect("starts");
    schedule(
        handle.timers(),
        "a",
        Timer::new(CALLING, "").due_at(START_MS),
    )
    .await;
    calls.reached(1).await;
    let (report, ()) = tokio::join!(handle.drain(Duration::from_secs(3)), async {
        world.clock.advance(Duration::from_secs(3));
    });
    assert!(!report.idle, "the call is under way");
    door.open();
    run_all(&handle).await;
    assert_eq!(handle.status().totals.fired, 1);
}

#[tokio::test]
async fn a_paused_driver_starts_nothing_and_a_resumed_one_goes_on() {
    let (world, log) = (World::new(), Arc::new(Log::default()));
    let handle = world
        .driver(registry_of(LOGGED, logging(&log)))
        .start()
        .expect("starts");
    handle.pause();
    schedule(
        handle.timers(),
        "a",
        Timer::new(LOGGED, "").due_at(START_MS),
    )
    .await;
    world.clock.advance(Duration::from_secs(5));
    world.at_rest(&handle).await;
    assert!(handle.status().paused);
    assert_eq!(log.len(), 0);
    handle.resume();
    log.reached(1).await;
}

#[tokio::test]
async fn a_handler_that_never_yields_is_reported_once() {
    let (world, log) = (World::new(), Arc::new(Log::default()));
    let (free, stuck) = std::sync::mpsc::channel::<()>();
    let stuck = std::sync::Mutex::new(stuck);
    let of_handler = Arc::clone(&log);
    let blocking = Registration::inline(handler(move |_, _| {
        of_handler.push("blocks its thread");
        let _ = stuck.lock().expect("one at a time").recv();
        Box::pin(async { Ok(Fired::Done(Batch::new())) })
    }));
    let registry = registry_of(TimerKind(17), blocking)
        .with(LOGGED, logging(&log))
        .expect("another kind");
    let handle = world.driver(registry).start().expect("starts");
    schedule(
        handle.timers(),
        "a",
        Timer::new(TimerKind(17), "").due_at(START_MS),
    )
    .await;
    log.reached(1).await;
    for _ in 0..30 {
        world.clock.advance(Duration::from_secs(1));
        while world.clock.sleepers() != 1 {
            tokio::task::yield_now().await;
        }
    }
    assert_eq!(handle.status().ticks_overrun, 1);
    schedule(
        handle.timers(),
        "b",
        Timer::new(LOGGED, "runs").due_at(START_MS),
    )
    .await;
    log.reached(2).await;
    drop(free);
    run_all(&handle).await;
}
