//! The scripted handler, with every run of it taken down.

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use dueline::BoxFuture;
use dueline::runtime::Runtime;
use dueline::timers::{
    DetachedHandler, DueTimer, Fired, HandlerError, Registration, Registry, TimerCtx, TimerHandler,
    TimerKind,
};
use dueline_history::{Ended, Recorded, Run, RunLog, What};
use dueline_testkit::model::script::{KINDS, Op, Script, op_of};

use crate::plan::{NodeSpec, RECURRING, WorldSpec};
use crate::recorder::{Actor, Recorder};
use crate::tag::Tag;

/// How long a run may take, in milliseconds.
pub const DEADLINE_MS: u64 = 2_000;

/// Where the runs of a node are taken down.
#[derive(Clone, Debug)]
struct NodeLog {
    recorder: Recorder,
    actor: Actor,
    node: u16,
    runtime: Runtime,
}

impl RunLog for NodeLog {
    fn node(&self) -> u16 {
        self.node
    }

    fn turn(&self) -> u64 {
        match Tag::current() {
            Tag::Turn(turn) => turn,
            Tag::Engine | Tag::Request(_) => 0,
        }
    }

    fn dropped(&self, run: &Run) -> Ended {
        let took_ms = self.runtime.now_ms().saturating_sub(run.now_ms);
        if took_ms >= DEADLINE_MS {
            Ended::Deadline
        } else {
            Ended::Cut
        }
    }

    fn log(&self, what: What) {
        self.recorder.event(&self.actor, what);
    }
}

/// The script, and the operation that kills the process.
#[derive(Clone, Debug)]
struct Deadly {
    script: Script,
    killed: Arc<AtomicBool>,
}

impl Deadly {
    /// Tells the world to cut the process if that is what the timer does; says whether it is.
    fn kills(&self, timer: &DueTimer) -> bool {
        let kills = op_of(timer.payload()).is_some_and(|(op, _)| op == Op::Kill);
        if kills {
            self.killed.store(true, Ordering::Relaxed);
        }
        kills
    }
}

impl TimerHandler for Deadly {
    fn fire<'a>(
        &'a self,
        ctx: &'a TimerCtx<'a>,
        timer: &'a DueTimer,
    ) -> BoxFuture<'a, Result<Fired, HandlerError>> {
        if self.kills(timer) {
            return Box::pin(pending());
        }
        self.script.fire(ctx, timer)
    }
}

impl DetachedHandler for Deadly {
    type Output = ();

    fn call<'a>(
        &'a self,
        ctx: &'a TimerCtx<'a>,
        timer: &'a DueTimer,
    ) -> BoxFuture<'a, Result<(), HandlerError>> {
        if self.kills(timer) {
            return Box::pin(pending());
        }
        self.script.call(ctx, timer)
    }

    fn settle<'a>(
        &'a self,
        ctx: &'a TimerCtx<'a>,
        timer: &'a DueTimer,
        output: &'a (),
    ) -> BoxFuture<'a, Result<Fired, HandlerError>> {
        self.script.settle(ctx, timer, output)
    }
}

/// Three inline kinds of different group sizes, a detached one, and one that recurs. An old program
/// knows only half of them.
pub fn registry(
    world: &WorldSpec,
    (spec, is_old): (&NodeSpec, bool),
    (recorder, actor, node): (&Recorder, &Actor, u16),
    runtime: &Runtime,
    killed: &Arc<AtomicBool>,
) -> Registry {
    let script = Deadly {
        script: Script {
            runtime: runtime.clone(),
        },
        killed: Arc::clone(killed),
    };
    registry_of(
        script,
        (world, spec, is_old),
        (recorder, actor, node),
        runtime,
    )
}

/// The same kinds with another handler.
pub fn registry_of<H>(
    script: H,
    (world, spec, is_old): (&WorldSpec, &NodeSpec, bool),
    (recorder, actor, node): (&Recorder, &Actor, u16),
    runtime: &Runtime,
) -> Registry
where
    H: TimerHandler + DetachedHandler + Clone + 'static,
{
    let log = NodeLog {
        recorder: recorder.clone(),
        actor: actor.clone(),
        node,
        runtime: runtime.clone(),
    };
    let told = Recorded::new(script, log);
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
