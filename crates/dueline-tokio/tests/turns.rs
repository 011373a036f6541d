//! Whose turn it is: fair between partitions, bounded in memory, and nobody waits for a partition
//! or a kind that cannot run.
//!
//! Method: a manual clock, a store in memory that can be made to refuse, and one tick at a time
//! where the order is looked at.
#![cfg(test)]

mod rig;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use dueline::store::Batch;
use dueline::timers::{Fired, Registration, Registry, Timer, TimerKind};
use dueline_testkit::{CommitFault, handler};
use rig::{
    CALLING, Caller, Door, LOGGED, Log, START_MS, World, logging, registry_of, run_all, schedule,
};

#[tokio::test]
async fn every_due_partition_has_its_turn_before_an_immediate_timer_repeats() {
    let (world, log) = (World::new(), Arc::new(Log::default()));
    let of_handler = Arc::clone(&log);
    let again = Registration::inline(handler(move |ctx, timer| {
        of_handler.push(ctx.partition().to_string());
        let repeats = timer.payload().len() < 3;
        let mut payload = timer.payload().to_vec();
        payload.push(b'.');
        let due_at_ms = ctx.now_ms();
        Box::pin(async move {
            let batch = Batch::new();
            Ok(if repeats {
                Fired::Reschedule {
                    due_at_ms,
                    payload: payload.into(),
                    batch,
                }
            } else {
                Fired::Done(batch)
            })
        })
    }));
    let timers = world.timers();
    schedule(
        &timers,
        "a",
        Timer::new(LOGGED, "again").due_at(START_MS - 9),
    )
    .await;
    for name in ["b", "c", "d"] {
        let once = Timer::new(LOGGED, "once")
            .due_at(START_MS - 1)
            .payload("...");
        schedule(&timers, name, once).await;
    }
    // A second later even a due that was floored to the tick's time lies in the past.
    world.clock.advance(Duration::from_secs(1));
    let driver = world.driver(registry_of(LOGGED, again)).ticks_max(1);
    let handle = driver.start().expect("starts");
    while log.len() < 7 {
        run_all(&handle).await;
        world.clock.advance(Duration::from_millis(1));
    }
    assert_eq!(log.lines(), ["a", "b", "c", "d", "a", "a", "a"]);
}

#[tokio::test]
async fn a_small_backlog_runs_in_the_order_of_dues_and_a_large_one_in_that_of_partitions() {
    for (timers, by_partition) in [(900_u64, false), (1_600, true)] {
        let (world, log) = (World::new(), Arc::new(Log::default()));
        for number in 0..timers {
            let name = format!("p{:05}", timers - number);
            let due_ms = START_MS + number;
            schedule(
                &world.timers(),
                &name,
                Timer::new(LOGGED, "").due_at(due_ms),
            )
            .await;
        }
        world.clock.advance(Duration::from_millis(timers));
        let driver = world
            .driver(registry_of(LOGGED, logging(&log)))
            .ticks_max(1);
        let handle = driver.start().expect("starts");
        run_all(&handle).await;
        let lines = log.lines();
        let mut sorted = lines.clone();
        sorted.sort();
        if !by_partition {
            sorted.reverse();
        }
        assert_eq!(lines.len() as u64, timers);
        assert!(lines == sorted, "{timers} overdue: {:?}", &lines[..5]);
    }
}

#[tokio::test]
async fn memory_does_not_grow_with_what_is_pending_or_overdue() {
    // A backlog is read eight windows far if a window holds more than 1,024 wakes; meanwhile at most
    // an eighth of a window still waits and 256 partitions tick, each with four lanes here.
    let around = |window: usize| 4 * (window / 8 + 256);
    for (window, most_read) in [(512, 512), (2_048, 8 * 2_048)] {
        let (world, log) = (World::new(), Arc::new(Log::default()));
        let mut registry = Registry::new();
        for kind in 16..20 {
            registry
                .register(TimerKind(kind), logging(&log))
                .expect("one each");
        }
        for number in 0..20_000_u64 {
            let kind = TimerKind(16 + u8::try_from(number % 4).expect("small"));
            let timer = Timer::new(kind, "").due_at(START_MS + 1_000 + number / 4);
            schedule(&world.timers(), &format!("p{}", number / 4), timer).await;
        }
        let driver = world.driver(registry).window_max(window);
        let handle = driver.start().expect("starts");
        run_all(&handle).await;
        let pending = handle.status();
        assert!(
            (1..=window).contains(&pending.wakes_in_memory),
            "{pending:?}"
        );

        world.clock.advance(Duration::from_secs(60));
        let mut most = 0;
        while log.len() < 20_000 {
            most = most.max(handle.status().wakes_in_memory);
            tokio::task::yield_now().await;
        }
        run_all(&handle).await;
        let bound = most_read + around(window);
        assert!(
            (window..=bound).contains(&most),
            "{most} of at most {bound}"
        );
        assert_eq!((handle.status().wakes_in_memory, log.len()), (0, 20_000));
    }
}

