//! Panics of handlers stay with the timer that caused them.

use dueline::BoxFuture;
use dueline::store::Batch;
use dueline::timers::{
    DetachedHandler, DueTimer, Fired, HandlerError, Registration, RetryPolicy, TickBudget,
    TimerCtx, TimerHandler, run_due,
};
use dueline_testkit::{block_on, handler};

use crate::world::handlers::{Seen, complete, notes};
use crate::world::{A, B, C, World};

fn panics_at_once() -> impl TimerHandler {
    handler(|_, timer| panic!("cannot fire {}", timer.attempt()))
}

fn panics_later() -> impl TimerHandler {
    handler(|ctx, _| {
        Box::pin(async move {
            ctx.get(&"x".into()).await?;
            panic!("a plain text")
        })
    })
}

#[test]
fn a_panic_is_a_failure_with_its_text_and_other_kinds_run() {
    let world = World::at(1_000);
    let seen = Seen::default();
    let engine = world.engine([
        (A, Registration::inline(panics_at_once()).group_max(8)),
        (B, Registration::inline(panics_later()).group_max(8)),
        (C, Registration::inline(notes(&seen)).group_max(8)),
    ]);
    world.put_named(A, "a", 900);
    world.put_named(B, "b", 900);
    world.put(C, "c1", 800);
    world.put(C, "c2", 950);
    let report = world.run(&engine);
    assert_eq!((report.total.failed, report.total.fired), (2, 2));
    assert_eq!(seen.all(), ["c1", "c2"]);
    let errors: Vec<String> = world
        .timers()
        .into_iter()
        .map(|(_, row)| row.header.failure.unwrap().error)
        .collect();
    assert_eq!(
        errors,
        [
            "the handler panicked: cannot fire 1",
            "the handler panicked: a plain text"
        ]
    );
    world.check_names();
}

/// Panics wherever the engine asks it something.
struct PanicsEverywhere;

impl TimerHandler for PanicsEverywhere {
    fn fire<'a>(
        &'a self,
        _: &'a TimerCtx<'a>,
        _: &'a DueTimer,
    ) -> BoxFuture<'a, Result<Fired, HandlerError>> {
        Box::pin(async { Err(HandlerError::new("no")) })
    }

    fn retry_policy(&self, _: &DueTimer) -> Option<RetryPolicy> {
        panic!("no policy")
    }
}

impl DetachedHandler for PanicsEverywhere {
    type Output = ();

    fn call<'a>(
        &'a self,
        _: &'a TimerCtx<'a>,
        _: &'a DueTimer,
    ) -> BoxFuture<'a, Result<(), HandlerError>> {
        panic!("no call")
    }

    fn settle<'a>(
        &'a self,
        _: &'a TimerCtx<'a>,
        _: &'a DueTimer,
        (): &'a (),
    ) -> BoxFuture<'a, Result<Fired, HandlerError>> {
        Box::pin(async { Ok(Fired::Done(Batch::new())) })
    }

    fn retry_policy(&self, _: &DueTimer) -> Option<RetryPolicy> {
        panic!("no policy")
    }

    fn deadline_ms(&self, _: &DueTimer) -> Option<u64> {
        panic!("no deadline")
    }
}

#[test]
fn a_panic_in_a_question_about_a_timer_falls_back_to_what_the_kind_says() {
    let world = World::at(1_000);
    let seen = Seen::default();
    let retry = RetryPolicy {
        initial_ms: 1_000,
        jitter_percent: 0,
        ..RetryPolicy::default()
    };
    let engine = world.engine([
        (A, Registration::inline(PanicsEverywhere).retry(retry)),
        (
            B,
            Registration::detached(PanicsEverywhere)
                .retry(retry)
                .deadline_ms(7_000),
        ),
        (C, Registration::inline(notes(&seen))),
    ]);
    for kind in [A, B, C] {
        world.put(kind, "x", 900);
    }
    let tick = world.tick(&engine);
    assert_eq!(
        (tick.report.total.failed, tick.report.total.claimed),
        (1, 1)
    );
    assert_eq!(seen.len(), 1);
    assert_eq!(
        world.timers()[0].0.due_ms,
        2_000,
        "by the policy of the kind"
    );
    for call in tick.calls {
        assert_eq!(call.deadline().as_millis(), 7_000);
        let finished = block_on(call.run());
        assert_eq!(
            finished.error().unwrap().text(),
            "the handler panicked: no call"
        );
        assert_eq!(block_on(engine.settle(finished)).failed, 1);
    }
}

/// What the drop of a run's own values does is the handler's doing too.
struct PanicsOnDrop;

impl Drop for PanicsOnDrop {
    fn drop(&mut self) {
        assert!(std::thread::panicking(), "a drop that panics");
    }
}

#[test]
fn a_panic_while_a_run_over_its_deadline_is_dropped_is_contained() {
    let world = World::at(1_000);
    let seen = Seen::default();
    let engine = world.engine([
        (
            A,
            Registration::inline(handler(|_, _| {
                Box::pin(async {
                    let _held = PanicsOnDrop;
                    std::future::pending::<()>().await;
                    Ok(Fired::Done(Batch::new()))
                })
            })),
        ),
        (B, Registration::inline(notes(&seen))),
    ]);
    world.put(A, "x", 900);
    world.put(B, "y", 950);
    let tick = run_due(&engine, &world.partition, TickBudget::default());
    let report = complete(&world.clock, tick).report;
    assert_eq!((report.total.failed, report.total.fired), (1, 1));
}
