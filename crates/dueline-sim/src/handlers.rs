//! The scripted handler, with every run of it taken down.

use dueline::BoxFuture;
use dueline::runtime::Runtime;
use dueline::timers::{
    DetachedHandler, DueTimer, Fired, HandlerError, Registration, Registry, TimerCtx, TimerHandler,
    TimerKind,
};
use dueline_history::{Ended, Octets, Run, What};
use dueline_testkit::model::script::{KINDS, Script};

use crate::disk::octets;
use crate::plan::{NodeSpec, RECURRING, WorldSpec};
use crate::recorder::{Actor, Recorder};
use crate::tag::Tag;

/// How long a run may take, in milliseconds.
pub const DEADLINE_MS: u64 = 2_000;

/// Runs scripts and takes down how they end.
#[derive(Clone, Debug)]
struct Told {
    recorder: Recorder,
    actor: Actor,
    node: u16,
    runtime: Runtime,
}

impl Told {
    fn script(&self) -> Script {
        Script {
            runtime: self.runtime.clone(),
        }
    }
}

/// A run under way: taken down when it is dropped, however that comes.
struct Running<'a> {
    told: &'a Told,
    run: Run,
    is_call: bool,
    began: std::time::Duration,
}

impl<'a> Running<'a> {
    fn new(told: &'a Told, ctx: &TimerCtx<'_>, timer: &DueTimer, is_call: bool) -> Self {
        let turn = match Tag::current() {
            Tag::Turn(turn) if !is_call => turn,
            _ => 0,
        };
        Self {
            run: Run {
                node: told.node,
                turn,
                partition: octets(ctx.partition().as_bytes()),
                kind: timer.kind().0,
                reference: Octets(timer.reference().clone()),
                generation: timer.generation(),
                attempt: timer.attempt(),
                due_ms: timer.due_at_ms(),
                now_ms: ctx.now_ms(),
                ended: Ended::Cut,
            },
            is_call,
            began: told.runtime.monotonic(),
            told,
        }
    }

    fn ended(mut self, result: Result<&Fired, &HandlerError>) {
        self.run.ended = match result {
            Ok(Fired::Done(_)) => Ended::Done,
            Ok(Fired::Reschedule { .. }) => Ended::Reschedule,
            Ok(Fired::Retry { after_ms, .. }) => Ended::Retry {
                after_ms: *after_ms,
            },
            Ok(Fired::Dead { .. }) => Ended::Dead,
            Err(error) if error.is_undecodable() => Ended::Undecodable,
            Err(error) if error.is_uncharged() => Ended::Uncharged,
            Err(_) => Ended::Error,
        };
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        if self.run.ended == Ended::Cut {
            let took = self.told.runtime.monotonic().saturating_sub(self.began);
            if std::thread::panicking() {
                self.run.ended = Ended::Panic;
            } else if took.as_millis() >= u128::from(DEADLINE_MS) {
                self.run.ended = Ended::Deadline;
            }
        }
        let run = self.run.clone();
        let what = if self.is_call {
            What::Called(run)
        } else {
            What::Fire(run)
        };
        self.told.recorder.event(&self.told.actor, what);
    }
}

impl TimerHandler for Told {
    fn fire<'a>(
        &'a self,
        ctx: &'a TimerCtx<'a>,
        timer: &'a DueTimer,
    ) -> BoxFuture<'a, Result<Fired, HandlerError>> {
        Box::pin(async move {
            let running = Running::new(self, ctx, timer, false);
            let script = self.script();
            let result = script.fire(ctx, timer).await;
            running.ended(result.as_ref());
            result
        })
    }
}

impl DetachedHandler for Told {
    type Output = ();

    fn call<'a>(
        &'a self,
        ctx: &'a TimerCtx<'a>,
        timer: &'a DueTimer,
    ) -> BoxFuture<'a, Result<(), HandlerError>> {
        Box::pin(async move {
            let running = Running::new(self, ctx, timer, true);
            let script = self.script();
            let result = script.call(ctx, timer).await;
            let done = Fired::Done(dueline::store::Batch::new());
            running.ended(result.as_ref().map(|()| &done));
            result
        })
    }

    fn settle<'a>(
        &'a self,
        ctx: &'a TimerCtx<'a>,
        timer: &'a DueTimer,
        (): &'a (),
    ) -> BoxFuture<'a, Result<Fired, HandlerError>> {
        Box::pin(async move {
            let script = self.script();
            script.settle(ctx, timer, &()).await
        })
    }
}

/// Three inline kinds of different group sizes, a detached one, and one that recurs. An old program
/// knows only half of them.
pub fn registry(
    world: &WorldSpec,
    spec: &NodeSpec,
    is_old: bool,
    (recorder, actor, node): (&Recorder, &Actor, u16),
    runtime: &Runtime,
) -> Registry {
    let told = Told {
        recorder: recorder.clone(),
        actor: actor.clone(),
        node,
        runtime: runtime.clone(),
    };
    let inline = |group_max: u16| {
        Registration::inline(told.clone())
            .group_max(group_max.max(1))
            .deadline_ms(DEADLINE_MS)
            .retry(world.retry)
    };
    let mut first = inline(spec.group_max);
    if let Some(most) = spec.per_tick_max {
        first = first.per_tick_max(most);
    }
    let detached = Registration::detached(told.clone())
        .concurrency(spec.concurrency)
        .deadline_ms(DEADLINE_MS)
        .retry(world.retry);
    let all: [(TimerKind, Registration); 5] = [
        (KINDS[0], first),
        (KINDS[1], inline(spec.group_max / 2)),
        (KINDS[2], inline(1)),
        (KINDS[3], detached),
        (RECURRING, inline(spec.group_max)),
    ];
    let mut registry = Registry::new();
    for (place, (kind, registration)) in all.into_iter().enumerate() {
        if !is_old || place % 2 == 0 {
            let registered = registry.register(kind, registration);
            debug_assert!(registered.is_ok(), "each kind once");
        }
    }
    registry
}
