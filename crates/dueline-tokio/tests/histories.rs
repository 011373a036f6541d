//! Whatever is scheduled when, each timer fires once, as soon as it is due and not before.
//!
//! Method: random histories of schedules, passing time and slow partitions, with a window so small
//! that it is filled again and again. The test waits for what must have fired, and never asks the
//! driver to look: a look that it forgets ends the test as a hang.
#![cfg(test)]

mod rig;

use std::sync::Arc;
use std::time::Duration;

use dueline::runtime::Entropy;
use dueline::store::Batch;
use dueline::timers::{Fired, Registration, Timer, TimerKind};
use dueline_testkit::{SequenceEntropy, handler};
use rig::{CALLING, Caller, Door, LOGGED, Log, START_MS, World, logging, registry_of, schedule};

const OTHER: TimerKind = TimerKind(17);

/// Fires, and half of the time chains one more timer of another kind, due at once.
fn chaining(log: &Arc<Log>) -> Registration {
    let log = Arc::clone(log);
    Registration::inline(handler(move |ctx, timer| {
        log.push(rig::name(ctx.partition(), timer.reference()));
        let (now_ms, reference) = (ctx.now_ms(), timer.reference().clone());
        let early = now_ms < timer.due_at_ms();
        Box::pin(async move {
            assert!(!early, "fired early");
            let mut batch = Batch::new();
            if reference.ends_with(b"+") {
                let key = dueline::rows::TimerKey {
                    kind: LOGGED,
                    due_ms: now_ms,
                    generation: 1,
                    reference,
                };
                batch = batch.put(key.encode(), dueline::rows::TimerRow::default().encode());
            }
            Ok(Fired::Done(batch))
        })
    }))
}

#[tokio::test]
async fn random_histories_fire_every_timer_once_and_in_time() {
    for seed in 0..40 {
        let random = SequenceEntropy::new(seed);
        let below = |most: u64| random.next_u64() % most;
        let (world, log, door) = (World::new(), Arc::new(Log::default()), Door::closed());
        door.open();
        let caller = Caller {
            log: Arc::clone(&log),
            door,
        };
        let registry = registry_of(LOGGED, logging(&log))
            .with(OTHER, chaining(&log))
            .and_then(|with| with.with(CALLING, Registration::detached(caller).concurrency(2)))
            .expect("three kinds");
        let driver = world.driver(registry).window_max(16);
        let handle = driver.ticks_max(4).start().expect("starts");
        let mut dues_ms: Vec<u64> = Vec::new();
        let mut now_ms = START_MS;
        for step in 0..60 {
            for number in 0..below(8) {
                let kind = [LOGGED, OTHER, CALLING][usize::try_from(below(3)).expect("small")];
                let chains = kind == OTHER && below(2) == 0;
                let reference = format!("{step}.{number}{}", if chains { "+" } else { "" });
                let due_ms = now_ms + below(4) * below(700);
                let timer = Timer::new(kind, reference).due_at(due_ms);
                schedule(handle.timers(), &format!("p{}", below(12)), timer).await;
                dues_ms.extend(vec![due_ms; if chains { 2 } else { 1 }]);
            }
            let passed_ms = below(3) * below(400);
            world.clock.advance(Duration::from_millis(passed_ms));
            now_ms += passed_ms;
            let due = dues_ms.iter().filter(|due_ms| **due_ms <= now_ms).count();
            log.reached(due).await;
        }
        world.clock.advance(Duration::from_secs(10));
        log.reached(dues_ms.len()).await;
        rig::run_all(&handle).await;
        assert_eq!(log.len(), dues_ms.len(), "seed {seed}");
        assert_eq!(handle.status().totals.failed, 0, "seed {seed}");
    }
}
