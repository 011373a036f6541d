//! What a driver does once, when it starts: careful first runs after an unclean stop, and the dead
//! timers that its handlers can read again.
#![cfg(test)]

mod rig;

use std::sync::Arc;
use std::time::Duration;

use dueline::store::Batch;
use dueline::timers::{Fired, HandlerError, Registration, Timer};
use dueline_testkit::handler;
use rig::{LOGGED, Log, START_MS, World, logging, registry_of, run_all, schedule};

#[tokio::test]
async fn after_an_unclean_stop_what_was_due_is_counted_before_it_runs() {
    for (unclean, attempts_then) in [(None, 1), (Some(START_MS), 2)] {
        let (world, log) = (World::new(), Arc::new(Log::default()));
        world.store.set_unclean_opened_at_ms(unclean);
        schedule(
            &world.timers(),
            "a",
            Timer::new(LOGGED, "").due_at(START_MS),
        )
        .await;
        let of_handler = Arc::clone(&log);
        let killing = Registration::inline(handler(move |_, timer| {
            of_handler.push(format!("attempt {}", timer.attempt()));
            Box::pin(std::future::pending())
        }));
        let handle = world
            .driver(registry_of(LOGGED, killing))
            .start()
            .expect("starts");
        log.reached(1).await;
        // The process "dies" in the handler: only what was committed counts.
        drop(handle);

        world.clock.advance(Duration::from_secs(60));
        world.store.set_unclean_opened_at_ms(None);
        let of_handler = Arc::clone(&log);
        let counting = Registration::inline(handler(move |_, timer| {
            of_handler.push(format!("attempt {}", timer.attempt()));
            Box::pin(async { Ok(Fired::Done(Batch::new())) })
        }));
        let handle = world
            .driver(registry_of(LOGGED, counting))
            .start()
            .expect("starts");
        run_all(&handle).await;
        let second = format!("attempt {attempts_then}");
        assert_eq!(
            log.lines(),
            ["attempt 1".to_owned(), second],
            "unclean: {unclean:?}"
        );
    }
}

#[tokio::test]
async fn a_handler_with_a_higher_codec_version_gets_the_timers_that_did_not_decode() {
    let (world, log) = (World::new(), Arc::new(Log::default()));
    let blind = Registration::inline(handler(|_, _| {
        Box::pin(async { Err(HandlerError::undecodable("a form of tomorrow")) })
    }))
    .codec_version(1);
    for number in 0..3 {
        let timer = Timer::new(LOGGED, format!("t{number}")).due_at(START_MS);
        schedule(&world.timers(), "a", timer).await;
    }
    let handle = world
        .driver(registry_of(LOGGED, blind))
        .start()
        .expect("starts");
    run_all(&handle).await;
    assert_eq!(handle.status().totals.dead, 3);
    handle.shutdown(Duration::from_secs(1)).await;

    let same = logging(&log).codec_version(1);
    let handle = world
        .driver(registry_of(LOGGED, same))
        .start()
        .expect("starts");
    world.advance(&handle, Duration::from_secs(2)).await;
    assert_eq!(
        (log.len(), handle.status().requeued),
        (0, 0),
        "the same version reads no more"
    );
    handle.shutdown(Duration::from_secs(1)).await;

    let higher = logging(&log).codec_version(2);
    let handle = world
        .driver(registry_of(LOGGED, higher))
        .start()
        .expect("starts");
    log.reached(3).await;
    run_all(&handle).await;
    assert_eq!(
        (handle.status().totals.fired, handle.status().requeued),
        (3, 3)
    );
}
