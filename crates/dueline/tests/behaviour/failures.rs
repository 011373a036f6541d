//! Back-off: how long, how often, across restarts, and what is kept.

use std::collections::BTreeSet;

use dueline::BoxFuture;
use dueline::rows::{Header, TimerKey};
use dueline::store::{Batch, Partition, StoreErrorKind};
use dueline::timers::{DueTimer, Fired, Registration, RetryPolicy, TimerHandler, TimerKind};
use dueline::timers::{HandlerError, TimerCtx};
use dueline_testkit::{ReadCall, block_on, handler};

use crate::world::handlers::{Seen, appends, fails, notes, says};
use crate::world::{A, World};

const HOUR_MS: u64 = 3_600_000;

#[test]
fn delays_of_ten_thousand_attempts_grow_to_the_cap_and_stay_within_their_jitter() {
    let policy = RetryPolicy {
        attempts_max: None,
        initial_ms: 1_000,
        max_ms: HOUR_MS,
        jitter_percent: 20,
    };
    let partition = Partition::new("p").unwrap();
    let occurrence = DueTimer::for_test(A, "x", "").occurrence_id(&partition);
    let mut before = 0;
    let mut jitters = BTreeSet::new();
    for attempt in 1..=10_000 {
        let base = policy.base_delay_ms(attempt);
        assert!(base >= before && base >= 1_000, "attempt {attempt}: {base}");
        let delay = policy.delay_ms(attempt, &occurrence);
        assert!(
            delay >= base && delay <= base + base / 5,
            "attempt {attempt}: {delay}"
        );
        assert!(delay <= HOUR_MS + HOUR_MS / 5);
        assert_eq!(delay, policy.delay_ms(attempt, &occurrence), "repeatable");
        before = base;
        jitters.insert(delay - base);
    }
    assert_eq!(policy.base_delay_ms(10_000), HOUR_MS);
    assert!(jitters.len() > 9_000, "{} distinct jitters", jitters.len());
}

#[test]
fn delays_saturate_at_the_ends_of_the_number_range() {
    let partition = Partition::new("p").unwrap();
    let occurrence = DueTimer::for_test(A, "x", "").occurrence_id(&partition);
    for (initial_ms, max_ms) in [(0, 0), (1, u64::MAX), (u64::MAX, u64::MAX), (u64::MAX, 1)] {
        for jitter_percent in [0, 20, 100, 255] {
            let policy = RetryPolicy {
                attempts_max: None,
                initial_ms,
                max_ms,
                jitter_percent,
            };
            for attempt in [0, 1, 2, 63, 64, 65, u16::MAX] {
                let delay = policy.delay_ms(attempt, &occurrence);
                assert!(delay >= 1 && delay >= policy.base_delay_ms(attempt));
            }
        }
    }
}

#[test]
fn the_default_policy_backs_off_5_s_to_10_min_and_ends_after_twenty_attempts() {
    let policy = RetryPolicy::default();
    let delays: Vec<u64> = (1..=10).map(|n| policy.base_delay_ms(n) / 1_000).collect();
    assert_eq!(delays, [5, 10, 20, 40, 80, 160, 320, 600, 600, 600]);
    assert!(!policy.is_exhausted(19));
    assert!(policy.is_exhausted(20));
    assert!(!policy.for_ever().is_exhausted(u16::MAX));
    let zero = RetryPolicy {
        attempts_max: Some(0),
        ..policy
    };
    assert!(
        zero.is_exhausted(1) && !zero.is_exhausted(0),
        "0 counts as 1"
    );
}

#[test]
fn attempts_and_next_time_survive_restarts_and_a_working_handler_ends_them() {
    let world = World::at(1_000);
    world.put_named(A, "x", 1_000);
    let payload = world.timers()[0].1.payload.clone();
    let policy = RetryPolicy {
        jitter_percent: 0,
        ..RetryPolicy::default()
    };
    for attempt in 1..=12u16 {
        // A new process: a new engine over the same store.
        let engine = world.engine([(A, Registration::inline(fails("no")).retry(policy))]);
        let now_ms = world.clock_ms();
        assert_eq!(world.run(&engine).total.failed, 1);
        let [(key, row)] = &world.timers()[..] else {
            panic!("always one row");
        };
        assert_eq!(key.due_ms, now_ms + policy.base_delay_ms(attempt));
        assert_eq!(
            (row.header.attempt, row.header.original_due_ms),
            (attempt, 1_000)
        );
        assert_eq!(row.payload, payload);
        world.check_names();
        assert_eq!(
            world.run(&engine).total.failed,
            0,
            "not before its next attempt"
        );
        world.clock.advance_ms(policy.base_delay_ms(attempt));
    }
    let seen = Seen::default();
    let engine = world.engine([(A, Registration::inline(notes(&seen)))]);
    assert_eq!(world.run(&engine).total.fired, 1);
    assert!(
        world.memory.rows(&world.partition).is_empty(),
        "not a key is left"
    );
}

