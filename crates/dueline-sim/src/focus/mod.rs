//! Situations that draws alone would seldom make: each takes a third of a world's life, and is added to
//! what was drawn for the seed before, or takes its place.

mod nodes;
mod timers;

use dueline::timers::{Policy, RetryPolicy, TimerKind};
use dueline_testkit::model::Random;
use dueline_testkit::model::script::{KINDS, Op, payload};

use crate::disk::StoreFaults;
use crate::plan::{Action, Deed, Plan, VerbSpec, VerbWhat};

/// How many of a hundred seeds have a focus.
const FOCUSED_PERCENT: u64 = 50;

#[derive(Clone, Copy, Debug)]
enum Focus {
    /// Calls that take long, begin late, and are cut by clean stops.
    Calls,
    /// Settles whose outcome is not known.
    Settles,
    /// Groups whose members are changed by clients in the middle.
    Groups,
    /// Keys that collide: generations are few.
    Collisions,
    /// Handlers that kill their process.
    Killers,
    /// Many timers in one request, beside others of the same names.
    Many,
    /// Changes of a generation that is not there.
    Stale,
    /// Kicks of timers that back off.
    Kicks,
    /// A store without room for anything but moves.
    Full,
    /// A burst that fails together.
    Failures,
    /// Lanes of very different length in one tick.
    Lanes,
    /// A clock that is set while handlers run.
    Clocks,
    /// Commits in doubt, reads, and a crash.
    Doubts,
    /// A pause just before what is due.
    Pauses,
    /// Handlers that write their own name, or go on at a due that is over.
    Own,
    /// A clock that stands still just before a due.
    Still,
    /// A pause that ends when what was due first is gone.
    Resumes,
    /// All clocks are set back while what was due runs, and fails.
    SetBack,
}

const ALL: [Focus; 18] = [
    Focus::Calls,
    Focus::Settles,
    Focus::Groups,
    Focus::Collisions,
    Focus::Killers,
    Focus::Many,
    Focus::Stale,
    Focus::Kicks,
    Focus::Full,
    Focus::Failures,
    Focus::Lanes,
    Focus::Clocks,
    Focus::Doubts,
    Focus::Pauses,
    Focus::Own,
    Focus::Still,
    Focus::Resumes,
    Focus::SetBack,
];

/// Adds the situation of a seed to its plan, if it has one.
pub(crate) fn add(plan: &mut Plan, random: &mut Random) {
    if !random.chance(FOCUSED_PERCENT) {
        return;
    }
    let focus = random.pick(&ALL);
    // On the millisecond, like what is due: so that requests meet the tick.
    let at_us = 1_000 * random.below(plan.world.heal_at_us / 2_000);
    let mut stage = Stage {
        partition: random.below(plan.world.partitions),
        nodes: plan.world.nodes.len() as u64,
        at_us,
        plan,
        random,
    };
    match focus {
        Focus::Calls => stage.calls(),
        Focus::Settles => stage.settles(),
        Focus::Groups => stage.groups(),
        Focus::Collisions => stage.collisions(),
        Focus::Killers => stage.killers(),
        Focus::Many => stage.many(),
        Focus::Stale => stage.stale(),
        Focus::Kicks => stage.kicks(),
        Focus::Full => stage.full(),
        Focus::Failures => stage.failures(),
        Focus::Lanes => stage.lanes(),
        Focus::Clocks => stage.clocks(),
        Focus::Doubts => stage.doubts(),
        Focus::Pauses => stage.pauses(),
        Focus::Own => stage.own(),
        Focus::Still => stage.still(),
        Focus::Resumes => stage.resumes(),
        Focus::SetBack => stage.set_back(),
    }
}

/// Where a situation is played.
struct Stage<'a> {
    plan: &'a mut Plan,
    random: &'a mut Random,
    partition: u64,
    nodes: u64,
    at_us: u64,
}

/// What a timer is to do, and when.
struct Part<'a> {
    kind: TimerKind,
    reference: &'a str,
    due_in_ms: i64,
    named: bool,
    does: bytes::Bytes,
}

impl Stage<'_> {
    fn deed(&mut self, in_us: u64, deed: Deed) {
        let after_steps = self.random.below(30);
        self.plan.actions.push(Action {
            at_us: self.at_us + in_us,
            after_steps,
            deed,
        });
    }

    fn verb(&mut self, in_us: u64, kind: TimerKind, reference: &str, what: VerbWhat) {
        let verb = VerbSpec {
            partition: self.partition,
            kind,
            reference: reference.to_owned(),
            what,
        };
        let node = self.random.below(self.nodes);
        self.deed(
            in_us,
            Deed::Verb {
                node,
                verb,
                retries: 1,
            },
        );
    }

    fn schedule(&mut self, in_us: u64, part: Part<'_>) {
        let what = VerbWhat::Schedule {
            due_in_ms: part.due_in_ms,
            policy: Policy::Replace,
            named: part.named,
            payload: part.does,
        };
        self.verb(in_us, part.kind, part.reference, what);
    }

    /// A burst of timers of one kind, named by their numbers, all due at the same distance.
    fn burst(&mut self, count: u64, kind: TimerKind, due_in_ms: i64, does: (Op, u8)) {
        for number in 0..count {
            let reference = format!("f{number}");
            let part = Part {
                kind,
                reference: &reference,
                due_in_ms,
                named: true,
                does: payload(does.0, does.1, kind, "f0"),
            };
            self.schedule(0, part);
        }
    }

    /// Nothing but the situation itself: no other verb, no trouble, no fault.
    fn alone(&mut self) {
        self.plan.actions.clear();
        self.plan.world.faults = StoreFaults::default();
    }

    fn inline(&mut self) -> TimerKind {
        self.random.pick(&[KINDS[0], KINDS[1]])
    }

    fn retry_patiently(&mut self) {
        self.plan.world.retry = RetryPolicy {
            attempts_max: Some(5),
            ..self.plan.world.retry
        };
    }
}
