//! Situations that draws alone would seldom make: each takes a third of a world's life, and is added to
//! what was drawn for the seed before, or takes its place.

use dueline::timers::{Policy, RetryPolicy, TimerKind};
use dueline_testkit::model::Random;
use dueline_testkit::model::script::{KINDS, Op, REFERENCES, payload};

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
}

const ALL: [Focus; 15] = [
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

    fn calls(&mut self) {
        let is_alone = self.random.chance(60);
        if is_alone {
            self.alone();
            self.plan.world.faults.slow = self.random.pick(&[0, 100, 400]);
        }
        for node in &mut self.plan.world.nodes {
            (node.offset_ms, node.drift_ppm) = (0, 0);
            node.budget.max_elapsed_ms = 30_000;
        }
        self.plan.world.store_offset_ms = 0;
        self.retry_patiently();
        let kinds = if self.random.chance(50) { 3 } else { 0 };
        for number in 0..4 {
            let op = self.random.pick(&[Op::Sleep, Op::Hang, Op::Sleep]);
            let reference = format!("f{number}");
            let part = Part {
                kind: KINDS[3],
                reference: &reference,
                due_in_ms: 100,
                named: true,
                does: payload(op, 3, KINDS[3], "a"),
            };
            self.schedule(0, part);
        }
        // Beside them the tick that claims them takes long.
        for kind in KINDS.iter().take(kinds) {
            self.burst(3, *kind, 100, (Op::Hang, 5));
        }
        if kinds == 0 && self.random.chance(60) {
            let node = self.random.below(self.nodes);
            let in_us = 100_000 + self.random.below(3_000_000);
            self.deed(
                in_us,
                Deed::Stop {
                    node,
                    grace_ms: 0,
                    down_us: 100_000,
                },
            );
        }
    }

    fn settles(&mut self) {
        self.alone();
        self.plan.world.calls_once = true;
        self.plan.world.faults.unknown_written = 150;
        self.plan.world.faults.unknown_not_written = 250;
        for node in &mut self.plan.world.nodes {
            (node.offset_ms, node.drift_ppm) = (0, 0);
        }
        self.plan.world.store_offset_ms = 0;
        for due_in_ms in [0, 300, 900] {
            self.burst(5, KINDS[3], due_in_ms, (Op::Done, 0));
            self.at_us += 700_000;
        }
    }

    fn groups(&mut self) {
        let kind = self.inline();
        for node in &mut self.plan.world.nodes {
            node.group_max = 64;
            node.per_tick_max = None;
            node.budget.max_fired = 10_000;
            node.budget.max_per_kind = 10_000;
            node.budget.max_scanned = 10_000;
        }
        // The group waits for the store between its reads and its commit.
        self.plan.world.faults.slow = 300;
        self.burst(12, kind, 800, (Op::Chain, 0));
        for _ in 0..8 {
            let reference = format!("f{}", self.random.below(12));
            let what = if self.random.chance(50) {
                VerbWhat::Cancel
            } else {
                VerbWhat::Reschedule { due_in_ms: 1_500 }
            };
            let in_us = 790_000 + self.random.below(250_000);
            self.verb(in_us, kind, &reference, what);
        }
    }

    fn collisions(&mut self) {
        self.plan.world.narrow_generations = true;
        self.retry_patiently();
        let kind = self.random.pick(&KINDS);
        let same_due = self.random.chance(50);
        for number in 0..20 {
            let does = if same_due {
                payload(Op::Log, number, kind, "a")
            } else {
                payload(Op::Fail, 2, kind, "a")
            };
            let part = Part {
                kind,
                reference: "same",
                due_in_ms: if same_due {
                    2_000
                } else {
                    100 + i64::from(number)
                },
                named: false,
                does,
            };
            self.schedule(0, part);
        }
    }

    fn killers(&mut self) {
        self.plan.world.is_remote = false;
        self.plan.world.nodes.truncate(1);
        self.plan.world.faults.unknown_late = 0;
        self.nodes = 1;
        let kind = self.random.pick(&KINDS);
        let part = Part {
            kind,
            reference: "killer",
            due_in_ms: 100,
            named: true,
            does: payload(Op::Kill, 0, kind, "a"),
        };
        self.schedule(0, part);
        let other = self.inline();
        self.burst(3, other, 100, (Op::Log, 0));
    }

    fn many(&mut self) {
        let kind = self.inline();
        for round in 0..6 {
            let payload = payload(Op::Log, 0, kind, "a");
            let timers = REFERENCES
                .iter()
                .map(|reference| ((*reference).to_owned(), 3_000));
            let many = VerbWhat::Many {
                timers: timers.collect(),
                payload: payload.clone(),
            };
            self.verb(round * 100_000, kind, "", many);
            let reference = self.random.pick(&REFERENCES);
            let part = Part {
                kind,
                reference,
                due_in_ms: 2_000,
                named: true,
                does: payload,
            };
            self.schedule(round * 100_000, part);
        }
    }

    fn stale(&mut self) {
        let kind = self.random.pick(&KINDS);
        self.burst(3, kind, 2_500, (Op::Log, 0));
        for change in [0, 1, 2, 0, 1, 2] {
            let reference = format!("f{}", self.random.below(3));
            let in_us = 500_000 + self.random.below(1_000_000);
            self.verb(in_us, kind, &reference, VerbWhat::Stale { change });
        }
    }

    fn kicks(&mut self) {
        self.retry_patiently();
        self.plan.world.retry.initial_ms = 1_000;
        self.plan.world.retry.max_ms = 3_000;
        let kind = self.random.pick(&KINDS);
        self.burst(3, kind, 0, (Op::Fail, 3));
        for _ in 0..8 {
            let reference = format!("f{}", self.random.below(3));
            let in_us = 200_000 + self.random.below(2_000_000);
            let due_in_ms = self.random.pick(&[0, 100, 2_000]);
            let what = VerbWhat::Schedule {
                due_in_ms,
                policy: Policy::KeepEarliest,
                named: true,
                payload: payload(Op::Fail, 3, kind, "a"),
            };
            self.verb(in_us, kind, &reference, what);
        }
    }

    fn full(&mut self) {
        self.retry_patiently();
        let kind = self.random.pick(&KINDS);
        self.burst(3, kind, 1_000, (Op::Fail, 3));
        self.burst(2, KINDS[0], 1_200, (Op::Log, 0));
        self.deed(700_000, Deed::Full { is_full: true });
        let in_us = 1_500_000 + self.random.below(8_000_000);
        self.deed(in_us, Deed::Full { is_full: false });
    }

    fn failures(&mut self) {
        self.retry_patiently();
        self.plan.world.retry.initial_ms = 1_000;
        self.plan.world.retry.max_ms = 3_000;
        self.plan.world.retry.jitter_percent = 100;
        let kind = self.inline();
        self.burst(12, kind, 300, (Op::Fail, 1));
    }

    fn lanes(&mut self) {
        for node in &mut self.plan.world.nodes {
            node.budget.max_fired = 8;
            node.budget.max_per_kind = 10_000;
            node.budget.max_scanned = 10_000;
            node.budget.max_elapsed_ms = 30_000;
        }
        if self.random.chance(50) {
            for node in &mut self.plan.world.nodes {
                node.per_tick_max = Some(1);
            }
        }
        self.burst(15, KINDS[0], 500, (Op::Log, 0));
        self.burst(1, KINDS[1], 501, (Op::Log, 0));
        self.burst(1, KINDS[2], 502, (Op::Log, 0));
        // All are found in one tick if the process was down when they came due.
        if self.random.chance(70) {
            let node = self.random.below(self.nodes);
            self.deed(
                300_000,
                Deed::Crash {
                    node,
                    down_us: 700_000,
                },
            );
        }
    }

    fn clocks(&mut self) {
        for node in &mut self.plan.world.nodes {
            node.budget.max_fired = 10_000;
            node.budget.max_per_kind = 10_000;
            node.budget.max_scanned = 10_000;
            node.budget.max_elapsed_ms = 30_000;
            node.per_tick_max = None;
        }
        let kind = self.inline();
        self.burst(4, kind, 300, (Op::Sleep, 1));
        self.burst(2, KINDS[2], 300, (Op::Log, 0));
        let by_ms = self.random.pick(&[40_000, 3_600_000, -3_600_000]);
        let in_us = 300_000 + self.random.below(1_500_000);
        let node = self.random.below(self.nodes);
        self.deed(in_us, Deed::Jump { node, by_ms });
    }

    fn doubts(&mut self) {
        self.alone();
        self.plan.world.is_remote = false;
        self.plan.world.nodes.truncate(1);
        self.nodes = 1;
        self.plan.world.faults.io_error = 300;
        let kind = self.random.pick(&KINDS);
        for round in 0..8 {
            let in_us = round * 400_000;
            let reference = self.random.pick(&REFERENCES);
            let part = Part {
                kind,
                reference,
                due_in_ms: 20_000,
                named: true,
                does: payload(Op::Log, 0, kind, "a"),
            };
            self.schedule(in_us, part);
            for step in 1..4 {
                self.verb(in_us + step * 1_000, kind, reference, VerbWhat::Get);
            }
            let down_us = 1_000;
            self.deed(in_us + 10_000, Deed::Crash { node: 0, down_us });
        }
    }

    fn pauses(&mut self) {
        let kind = self.random.pick(&KINDS);
        for round in 0..4 {
            let in_us = round * 1_000_000;
            self.at_us += in_us;
            self.burst(3, kind, 500, (Op::Log, 0));
            self.at_us -= in_us;
            let before_us = self.random.pick(&[400_000, 10_000, 0]);
            self.verb(in_us + 500_000 - before_us, kind, "", VerbWhat::Pause);
            self.verb(in_us + 900_000, kind, "", VerbWhat::Resume);
        }
    }

    fn own(&mut self) {
        self.retry_patiently();
        let kind = self.random.pick(&KINDS);
        self.burst(3, kind, 300, (Op::OwnName, 1));
        let other = self.inline();
        for number in 0..3 {
            let reference = format!("past-{number}");
            let part = Part {
                kind: other,
                reference: &reference,
                due_in_ms: 300,
                named: self.random.chance(50),
                does: payload(Op::Reschedule, 3, other, "a"),
            };
            self.schedule(0, part);
            let reference = format!("put-{number}");
            let part = Part {
                kind: other,
                reference: &reference,
                due_in_ms: 300,
                named: true,
                does: payload(Op::Put, 1, other, "b"),
            };
            self.schedule(0, part);
        }
    }
}