#[test]
fn a_handler_sees_its_attempt_its_original_due_its_last_error_and_one_occurrence_id() {
    let world = World::at(1_000);
    let seen = Seen::default();
    let noted = seen.clone();
    let engine = world.engine([(
        A,
        Registration::inline(handler(move |ctx, timer| {
            let id = timer.occurrence_id(ctx.partition());
            let error = timer.last_error().map_or("none", |failure| &failure.error);
            noted.note(format!(
                "attempt {} due {} late {} after {error} id {:x}",
                timer.attempt(),
                timer.due_at_ms(),
                timer.lateness_ms(),
                id.hash64(0),
            ));
            let attempt = timer.attempt();
            Box::pin(async move { Err(HandlerError::new(format!("no {attempt}"))) })
        })),
    )]);
    world.put_named(A, "x", 900);
    world.run(&engine);
    world.clock.advance_ms(10_000);
    world.run(&engine);
    let seen = seen.all();
    let id = seen[0].rsplit(' ').next().unwrap();
    assert_eq!(
        seen[0],
        format!("attempt 1 due 900 late 100 after none id {id}")
    );
    assert_eq!(
        seen[1],
        format!("attempt 2 due 900 late 10100 after no 1 id {id}")
    );
}

#[test]
fn a_successful_reschedule_starts_the_attempts_over() {
    let world = World::at(1_000);
    let engine = world.engine([(
        A,
        Registration::inline(handler(|_, timer| {
            let fail = timer.attempt() == 1 && timer.payload() == "payload";
            Box::pin(async move {
                if fail {
                    return Err(HandlerError::new("no"));
                }
                Ok(Fired::Reschedule {
                    due_at_ms: 50_000,
                    payload: "next".into(),
                    batch: Batch::new(),
                })
            })
        })),
    )]);
    world.put_named(A, "x", 900);
    world.run(&engine);
    assert_eq!(world.timers()[0].1.header.attempt, 1);
    world.clock.advance_ms(10_000);
    assert_eq!(world.run(&engine).total.rescheduled, 1);
    let (_, row) = world.timers().pop().unwrap();
    assert_eq!(
        (
            row.header.attempt,
            row.header.original_due_ms,
            row.header.failure
        ),
        (0, 50_000, None)
    );
    world.check_names();
}

#[test]
fn a_failing_burst_of_a_hundred_gets_spread_dues() {
    let world = World::at(1_000);
    let engine = world.engine([(A, Registration::inline(fails("no")).group_max(16))]);
    for n in 0..100 {
        world.put(A, &format!("x{n}"), 900);
    }
    for _ in 0..4 {
        world.run(&engine);
    }
    let dues: BTreeSet<u64> = world.timers().iter().map(|(key, _)| key.due_ms).collect();
    assert_eq!(world.timers().len(), 100);
    assert!(dues.len() > 80, "{} distinct dues", dues.len());
    assert!(dues.iter().all(|due_ms| (6_000..=7_000).contains(due_ms)));
}

#[test]
fn an_error_text_is_cut_at_255_bytes_and_at_a_character() {
    let world = World::at(1_000);
    let engine = world.engine([(
        A,
        Registration::inline(says(|_| Fired::Retry {
            after_ms: Some(0),
            reason: "é".repeat(200),
        })),
    )]);
    world.put(A, "x", 900);
    world.run(&engine);
    let (key, row) = world.timers().pop().unwrap();
    assert_eq!(row.header.failure.unwrap().error, "é".repeat(127));
    assert_eq!(key.due_ms, 1_001, "never at once");
}

#[test]
fn a_retry_far_beyond_the_horizon_stays_before_it() {
    let world = World::at(1_000);
    let engine = world.engine([(
        A,
        Registration::inline(says(|_| Fired::Retry {
            after_ms: Some(u64::MAX),
            reason: "later".to_owned(),
        })),
    )]);
    world.put_named(A, "x", 900);
    world.run(&engine);
    assert_eq!(world.timers()[0].0.due_ms, dueline::limits::DUE_MS_MAX);
    world.check_names();
}

struct OwnPolicy;