#[tokio::test]
async fn a_kind_without_a_slot_costs_nothing_and_keeps_nobody_waiting() {
    let (world, log, door) = (World::new(), Arc::new(Log::default()), Door::closed());
    let calls = Arc::new(Log::default());
    let caller = Caller {
        log: Arc::clone(&calls),
        door: door.clone(),
    };
    let registry = registry_of(LOGGED, logging(&log))
        .with(CALLING, Registration::detached(caller).concurrency(2))
        .expect("another kind");
    for number in 0..50 {
        let name = format!("p{number:02}");
        schedule(
            &world.timers(),
            &name,
            Timer::new(CALLING, "").due_at(START_MS),
        )
        .await;
        schedule(
            &world.timers(),
            &name,
            Timer::new(LOGGED, "").due_at(START_MS),
        )
        .await;
    }
    let handle = world.driver(registry).start().expect("starts");
    calls.reached(2).await;
    log.reached(50).await;
    // Only the naps of the driver and the deadlines of the two calls are left.
    while world.clock.sleepers() != 3 || handle.status().ticks_running > 0 {
        tokio::task::yield_now().await;
    }
    let before = (world.store.counts(), handle.status().ticks);
    schedule(
        handle.timers(),
        "q",
        Timer::new(LOGGED, "new").due_at(START_MS),
    )
    .await;
    log.reached(51).await;
    let cost = world.store.counts() - before.0;
    assert!(
        cost.row_reads() + cost.due_wakes < 12,
        "one more timer, not fifty lanes: {cost:?}"
    );
    assert_eq!(calls.len(), 2, "no further call begins");

    door.open();
    run_all(&handle).await;
    assert_eq!((calls.len(), handle.status().totals.fired), (50, 101));
}

#[tokio::test]
async fn a_partition_with_many_calls_does_not_keep_others_from_a_slot() {
    let (world, calls, door) = (World::new(), Arc::new(Log::default()), Door::closed());
    let caller = Caller {
        log: Arc::clone(&calls),
        door: door.clone(),
    };
    let registration = Registration::detached(caller).concurrency(1);
    for name in ["a", "a", "a", "b", "c"] {
        schedule(
            &world.timers(),
            name,
            Timer::new(CALLING, "").due_at(START_MS),
        )
        .await;
    }
    let handle = world
        .driver(registry_of(CALLING, registration))
        .start()
        .expect("starts");
    calls.reached(1).await;
    door.open();
    run_all(&handle).await;
    let order = ["call a", "call b", "call c", "call a", "call a"];
    assert_eq!(calls.lines(), order);
    assert_eq!(handle.status().partitions_held_back, 0);
}

#[tokio::test]
async fn a_partition_that_the_store_refuses_is_held_back_longer_each_time_and_others_run() {
    let (world, log) = (World::new(), Arc::new(Log::default()));
    let tries = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&tries);
    schedule(
        &world.timers(),
        "bad",
        Timer::new(LOGGED, "").due_at(START_MS),
    )
    .await;
    world.store.fail_commits_with(move |partition, _| {
        (partition.as_bytes() == b"bad").then(|| {
            counted.fetch_add(1, Ordering::Relaxed);
            CommitFault::NotWritten(dueline::store::StoreErrorKind::Unavailable)
        })
    });
    let handle = world
        .driver(registry_of(LOGGED, logging(&log)))
        .start()
        .expect("starts");
    let mut waited = Vec::new();
    for seconds in [1, 2, 4, 8] {
        run_all(&handle).await;
        let before = tries.load(Ordering::Relaxed);
        let status = handle.status();
        assert_eq!(status.partitions_held_back, 1);
        assert_eq!(status.refused_since_ms, Some(START_MS), "the first refusal");
        world
            .advance(&handle, Duration::from_millis(seconds * 1_000 - 1))
            .await;
        assert_eq!(
            tries.load(Ordering::Relaxed),
            before,
            "not before {seconds} s"
        );
        world.advance(&handle, Duration::from_millis(1)).await;
        waited.push(tries.load(Ordering::Relaxed) > before);
    }
    assert_eq!(waited, [true; 4]);
    schedule(
        handle.timers(),
        "good",
        Timer::new(LOGGED, "").due_at(START_MS),
    )
    .await;
    run_all(&handle).await;
    assert!(log.lines().contains(&"good/".to_owned()));

    world.store.heal();
    world.advance(&handle, Duration::from_secs(60)).await;
    let status = handle.status();
    assert_eq!((status.partitions_held_back, status.totals.fired), (0, 2));
    assert_eq!(status.refused_since_ms, None);
}

