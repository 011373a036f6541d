//! Situations of timers among each other, and of the requests for them.

use dueline::timers::Policy;
use dueline_testkit::model::script::{KINDS, Op, REFERENCES, payload};

use super::{Part, Stage};
use crate::plan::{Deed, VerbWhat};

impl Stage<'_> {
    pub(super) fn groups(&mut self) {
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

    pub(super) fn collisions(&mut self) {
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

    pub(super) fn many(&mut self) {
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

    pub(super) fn stale(&mut self) {
        let kind = self.random.pick(&KINDS);
        self.burst(3, kind, 2_500, (Op::Log, 0));
        for change in [0, 1, 2, 0, 1, 2] {
            let reference = format!("f{}", self.random.below(3));
            let in_us = 500_000 + self.random.below(1_000_000);
            self.verb(in_us, kind, &reference, VerbWhat::Stale { change });
        }
    }

    pub(super) fn kicks(&mut self) {
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

    pub(super) fn full(&mut self) {
        self.retry_patiently();
        let kind = self.random.pick(&KINDS);
        self.burst(3, kind, 1_000, (Op::Fail, 3));
        self.burst(2, KINDS[0], 1_200, (Op::Log, 0));
        self.deed(700_000, Deed::Full { is_full: true });
        let in_us = 1_500_000 + self.random.below(8_000_000);
        self.deed(in_us, Deed::Full { is_full: false });
    }

    pub(super) fn failures(&mut self) {
        self.retry_patiently();
        self.plan.world.retry.initial_ms = 1_000;
        self.plan.world.retry.max_ms = 3_000;
        self.plan.world.retry.jitter_percent = 100;
        let kind = self.inline();
        self.burst(12, kind, 300, (Op::Fail, 1));
    }

    pub(super) fn lanes(&mut self) {
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

    pub(super) fn own(&mut self) {
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
