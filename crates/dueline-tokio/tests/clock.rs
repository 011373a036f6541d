//! The wall clock may jump; the host's clocks and sleeps are what they say.
//!
//! Method: a manual clock whose wall half is set alone, as by an operator or after a suspend; and
//! the real clocks for what is promised of them alone.
#![cfg(test)]

mod rig;

use std::sync::Arc;
use std::time::Duration;

use dueline::runtime::{Clock, Entropy, Sleep};
use dueline::timers::Timer;
use dueline_testkit::block_on;
use dueline_tokio::{OsEntropy, PreciseSleep, SystemClock, system_runtime};
use rig::{LOGGED, Log, START_MS, World, logging, registry_of, run_all, schedule};

#[tokio::test]
async fn a_clock_that_jumps_ahead_is_noticed_within_a_second_and_what_is_due_fires() {
    let (world, log) = (World::new(), Arc::new(Log::default()));
    let driver = world.driver(registry_of(LOGGED, logging(&log)));
    let handle = driver.start().expect("starts");
    let in_an_hour = Timer::new(LOGGED, "hour").due_at(START_MS + 3_600_000);
    schedule(handle.timers(), "a", in_an_hour).await;
    run_all(&handle).await;
    world.at_rest(&handle).await;

    world.clock.jump_wall_ms(3_600_000);
    world.clock.advance(Duration::from_secs(1));
    log.reached(1).await;
    run_all(&handle).await;
    let status = handle.status();
    assert_eq!(status.clock_jumps, 1);
    assert!(
        (3_599_990..=3_600_010).contains(&status.last_clock_jump_ms),
        "{status:?}"
    );
}

#[tokio::test]
async fn a_clock_that_jumps_back_makes_nothing_fire_early_or_twice() {
    let (world, log) = (World::new(), Arc::new(Log::default()));
    let driver = world.driver(registry_of(LOGGED, logging(&log)));
    let handle = driver.start().expect("starts");
    let soon = Timer::new(LOGGED, "soon").due_at(START_MS + 10_000);
    schedule(handle.timers(), "a", soon).await;
    run_all(&handle).await;
    world.at_rest(&handle).await;

    world.clock.jump_wall_ms(-60_000);
    for _ in 0..69 {
        world.advance(&handle, Duration::from_secs(1)).await;
        assert_eq!(
            log.len(),
            0,
            "the wall clock shows {} ms",
            world.clock.wall_ms()
        );
    }
    world.advance(&handle, Duration::from_secs(1)).await;
    world.advance(&handle, Duration::from_secs(60)).await;
    assert_eq!(log.lines(), ["a/soon"]);
    let status = handle.status();
    assert_eq!(status.clock_jumps, 1);
    assert!(
        (-60_010..=-59_990).contains(&status.last_clock_jump_ms),
        "{status:?}"
    );
}

/// The wake of an overdue lane lies where the clock was when it was set. A clock that is set back
/// afterwards leaves it in the future, though its timers have long been due.
#[tokio::test]
async fn what_was_overdue_before_the_clock_jumped_back_and_still_is_does_not_wait() {
    let (world, log) = (World::new(), Arc::new(Log::default()));
    let driver = world.driver(registry_of(LOGGED, logging(&log)));
    let handle = driver.start().expect("starts");
    run_all(&handle).await;
    handle.pause();
    for (reference, due_ms) in [
        ("overdue", START_MS - 600_000),
        ("not-any-more", START_MS - 1),
    ] {
        let timer = Timer::new(LOGGED, reference).due_at(due_ms);
        schedule(handle.timers(), reference, timer).await;
    }
    world.clock.jump_wall_ms(-60_000);
    handle.resume();
    // Without a step of the clock forward.
    log.reached(1).await;
    run_all(&handle).await;
    assert_eq!(log.lines(), ["overdue/overdue"]);
    world.advance(&handle, Duration::from_secs(60)).await;
    assert_eq!(log.len(), 2);
}

#[test]
fn a_precise_sleep_never_ends_early_and_sleeps_end_in_their_order() {
    let clock = Arc::new(SystemClock::new());
    let sleep = PreciseSleep::start(Arc::clone(&clock)).expect("a thread");
    let before = clock.monotonic();
    block_on(sleep.sleep(Duration::from_millis(3)));
    assert!(clock.monotonic() - before >= Duration::from_millis(3));

    let long = sleep.sleep(Duration::from_secs(3_600));
    let before = clock.monotonic();
    block_on(sleep.sleep(Duration::from_micros(200)));
    assert!(
        clock.monotonic() - before < Duration::from_secs(600),
        "not behind the long one"
    );
    drop(long);
    block_on(sleep.sleep(Duration::ZERO));
}

#[test]
fn a_sleep_outlives_the_runtime_it_came_from() {
    let runtime = system_runtime().expect("entropy and a thread");
    let sleep = runtime.sleep(Duration::from_millis(2));
    drop(runtime);
    block_on(sleep);
}

#[test]
fn the_systems_wall_clock_is_past_2020_and_its_entropy_does_not_repeat() {
    assert!(SystemClock::new().wall_ms() > 1_577_836_800_000);
    let entropy = OsEntropy::new().expect("entropy");
    assert_ne!(entropy.next_u64(), entropy.next_u64());
}
