//! Many callers, few threads, no answer lost: every apply is answered, whichever handle it comes
//! through, whoever drops what, and the log stays bounded under readers.
#![cfg(test)]
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod support;

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use dueline::runtime::Clock;
use dueline::store::{
    Batch, BatchOutcome, NamespaceStore, Precondition, ReadStore, StoreErrorKind, WakeStore,
};
use dueline_sqlite::{Options, SqliteStore};
use support::{Home, KIND, apply, block_on, block_on_parking, get, partition, poll_once, timer};

/// Runs all futures on this thread until each is done.
fn join_all<T>(futures: Vec<Pin<Box<dyn Future<Output = T> + Send + '_>>>) -> Vec<T> {
    let mut waiting: Vec<_> = futures.into_iter().map(Some).collect();
    let mut done = Vec::new();
    block_on(poll_fn(|context| {
        for slot in &mut waiting {
            if let Some(future) = slot
                && let Poll::Ready(value) = future.as_mut().poll(context)
            {
                done.push(value);
                *slot = None;
            }
        }
        if waiting.iter().all(Option::is_none) {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    }));
    done
}

#[test]
fn two_thousand_callers_at_once_are_all_answered() {
    let home = Home::new();
    let store = home.open();
    let partitions: Vec<_> = (0..100)
        .map(|index| partition(&format!("p{index}")))
        .collect();
    let calls: Vec<_> = (0..2_000_u64)
        .map(|index| {
            let partition = &partitions[index as usize % partitions.len()];
            let key = timer(KIND, 5_000 + index, index);
            store.apply(
                partition,
                Batch::new().require_absent(key.clone()).put(key, "x"),
            )
        })
        .collect();
    let outcomes = join_all(calls);
    assert_eq!(outcomes.len(), 2_000);
    for outcome in outcomes {
        assert_eq!(outcome.unwrap(), BatchOutcome::Committed);
    }
    let counters = store.counters();
    assert_eq!(counters.applies, 2_000);
    assert!(counters.transactions < 500, "{counters:?}");
    let rows: u64 = partitions
        .iter()
        .map(|name| block_on(store.stats(name)).unwrap().rows)
        .sum();
    assert_eq!(rows, 2_000);
}

#[test]
fn both_handles_on_many_threads_lose_no_increment() {
    let home = Home::new();
    let store = home.open();
    let a = partition("a");
    let lost = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for worker in 0..6 {
            let (store, a, lost) = (&store, &a, &lost);
            scope.spawn(move || {
                let blocking = store.for_blocking_threads().unwrap();
                let mut added = 0;
                while added < 100 {
                    let handle: &dyn WakeStore = if worker % 2 == 0 { store } else { &*blocking };
                    let seen = block_on(handle.get(a, &"count".into())).unwrap();
                    let count: u64 = seen.as_deref().map_or(0, |bytes| {
                        std::str::from_utf8(bytes).unwrap().parse().unwrap()
                    });
                    let batch = Batch::new()
                        .require_unchanged("count", seen)
                        .put("count", (count + 1).to_string());
                    let call = handle.apply(a, batch);
                    let outcome = if worker == 5 {
                        block_on(call)
                    } else {
                        block_on_parking(handle, call)
                    };
                    if outcome.unwrap().is_committed() {
                        added += 1;
                    } else {
                        lost.fetch_add(1, Ordering::Relaxed);
                        handle.before_park();
                    }
                }
            });
        }
    });
    assert_eq!(get(&store, &a, "count").as_deref(), Some(&b"600"[..]));
}

#[test]
fn a_dropped_future_leaves_its_partition_before_or_after() {
    let home = Home::new();
    let store = home.open();
    let (a, left) = (partition("a"), dueline::Bytes::from("left"));
    for index in 0..200 {
        let value = index.to_string();
        let batch = Batch::new().put("left", value.clone()).put("right", value);
        let mut call = store.apply(&a, batch);
        if index % 2 == 0 {
            drop(poll_once(&mut call));
        }
        drop(call);
        let mut read = store.get(&a, &left);
        drop(poll_once(&mut read));
    }
    apply(&store, &a, Batch::new().put("last", "x"));
    assert_eq!(get(&store, &a, "left"), get(&store, &a, "right"));
    // Everything sent before the last apply was run before it.
    assert_eq!(get(&store, &a, "left").as_deref(), Some(&b"198"[..]));
}

/// A clock that panics while it is told to.
#[derive(Debug, Default)]
struct Broken(AtomicBool);

impl Clock for Broken {
    fn wall_ms(&self) -> i64 {
        assert!(!self.0.load(Ordering::SeqCst), "this clock is broken");
        1_000
    }

    fn monotonic(&self) -> Duration {
        Duration::ZERO
    }
}

