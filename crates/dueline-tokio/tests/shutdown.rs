//! Stopping a driver finishes or gives back what runs, starts nothing, and loses nothing.
//!
//! Method: a manual clock, handlers behind doors, and a second driver over the same store that shows
//! what the first has left.
#![cfg(test)]

mod rig;

use std::sync::Arc;
use std::time::Duration;

use dueline::BoxFuture;
use dueline::runtime::Runtime;
use dueline::store::{Batch, WakeStore};
use dueline::timers::{
    DetachedHandler, DueTimer, Fired, HandlerError, Registration, Timer, TimerCtx, TimerKind,
};
use dueline_testkit::handler;
use rig::{Door, LOGGED, Log, START_MS, World, logging, registry_of, run_all, schedule};

const CALLING: TimerKind = TimerKind(40);

/// Calls out for as many seconds as its payload has bytes, and logs how each run began and ended.
struct Caller {
    log: Arc<Log>,
    runtime: Runtime,
}

impl DetachedHandler for Caller {
    type Output = ();

    fn call<'a>(
        &'a self,
        ctx: &'a TimerCtx<'a>,
        timer: &'a DueTimer,
    ) -> BoxFuture<'a, Result<(), HandlerError>> {
        Box::pin(async move {
            let seconds = timer.payload().len() as u64;
            let call = format!("{} attempt {}", ctx.partition(), timer.attempt());
            self.log.push(format!("begin {call}"));
            self.runtime.sleep(Duration::from_secs(seconds)).await;
            self.log.push(format!("end {call}"));
            Ok(())
        })
    }

    fn settle<'a>(
        &'a self,
        _: &'a TimerCtx<'a>,
        _: &'a DueTimer,
        (): &'a (),
    ) -> BoxFuture<'a, Result<Fired, HandlerError>> {
        Box::pin(async { Ok(Fired::Done(Batch::new())) })
    }
}

fn calling(world: &World, log: &Arc<Log>, concurrency: u32) -> Registration {
    let caller = Caller {
        log: Arc::clone(log),
        runtime: world.runtime.clone(),
    };
    Registration::detached(caller).concurrency(concurrency)
}

fn count(log: &Log, what: &str) -> usize {
    log.lines()
        .iter()
        .filter(|line| line.starts_with(what))
        .count()
}

#[tokio::test]
async fn the_tick_in_progress_is_finished_and_no_other_is_started() {
    let (world, log, door) = (World::new(), Arc::new(Log::default()), Door::closed());
    let (of_handler, behind) = (Arc::clone(&log), door.clone());
    let slow = Registration::inline(handler(move |ctx, _| {
        of_handler.push(ctx.partition().to_string());
        let behind = behind.clone();
        Box::pin(async move {
            behind.pass().await;
            Ok(Fired::Done(Batch::new()))
        })
    }));
    schedule(
        &world.timers(),
        "a",
        Timer::new(LOGGED, "").due_at(START_MS - 1),
    )
    .await;
    schedule(
        &world.timers(),
        "b",
        Timer::new(LOGGED, "").due_at(START_MS),
    )
    .await;
    let handle = world
        .driver(registry_of(LOGGED, slow))
        .ticks_max(1)
        .start()
        .expect("starts");
    log.reached(1).await;
    let (report, ()) = tokio::join!(handle.shutdown(Duration::from_secs(10)), async {
        door.open();
    });
    assert!(
        report.finished && !report.aborted && report.threads_stuck == 0,
        "{report:?}"
    );
    assert_eq!(log.lines(), ["a"]);

    let handle = world
        .driver(registry_of(LOGGED, logging(&log)))
        .start()
        .expect("starts");
    run_all(&handle).await;
    assert_eq!(log.lines(), ["a", "b/"], "a is done, b was left for later");
}

#[tokio::test]
async fn calls_that_outlast_the_grace_are_given_back_uncharged_and_fire_at_the_next_start() {
    let (world, log) = (World::new(), Arc::new(Log::default()));
    for number in 0..10 {
        // Three of ten need a second, the others five.
        let payload = if number < 3 { "." } else { "....." };
        let timer = Timer::new(CALLING, "").due_at(START_MS).payload(payload);
        schedule(&world.timers(), &format!("p{number}"), timer).await;
    }
    for number in 0..5 {
        let timer = Timer::new(CALLING, "").due_at(START_MS + 1).payload(".");
        schedule(&world.timers(), &format!("waits{number}"), timer).await;
    }
    let registry = registry_of(CALLING, calling(&world, &log, 10));
    let handle = world.driver(registry).start().expect("starts");
    log.reached(10).await;
    while handle.status().ticks_running > 0 {
        tokio::task::yield_now().await;
    }

    let (report, ()) = tokio::join!(handle.shutdown(Duration::from_secs(2)), async {
        world.clock.advance(Duration::from_secs(1));
        log.reached(13).await;
        // The grace ends only once the three that ended are settled too.
        while handle.status().totals.fired < 3 {
            tokio::task::yield_now().await;
        }
        world.clock.advance(Duration::from_secs(1));
    });
    assert!(!report.finished && !report.aborted, "{report:?}");
    assert_eq!(
        (report.released, report.unreleased, report.threads_stuck),
        (7, 0, 0)
    );
    assert_eq!(
        (count(&log, "begin"), count(&log, "end")),
        (10, 3),
        "nothing new was claimed"
    );

    let registry = registry_of(CALLING, calling(&world, &log, 100));
    let handle = world.driver(registry).start().expect("starts");
    log.reached(13 + 12).await;
    let again: Vec<String> = log.lines().split_off(13);
    assert_eq!(
        again
            .iter()
            .filter(|line| line.starts_with("begin"))
            .count(),
        12
    );
    assert!(
        again.iter().all(|line| line.ends_with("attempt 1")),
        "{again:?}"
    );
    world.advance(&handle, Duration::from_secs(5)).await;
    assert_eq!(handle.status().totals.fired, 12);
}

