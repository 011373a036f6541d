//! Situations of processes, clocks and the store.

use dueline_testkit::model::script::{KINDS, Op, REFERENCES, payload};

use super::{Part, Stage};
use crate::plan::{Deed, VerbWhat};

impl Stage<'_> {
    pub(super) fn calls(&mut self) {
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

    pub(super) fn settles(&mut self) {
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

    pub(super) fn killers(&mut self) {
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

    pub(super) fn clocks(&mut self) {
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

    pub(super) fn doubts(&mut self) {
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

    pub(super) fn pauses(&mut self) {
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

    /// One node without trouble of its own, on its own disk.
    fn one_node(&mut self) {
        self.alone();
        self.plan.world.is_remote = false;
        self.plan.world.nodes.truncate(1);
        self.nodes = 1;
        self.agree();
    }

    /// All clocks show the true time.
    fn agree(&mut self) {
        for node in &mut self.plan.world.nodes {
            (node.offset_ms, node.drift_ppm) = (0, 0);
        }
        self.plan.world.store_offset_ms = 0;
    }

    pub(super) fn still(&mut self) {
        self.agree();
        let kind = self.random.pick(&KINDS);
        self.burst(2, kind, 1, (Op::Log, 0));
        let node = self.random.below(self.nodes);
        let for_us = 20_000_000;
        self.deed(0, Deed::Freeze { node, for_us });
    }

    pub(super) fn set_back(&mut self) {
        self.retry_patiently();
        let kind = self.random.pick(&KINDS);
        self.burst(3, kind, 300, (Op::Hang, 1));
        // The store's is the one behind the last of the nodes.
        for node in 0..=self.nodes {
            let by_ms = -3_600_000;
            self.deed(500_000, Deed::Jump { node, by_ms });
        }
    }

    pub(super) fn resumes(&mut self) {
        self.one_node();
        let kind = self.random.pick(&KINDS);
        self.burst(3, kind, 500, (Op::Log, 0));
        let part = Part {
            kind,
            reference: "later",
            due_in_ms: 2_500,
            named: true,
            does: payload(Op::Log, 0, kind, "a"),
        };
        self.schedule(0, part);
        // Whoever begins reads the first wake of the lane alone.
        let down_us = 1_000;
        self.deed(50_000, Deed::Crash { node: 0, down_us });
        self.verb(200_000, kind, "", VerbWhat::Pause);
        for reference in ["f0", "f1", "f2"] {
            self.verb(700_000, kind, reference, VerbWhat::Cancel);
        }
        self.verb(900_000, kind, "", VerbWhat::Resume);
    }
}
