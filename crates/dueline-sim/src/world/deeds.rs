//! What is done to the world.

use dueline::runtime::Clock;
use dueline::timers::Timers;
use dueline_history::What;

use super::{Later, World};
use crate::client::Request;
use crate::node::Surroundings;
use crate::plan::{Deed, VerbSpec};
use crate::tag::Tag;
use crate::time::NodeClock;

/// How long a process is down that a handler has killed.
const KILLED_DOWN_US: u64 = 700_000;

impl World<'_> {
    pub(super) fn perform(&mut self, deed: Deed) {
        match deed {
            Deed::Verb {
                node,
                verb,
                retries,
            } => self.ask(node, verb, retries),
            Deed::Ask { node, draw } => self.ask_of_kinds(node, draw),
            Deed::PauseLane { node, lane, for_us } => {
                self.set_paused(node, lane, true);
                let until_us = self.time.now_us() + for_us;
                self.put_off(until_us, Later::Resume { node, lane });
            }
            Deed::Crash { node, down_us } => {
                self.recorder.mark("a node crashes");
                self.crash(node, down_us);
            }
            Deed::Stop {
                node,
                grace_ms,
                down_us,
            } => self.stop(node, grace_ms, down_us),
            Deed::Suspend { node, for_us } => {
                if let Some(index) = self.index(node).filter(|index| self.lives(*index)) {
                    self.recorder.mark("a node stands still");
                    self.executor.suspend(u32::from(self.number(index)));
                    self.put_off(self.time.now_us() + for_us, Later::GoOn(index));
                }
            }
            Deed::Jump { node, by_ms } => self.jump(node, by_ms),
            Deed::Freeze { node, for_us } => {
                self.clock_of(node).freeze(true);
                self.put_off(self.time.now_us() + for_us, Later::Thaw(node));
            }
            Deed::Nudge { node } => {
                if let Some(life) = self
                    .index(node)
                    .and_then(|index| self.nodes[index].life.as_ref())
                {
                    life.handle.resume();
                }
            }
            Deed::LandLate => self.disk.land_late(),
            Deed::Full { is_full } => self.disk.set_full(is_full),
            // Only an object has these.
            Deed::Befall(_) => {}
        }
    }

    pub(super) fn index(&self, node: u64) -> Option<usize> {
        usize::try_from(node)
            .ok()
            .filter(|index| *index < self.nodes.len())
    }

    pub(super) fn number(&self, index: usize) -> u16 {
        u16::try_from(index).unwrap_or(u16::MAX)
    }

    pub(super) fn lives(&self, index: usize) -> bool {
        self.nodes
            .get(index)
            .is_some_and(|node| node.life.is_some())
    }

    pub(super) fn start(&mut self, index: usize) {
        let Some(node) = self.nodes.get_mut(index).filter(|node| node.life.is_none()) else {
            return;
        };
        if !self.plan.world.is_remote {
            self.disk.reopen();
        }
        let epoch = self.next_epoch;
        self.next_epoch += 1;
        node.start(Surroundings {
            world: &self.plan.world,
            disk: &self.disk,
            recorder: &self.recorder,
            executor: &mut self.executor,
            epoch,
            entropy_seed: self.random.next_u64(),
            play: self.play.as_mut(),
        });
    }

    pub(super) fn crash(&mut self, node: u64, down_us: u64) {
        let Some(index) = self.index(node).filter(|index| self.lives(*index)) else {
            return;
        };
        self.nodes[index].end(&mut self.executor, &self.recorder, true);
        // The next program knows all kinds, now and then.
        self.nodes[index].is_old &= self.random.chance(50);
        self.put_off(self.time.now_us() + down_us, Later::Start(index));
    }

    /// Ends the processes that a handler has killed.
    pub(super) fn crash_killed(&mut self) {
        for index in 0..self.nodes.len() {
            if self.nodes[index].was_killed() {
                self.recorder.mark("a handler kills its process");
                self.crash(index as u64, KILLED_DOWN_US);
            }
        }
    }

    pub(super) fn stop(&mut self, node: u64, grace_ms: u64, down_us: u64) {
        let Some(index) = self.index(node) else {
            return;
        };
        let Some(life) = self.nodes[index]
            .life
            .as_mut()
            .filter(|life| !life.is_stopping)
        else {
            return;
        };
        self.recorder.mark("a node stops cleanly");
        life.is_stopping = true;
        let handle = life.handle.clone();
        let grace = std::time::Duration::from_millis(grace_ms);
        let owner = self.nodes[index].owner();
        self.executor.spawn(
            owner,
            Tag::Engine,
            false,
            Box::pin(async move {
                let _report = handle.shutdown(grace).await;
            }),
        );
        // It is started again behind the end of its shutdown, whenever that comes.
        self.put_off(self.time.now_us() + down_us + 1, Later::Start(index));
    }

    /// Ends the processes whose shutdown is over.
    pub(super) fn end_stopped(&mut self) {
        for index in 0..self.nodes.len() {
            let is_over = self.nodes[index]
                .life
                .as_ref()
                .is_some_and(|life| life.is_stopping && life.jobs.has_stopped());
            if is_over {
                self.nodes[index].end(&mut self.executor, &self.recorder, false);
                self.put_off(self.time.now_us() + 1, Later::Start(index));
            }
        }
    }

    pub(super) fn clock_of(&self, node: u64) -> NodeClock {
        self.index(node).map_or_else(
            || self.disk.clock().clone(),
            |index| self.nodes[index].clock.clone(),
        )
    }

    pub(super) fn jump(&mut self, node: u64, by_ms: i64) {
        self.recorder.mark("a clock jumps");
        let clock = self.clock_of(node);
        self.latest_ms = self.latest_ms.max(clock.wall_ms());
        clock.jump_ms(by_ms);
        self.recorder.event(
            &self.actor,
            What::Clock {
                node: u16::try_from(node)
                    .ok()
                    .filter(|_| self.index(node).is_some()),
                wall_ms: u64::try_from(clock.wall_ms()).unwrap_or(0),
                jumped_ms: by_ms,
            },
        );
    }

    /// This node, or the next that lives.
    fn living(&self, node: u64) -> Option<usize> {
        let count = self.nodes.len();
        let first = self.index(node).unwrap_or(0);
        (0..count)
            .map(|step| (first + step) % count)
            .find(|index| self.lives(*index))
    }

    /// Lets a client of the scenario ask; without a node that lives nothing is asked.
    fn ask_of_kinds(&mut self, node: u64, draw: u64) {
        let Some(index) = self.living(node) else {
            return;
        };
        let node = &self.nodes[index];
        if let (Some(life), Some(play)) = (&node.life, &self.play) {
            let task = play.ask(draw, life.handle.timers());
            self.executor
                .spawn(node.owner(), Tag::Request(0), false, task);
        }
    }

    /// Has a lane of the scenario paused or resumed; without a node that lives it stays as it is.
    pub(super) fn set_paused(&mut self, node: u64, lane: u64, is_paused: bool) {
        let Some(index) = self.living(node) else {
            return;
        };
        let node = &self.nodes[index];
        if let (Some(life), Some(play)) = (&node.life, &self.play) {
            let task = play.set_paused(lane, life.handle.timers(), is_paused, &self.recorder);
            self.executor
                .spawn(node.owner(), Tag::Request(0), false, task);
        }
    }

    /// Asks this node, or the next that lives; without any nothing is asked.
    pub(super) fn ask(&mut self, node: u64, verb: VerbSpec, retries: u32) {
        let Some(index) = self.living(node) else {
            return;
        };
        let node = &self.nodes[index];
        let Some(life) = &node.life else { return };
        let timers: Timers = life.handle.timers().clone();
        let now_ms = u64::try_from(node.clock.wall_ms()).unwrap_or(0);
        let number = self.next_request;
        self.next_request += 1;
        let tag = verb.what.tag(number);
        let request = Request::new(
            number,
            &node.clients,
            &self.recorder,
            (verb, retries),
            &self.doubts,
            now_ms,
        );
        let task = Box::pin(request.run(timers, now_ms));
        self.executor.spawn(node.owner(), tag, false, task);
    }
}