#[tokio::test]
async fn a_second_shutdown_ends_at_once_and_loses_nothing() {
    let (world, log) = (World::new(), Arc::new(Log::default()));
    let timer = Timer::new(CALLING, "").due_at(START_MS).payload("......");
    schedule(&world.timers(), "a", timer).await;
    let registry = registry_of(CALLING, calling(&world, &log, 1));
    let handle = world.driver(registry).start().expect("starts");
    log.reached(1).await;
    let second = handle.clone();
    let (first, second) = tokio::join!(handle.shutdown(Duration::from_secs(600)), async move {
        second.shutdown(Duration::from_secs(600)).await
    },);
    assert!(first.aborted && second.aborted, "{first:?} {second:?}");

    let registry = registry_of(CALLING, calling(&world, &log, 1));
    let handle = world.driver(registry).start().expect("starts");
    run_all(&handle).await;
    assert_eq!(log.len(), 1, "its claim has not ended");
    // The claim ends 10 s behind the deadline of 30 s.
    world.clock.advance(Duration::from_secs(40));
    log.reached(2).await;
    world.advance(&handle, Duration::from_secs(6)).await;
    assert_eq!(log.lines()[1..], ["begin a attempt 2", "end a attempt 2"]);
}

#[tokio::test]
async fn a_tick_that_outlasts_the_grace_is_dropped_and_its_timer_fires_later() {
    let (world, log) = (World::new(), Arc::new(Log::default()));
    let of_handler = Arc::clone(&log);
    let endless = Registration::inline(handler(move |_, _| {
        of_handler.push("begin");
        Box::pin(std::future::pending())
    }));
    schedule(
        &world.timers(),
        "a",
        Timer::new(LOGGED, "").due_at(START_MS),
    )
    .await;
    let handle = world
        .driver(registry_of(LOGGED, endless))
        .start()
        .expect("starts");
    log.reached(1).await;
    let (report, ()) = tokio::join!(handle.shutdown(Duration::from_secs(2)), async {
        world.clock.advance(Duration::from_secs(2));
    });
    assert!(!report.finished && report.threads_stuck == 0, "{report:?}");
    let handle = world
        .driver(registry_of(LOGGED, logging(&log)))
        .start()
        .expect("starts");
    run_all(&handle).await;
    assert_eq!(log.lines(), ["begin", "a/"]);
}

#[tokio::test]
async fn dropping_the_handle_ends_the_threads_and_keeps_the_timers() {
    let (world, log) = (World::new(), Arc::new(Log::default()));
    let timer = Timer::new(CALLING, "").due_at(START_MS).payload("......");
    schedule(&world.timers(), "a", timer).await;
    let registry = registry_of(CALLING, calling(&world, &log, 1));
    let store: Arc<dyn WakeStore> = world.store.clone();
    let handle = world.driver_on(store, registry).start().expect("starts");
    log.reached(1).await;
    drop(handle);
    while Arc::strong_count(&world.store) > 1 {
        tokio::task::yield_now().await;
    }
    let registry = registry_of(CALLING, calling(&world, &log, 1));
    let handle = world.driver(registry).start().expect("starts");
    world.advance(&handle, Duration::ZERO).await;
    world.clock.advance(Duration::from_secs(40));
    log.reached(2).await;
    assert_eq!(log.lines()[1], "begin a attempt 2");
}

#[tokio::test]
async fn a_shutdown_of_an_idle_driver_needs_no_time() {
    let (world, log) = (World::new(), Arc::new(Log::default()));
    let handle = world
        .driver(registry_of(LOGGED, logging(&log)))
        .start()
        .expect("starts");
    let report = handle.shutdown(Duration::from_secs(600)).await;
    assert!(report.finished && report.threads_stuck == 0, "{report:?}");
    assert!(handle.status().stopping);
    let drained = handle.drain(Duration::ZERO).await;
    assert!(!drained.idle, "a stopped driver drains nothing");
}
