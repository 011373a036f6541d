//! Goal: what the engine costs in transactions of this store does not grow unseen.
//! Method: one tick by the stored wakes on the handle for blocking threads, as the driver makes it;
//! transactions are counted by the store, not timed.
#![cfg(test)]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::sync::Arc;

use dueline::store::{Batch, LaneWake, NamespaceStore, WakeStore};
use dueline::timers::{
    Engine, Fired, HandlerError, Policy, Registration, Registry, TickBudget, TickRequest, Timer,
    TimerHandler,
};
use dueline_sqlite::Counters;
use dueline_testkit::{handler, test_runtime};
use support::{Home, KIND, block_on, block_on_parking, get, partition, wakes};

const NOW_MS: i64 = 5_000;

/// One tick over 64 due timers that end in this way; what it cost, and the store afterwards.
fn page_of_64(ends: impl TimerHandler + 'static, named: bool) -> (Counters, Counters, Home) {
    let home = Home::new();
    let store = home.open();
    let blocking = store.for_blocking_threads().unwrap();
    let of_engine: Arc<dyn NamespaceStore> = blocking.clone();
    let runtime = test_runtime(&dueline_testkit::ManualClock::new(NOW_MS));
    let registration = Registration::inline(ends).group_max(64);
    let registry = Registry::new().with(KIND, registration).unwrap();
    let engine = Engine::new(of_engine, runtime, registry);
    let a = partition("a");
    for number in 0..64 {
        let timer = Timer::new(KIND, format!("t{number:02}")).due_at(4_000);
        let timer = if named { timer.named() } else { timer };
        let scheduling = engine.timers().schedule(&a, timer, Policy::Replace);
        block_on_parking(&*blocking, scheduling).unwrap();
    }
    home.clock.set(NOW_MS);
    let due = wakes(&*blocking);
    assert_eq!(due.len(), 1, "one lane, one wake: {due:?}");
    let served = [LaneWake {
        kind: KIND,
        at_ms: due.first().unwrap().0,
    }];
    let request = TickRequest {
        partition: &a,
        wakes: Some(&served),
        cautious_until_ms: None,
    };
    blocking.end_reads();
    let mut state = engine.start_tick(TickBudget::native());
    let before = store.counters();
    let tick = block_on_parking(&*blocking, engine.tick(request, &mut state));
    let after = store.counters();
    assert_eq!(tick.report.total.progressed(), 64, "{:?}", tick.report);
    assert_eq!(tick.next_wakes.len(), 1, "the settle ran");
    assert_eq!(
        block_on(store.due_wakes(&engine.registry().kinds(), 5_000, None, 9))
            .unwrap()
            .wakes,
        []
    );
    (before, after, home)
}

fn assert_one_transaction(before: Counters, after: Counters) {
    let transactions = after.transactions - before.transactions;
    assert_eq!((transactions, after.commits - before.commits), (1, 1));
    assert_eq!(after.read_transactions - before.read_transactions, 1);
}

#[test]
fn a_page_of_64_timers_is_one_write_transaction_with_its_settle() {
    for named in [false, true] {
        let done = handler(|_, timer| {
            let effect = Batch::new().put(timer.reference().clone(), "fired");
            Box::pin(async { Ok(Fired::Done(effect)) })
        });
        let (before, after, home) = page_of_64(done, named);
        assert_one_transaction(before, after);
        let store = home.open();
        for number in 0..64 {
            let effect = get(&store, &partition("a"), &format!("t{number:02}"));
            assert_eq!(effect.as_deref(), Some(&b"fired"[..]));
        }
        assert_eq!(wakes(&store), [], "nothing is left to wake for");
    }
}

#[test]
fn a_page_of_64_failures_is_one_write_transaction_with_its_settle() {
    let fails = handler(|_, _| Box::pin(async { Err(HandlerError::new("no")) }));
    let (before, after, home) = page_of_64(fails, true);
    assert_one_transaction(before, after);
    let waking = wakes(&home.open());
    assert_eq!(
        waking.len(),
        1,
        "the lane wakes for the first retry: {waking:?}"
    );
    assert!(waking.iter().all(|wake| wake.0 >= 10_000), "{waking:?}");
}