impl TimerHandler for OwnPolicy {
    fn fire<'a>(
        &'a self,
        _: &'a TimerCtx<'a>,
        _: &'a DueTimer,
    ) -> BoxFuture<'a, Result<Fired, HandlerError>> {
        Box::pin(async { Err(HandlerError::new("no")) })
    }

    fn retry_policy(&self, timer: &DueTimer) -> Option<RetryPolicy> {
        (timer.reference() == "own").then(|| RetryPolicy {
            attempts_max: Some(1),
            ..RetryPolicy::default()
        })
    }
}

#[test]
fn a_timer_may_have_a_policy_of_its_own() {
    let world = World::at(1_000);
    let engine = world.engine([(A, Registration::inline(OwnPolicy))]);
    world.put(A, "own", 900);
    world.put(A, "kinds", 900);
    let report = world.run(&engine);
    assert_eq!((report.total.dead, report.total.failed), (1, 1));
}

/// Its row goes with the fire, so a write of it would undo that, or be undone.
#[test]
fn a_handler_that_writes_the_row_of_its_own_timer_has_failed() {
    let world = World::at(1_000);
    let writes = handler(|_, timer| {
        let own = TimerKey {
            due_ms: timer.due_at_ms(),
            kind: timer.kind(),
            generation: timer.generation(),
            reference: timer.reference().clone(),
        };
        Box::pin(async move { Ok(Fired::Done(Batch::new().delete(own.encode()))) })
    });
    let engine = world.engine([(A, Registration::inline(writes))]);
    world.put(A, "anonymous", 900);
    world.put_named(A, "named", 900);
    let report = world.run(&engine);
    assert_eq!((report.total.failed, report.total.fired), (2, 0));
    for (_, row) in world.timers() {
        let failure = row.header.failure.expect("it has failed");
        assert!(
            failure.error.contains("must not write the row"),
            "{}",
            failure.error
        );
    }
    world.check_names();
}

#[test]
fn a_policy_without_an_end_goes_on_beyond_the_largest_attempt() {
    let world = World::at(1_000);
    let policy = RetryPolicy::default().for_ever();
    let engine = world.engine([(A, Registration::inline(fails("no")).retry(policy))]);
    let header = Header {
        attempt: u16::MAX,
        ..Header::default()
    };
    world.put_with(A, "x", 900, header, b"payload");
    assert_eq!(world.run(&engine).total.failed, 1);
    assert_eq!(world.timers()[0].1.header.attempt, u16::MAX);
}

#[test]
fn dead_timers_of_a_failing_kind_are_requeued_one_by_one_and_in_bulk() {
    let world = World::at(1_000);
    let once = RetryPolicy {
        attempts_max: Some(1),
        ..RetryPolicy::default()
    };
    let engine = world.engine([(A, Registration::inline(fails("no")).retry(once))]);
    for n in 0..10 {
        world.put_named(A, &format!("named{n}"), 900);
        world.put(A, "anonymous", 900);
    }
    assert_eq!(world.run(&engine).total.dead, 20);
    world.check_names();

    let verbs = world.verbs();
    let page = block_on(verbs.dead(&world.partition, Some(A), None, 100)).unwrap();
    assert_eq!(page.dead.len(), 20);
    let first = &page.dead[0].id;
    assert!(
        block_on(verbs.requeue(&world.partition, first))
            .unwrap()
            .is_some()
    );
    world.check_names();
    let bulk = block_on(verbs.requeue_page(&world.partition, Some(A), None, 64)).unwrap();
    assert_eq!(bulk.requeued.len(), 19);
    world.check_names();

    let seen = Seen::default();
    let engine = world.engine([(A, Registration::inline(notes(&seen)))]);
    assert_eq!(world.run(&engine).total.fired, 20);
    assert!(world.memory.rows(&world.partition).is_empty());
    let _: TimerKind = A;
}

/// The store failed a read of the handler: that is not the handler's failure.
#[test]
fn a_run_whose_reads_fail_spends_no_attempt_and_holds_its_lane() {
    for group_max in [1, 8] {
        let world = World::at(1_000);
        let once = RetryPolicy {
            attempts_max: Some(1),
            ..RetryPolicy::default()
        };
        let registration = || {
            Registration::inline(appends())
                .retry(once)
                .group_max(group_max)
        };
        let engine = world.engine([(A, registration())]);
        for n in 0..3 {
            world.put_named(A, &n.to_string(), 900);
        }
        world
            .store
            .fail_reads_with(|call| (call == ReadCall::Get).then_some(StoreErrorKind::Unavailable));
        let report = world.run(&engine);
        assert!(report.held_back);
        assert_eq!((report.total.progressed(), report.total.held), (0, 1));
        assert_eq!(report.next_wake_ms, Some(1_000));
        world.store.heal();
        assert_eq!(world.run(&engine).total.fired, 3);
        assert_eq!(world.get("log").unwrap(), "0 1 2 ");
    }
}