#[tokio::test]
async fn a_partition_is_asked_again_soon_while_the_store_is_full() {
    let (world, log) = (World::new(), Arc::new(Log::default()));
    schedule(
        &world.timers(),
        "a",
        Timer::new(LOGGED, "").due_at(START_MS),
    )
    .await;
    world.store.fail_commits_with(|_, _| {
        Some(CommitFault::NotWritten(
            dueline::store::StoreErrorKind::Full,
        ))
    });
    let handle = world
        .driver(registry_of(LOGGED, logging(&log)))
        .start()
        .expect("starts");
    for seconds in [1, 2, 4, 5, 5, 5] {
        run_all(&handle).await;
        assert_eq!(handle.status().partitions_held_back, 1);
        world.advance(&handle, Duration::from_secs(seconds)).await;
    }
    run_all(&handle).await;
    world.store.heal();
    world.advance(&handle, Duration::from_secs(5)).await;
    let status = handle.status();
    assert_eq!((status.partitions_held_back, status.totals.fired), (0, 1));
}

#[tokio::test]
async fn a_store_that_will_not_say_what_is_due_is_asked_again_later() {
    let (world, log) = (World::new(), Arc::new(Log::default()));
    world.store.fail_reads_with(|call| {
        (call == dueline_testkit::ReadCall::DueWakes)
            .then_some(dueline::store::StoreErrorKind::Unavailable)
    });
    schedule(
        &world.timers(),
        "a",
        Timer::new(LOGGED, "").due_at(START_MS),
    )
    .await;
    let handle = world
        .driver(registry_of(LOGGED, logging(&log)))
        .start()
        .expect("starts");
    while handle.status().reads_refused == 0 {
        tokio::task::yield_now().await;
    }
    world.store.heal();
    world.at_rest(&handle).await;
    assert_eq!((log.len(), handle.status().reads_refused), (0, 1));
    world.clock.advance(Duration::from_secs(1));
    log.reached(1).await;
}

#[tokio::test]
async fn a_panic_in_a_handler_or_in_a_tick_stays_where_it_is() {
    let (world, log) = (World::new(), Arc::new(Log::default()));
    let panicking = Registration::inline(handler(|_, _| panic!("by the handler")));
    let registry = registry_of(LOGGED, logging(&log))
        .with(TimerKind(17), panicking)
        .expect("another kind");
    let handle = world
        .driver(registry)
        .tick_threads(1)
        .start()
        .expect("starts");
    schedule(
        handle.timers(),
        "a",
        Timer::new(TimerKind(17), "").due_at(START_MS),
    )
    .await;
    schedule(
        handle.timers(),
        "a",
        Timer::new(LOGGED, "").due_at(START_MS),
    )
    .await;
    run_all(&handle).await;
    assert_eq!((log.len(), handle.status().totals.failed), (1, 1));

    schedule(
        &world.timers(),
        "b",
        Timer::new(LOGGED, "").due_at(START_MS),
    )
    .await;
    world
        .store
        .before_commit(1, |_, _, _| panic!("by the store"));
    run_all(&handle).await;
    let status = handle.status();
    assert_eq!((status.ticks_panicked, status.partitions_held_back), (1, 1));
    schedule(
        handle.timers(),
        "c",
        Timer::new(LOGGED, "").due_at(START_MS),
    )
    .await;
    world.advance(&handle, Duration::from_secs(1)).await;
    assert_eq!(
        handle.status().totals.fired,
        3,
        "a, b and c, on the only thread"
    );
}