#[test]
fn a_clock_that_panics_is_unknown_to_its_caller_and_ends_with_the_call() {
    let home = Home::new();
    let clock = Arc::new(Broken::default());
    let options = Options::new(Arc::clone(&clock) as Arc<dyn Clock>);
    let store = SqliteStore::open(home.path(), options).unwrap();
    let blocking = store.for_blocking_threads().unwrap();
    let a = partition("a");
    apply(&store, &a, Batch::new().put("kept", "x"));
    let timed = || {
        Batch::new()
            .require_absent("new")
            .require(Precondition::NotAfter(5_000))
    };
    for handle in [&store as &dyn WakeStore, &*blocking] {
        clock.0.store(true, Ordering::SeqCst);
        let call = handle.apply(&a, timed().delete("kept").put("new", "x"));
        let error = block_on_parking(handle, call).unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Unknown);
        clock.0.store(false, Ordering::SeqCst);
        assert!(get(handle, &a, "kept").is_some() && get(handle, &a, "new").is_none());
        apply(handle, &a, timed().put("next", "x"));
    }
}

struct Exploding;

impl Wake for Exploding {
    fn wake(self: Arc<Self>) {
        panic!("this waker always panics");
    }
}

#[test]
fn a_waker_that_panics_harms_nobody_else() {
    let home = Home::new();
    let store = home.open();
    let blocking = store.for_blocking_threads().unwrap();
    let (a, row) = (partition("a"), dueline::Bytes::from("row"));
    let waker = Waker::from(Arc::new(Exploding));
    for round in 0..5 {
        let mut bad = blocking.apply(&a, Batch::new().put(format!("bad-{round}"), "x"));
        let mut bad_read = store.get(&a, &row);
        assert!(
            bad.as_mut()
                .poll(&mut Context::from_waker(&waker))
                .is_pending()
        );
        drop(bad_read.as_mut().poll(&mut Context::from_waker(&waker)));
        let mut good = blocking.apply(&a, Batch::new().put(format!("good-{round}"), "x"));
        assert!(poll_once(&mut good).is_pending());
        blocking.before_park();
        assert!(block_on(good).unwrap().is_committed());
        assert!(block_on(bad).unwrap().is_committed());
        let mut bad = store.apply(&a, Batch::new().put("bad", "x"));
        drop(bad.as_mut().poll(&mut Context::from_waker(&waker)));
        apply(&store, &a, Batch::new().put("row", "x"));
        assert!(get(&store, &a, "row").is_some());
    }
}

#[test]
fn a_store_dropped_with_calls_in_flight_runs_what_was_sent() {
    let home = Home::new();
    let a = partition("a");
    let store = home.open();
    let sent = store.clone();
    let mut call = sent.apply(&a, Batch::new().put("row", "x"));
    assert!(poll_once(&mut call).is_pending());
    store.close();
    assert!(block_on(call).unwrap().is_committed());
    drop((store, sent));
    assert!(get(&home.open(), &a, "row").is_some());
}

#[test]
fn the_log_stays_bounded_under_sustained_writes_with_readers() {
    let home = Home::new();
    let store = home.open();
    let stop = AtomicBool::new(false);
    let (a, row) = (partition("a"), dueline::Bytes::from("row-0"));
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let blocking = store.for_blocking_threads().unwrap();
                while !stop.load(Ordering::Relaxed) {
                    for index in 0..50 {
                        get(&*blocking, &a, &format!("row-{index}"));
                        let other = store.get(&a, &row);
                        block_on_parking(&*blocking, other).unwrap();
                    }
                    blocking.before_park();
                }
            });
        }
        // 8 batches of 90 rows of 4 kB a group: about 75,000 pages in all, 290 MiB.
        for round in 0..50 {
            let batches: Vec<_> = (0..8)
                .map(|batch| {
                    (0..90).fold(Batch::new(), |rows, row| {
                        rows.put(format!("row-{}", batch * 90 + row), vec![round; 4_000])
                    })
                })
                .collect();
            let done = block_on(store.apply_all(&a, batches.into()));
            assert_eq!(done.committed(), 8);
        }
        stop.store(true, Ordering::Relaxed);
    });
    let log_mib = store.log_bytes() >> 20;
    assert!(log_mib <= 96, "the log has {log_mib} MiB");
    assert!(store.counters().checkpoints > 2);
}

#[test]
fn an_idle_store_and_its_probe_answer_with_the_clock() {
    let home = Home::new();
    let store = home.open();
    home.clock.set(77_000);
    assert_eq!(block_on(store.probe()).unwrap(), 77_000);
    home.clock.set(-5);
    assert_eq!(
        block_on(store.for_blocking_threads().unwrap().probe()).unwrap(),
        0
    );
    store.checkpoint().unwrap();
}
