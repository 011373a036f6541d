//! How a run ends: healed, at rest, alive, read from end to end.

use std::time::Duration;

use dueline::runtime::Clock;
use dueline::store::Partition;
use dueline::timers::TimerKind;
use dueline_history::{Octets, Scan, What};
use dueline_testkit::model::script::{KINDS, Op, payload};

use super::{LIVE_US, Later, REST_US, World};
use crate::client::partition;
use crate::disk::{lane_wakes, octets};
use crate::kinds::Play;
use crate::node::Node;
use crate::plan::{RECURRING, STRANGE, VerbSpec, VerbWhat};
use crate::tag::Tag;
use crate::time::NodeClock;

impl World<'_> {
    /// Nothing goes wrong from now on: the store works, every node lives and knows every kind, and
    /// all clocks show the latest time that one of them has ever shown.
    pub(super) fn heal(&mut self) {
        self.disk.heal();
        let clocks: Vec<NodeClock> = (0..=self.nodes.len() as u64)
            .map(|node| self.clock_of(node))
            .collect();
        let shown = clocks.iter().map(Clock::wall_ms);
        let latest_ms = shown.fold(self.latest_ms, i64::max);
        for clock in &clocks {
            clock.freeze(false);
            clock.jump_ms(latest_ms - clock.wall_ms());
        }
        self.later
            .retain(|_, later| matches!(later, Later::Again(..)));
        for index in 0..self.nodes.len() {
            self.executor.go_on(self.nodes[index].owner());
            if self.nodes[index].is_old {
                self.nodes[index].end(&mut self.executor, &self.recorder, true);
                self.nodes[index].is_old = false;
            }
            self.start(index);
        }
    }

    /// Lets everything that is left be worked off, by the stored wakes alone; says whether it was.
    pub(super) fn rest(&mut self) -> bool {
        let until_us = self.time.now_us() + REST_US;
        // Clients that were in doubt have asked again before the last pauses end.
        let none = || std::iter::empty().peekable();
        self.run_until(until_us, &mut none(), |world| {
            world.later.is_empty() && !world.has_open_requests()
        });
        for number in 0..self.plan.world.partitions {
            for kind in KINDS.into_iter().chain([RECURRING]) {
                let resume = VerbSpec {
                    partition: number,
                    kind,
                    reference: String::new(),
                    what: VerbWhat::Resume,
                };
                self.ask(0, resume, 3);
            }
        }
        self.run_until(until_us, &mut none(), Self::is_at_rest);
        if self.left().is_empty() && !self.is_at_rest() {
            // A commit in doubt may leave a wake that outlives its timers: one too many, which is found
            // when the store is read from end to end. With timers left that would hide what is lost.
            for node in &self.nodes {
                let Some(life) = &node.life else { continue };
                let handle = life.handle.clone();
                let drain = async move {
                    let _report = handle.drain(Duration::from_secs(60)).await;
                };
                self.executor
                    .spawn(node.owner(), Tag::Engine, false, Box::pin(drain));
            }
            self.run_until(until_us + REST_US, &mut none(), Self::is_at_rest);
        }
        self.is_at_rest()
    }

    /// Lets everything that a scenario has begun come to its end.
    pub(super) fn rest_of_kinds(&mut self) -> bool {
        let until_us = self.time.now_us() + REST_US;
        let none = || std::iter::empty().peekable();
        self.run_until(until_us, &mut none(), |world| {
            world.later.is_empty() && !world.has_open_requests()
        });
        for lane in 0..self.play.as_ref().map_or(0, Play::lanes) {
            self.set_paused(0, lane, false);
        }
        self.run_until(until_us, &mut none(), |world| !world.has_open_requests());
        if let (Some(node), Some(play)) = (self.nodes.first(), &self.play)
            && let Some(life) = &node.life
        {
            for mend in play.calm(life.handle.timers()) {
                self.executor
                    .spawn(node.owner(), Tag::Request(0), false, mend);
            }
        }
        self.run_until(until_us + REST_US, &mut none(), Self::is_at_rest);
        self.is_at_rest()
    }

    fn partitions(&self) -> Vec<Partition> {
        match &self.play {
            Some(play) => play.partitions(),
            None => (0..self.plan.world.partitions).map(partition).collect(),
        }
    }

    /// Whether the nodes run timers of this kind.
    fn is_run(&self, kind: TimerKind) -> bool {
        match &self.play {
            Some(play) => play.runs(kind),
            None => kind != STRANGE,
        }
    }

    pub(super) fn has_open_requests(&self) -> bool {
        self.executor.has_requests()
    }

    pub(super) fn is_at_rest(&self) -> bool {
        let idle = |node: &Node| {
            node.life.as_ref().is_some_and(|life| {
                let status = life.handle.status();
                status.partitions_held_back == 0
                    && status.ticks_running == 0
                    && status.calls_running == 0
            })
        };
        self.nodes.iter().all(idle)
            && self
                .disk
                .memory()
                .wakes()
                .iter()
                .all(|wake| !self.is_run(wake.kind))
            && self.left().is_empty()
            && self.later.is_empty()
            && !self.has_open_requests()
    }

    /// Timers that should have run: all of known kinds.
    pub(super) fn left(&self) -> Vec<String> {
        let mut left = Vec::new();
        for partition in self.partitions() {
            for (key, _) in self.disk.memory().rows(&partition) {
                let is_timer = key.starts_with(&[dueline::rows::class::TIMER, 0]);
                let kind = key.get(2).map_or(STRANGE, |kind| TimerKind(*kind));
                if is_timer && self.is_run(kind) {
                    left.push(format!("{partition} {}", key.escape_ascii()));
                }
            }
        }
        left
    }

    /// Timers that are due soon are served in time.
    pub(super) fn live(&mut self) {
        for number in 0..self.plan.world.partitions {
            for (kind, due_in_ms) in [(KINDS[0], 1_000), (KINDS[3], 1_500), (KINDS[1], -100)] {
                let probe = VerbSpec {
                    partition: number,
                    kind,
                    reference: "probe".to_owned(),
                    what: VerbWhat::Schedule {
                        due_in_ms,
                        policy: dueline::timers::Policy::Replace,
                        named: true,
                        payload: payload(Op::Done, 0, kind, "probe"),
                    },
                };
                let node = self.random.below(self.nodes.len() as u64);
                self.ask(node, probe, 0);
            }
        }
        let until_us = self.time.now_us() + LIVE_US;
        self.run_until(until_us, &mut std::iter::empty().peekable(), |_| false);
        let left = self.left();
        if !left.is_empty() {
            self.broken
                .push(format!("probes were not served: {left:?}"));
        }
    }

    pub(super) fn finish(&mut self, rested: bool) {
        if !rested {
            let left = self.left();
            let statuses: Vec<String> = self
                .nodes
                .iter()
                .map(|node| format!("{:?}", node.life.as_ref().map(|life| life.handle.status())))
                .collect();
            self.broken.push(format!(
                "not at rest: left {left:?}, wakes {:?}, {statuses:?}",
                self.disk.memory().wakes()
            ));
        }
        if let Some(play) = &self.play {
            self.broken.extend(play.conclude(rested, &self.recorder));
        }
        for name in self.partitions() {
            let rows = self.disk.memory().rows(&name);
            let scan = Scan {
                partition: octets(name.as_bytes()),
                at_rest: rested,
                rows: rows
                    .into_iter()
                    .map(|(key, value)| (Octets(key), Octets(value)))
                    .collect(),
                wakes: lane_wakes(&self.disk.memory().wakes(), &name),
            };
            self.recorder.event(&self.actor, What::Scan(scan));
        }
    }
}
