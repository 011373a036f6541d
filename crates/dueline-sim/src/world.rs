//! A whole run: nodes, store, clients and time.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use dueline::runtime::Clock;
use dueline::timers::Timers;
use dueline_history::{Budget, EngineRules, Event, Octets, Recurring, Retries, Scan, What};
use dueline_testkit::model::Random;
use dueline_testkit::model::script::{KINDS, Op, RECUR_MS, payload};

use crate::client::{Doubts, Request, partition};
use crate::disk::{Disk, lane_wakes, octets};
use crate::executor::Executor;
use crate::node::{Node, Surroundings};
use crate::plan::{Action, Deed, Plan, RECURRING, STRANGE, VerbSpec, VerbWhat};
use crate::recorder::{Actor, Recorder};
use crate::tag::Tag;
use crate::time::{NodeClock, TrueTime};

/// How long what was begun among faults may take until everything is at rest again: holding back, claims
/// and back-off come to about two minutes.
const REST_US: u64 = 900_000_000;
/// How late a timer may be while nothing goes wrong, in milliseconds.
const LATENESS_MS: u64 = 3_000;
/// How long timers are served before the end while nothing goes wrong.
const LIVE_US: u64 = 8_000_000;
/// A run that takes more steps than this has gone in circles.
const STEPS_MAX: u64 = 400_000;

/// What a run came to.
#[derive(Debug)]
pub struct Outcome {
    /// What happened.
    pub events: Vec<Event>,
    /// Places that were reached, and how often.
    pub marks: BTreeMap<&'static str, u64>,
    /// What the run itself found wrong, beside what the checkers find in its history.
    pub broken: Vec<String>,
}

struct World<'a> {
    plan: &'a Plan,
    time: TrueTime,
    recorder: Recorder,
    actor: Actor,
    disk: Arc<Disk>,
    nodes: Vec<Node>,
    executor: Executor,
    random: Random,
    doubts: Doubts,
    steps: u64,
    next_turn: u64,
    next_request: u64,
    next_epoch: u64,
    /// What comes later than it was planned: returns, retries.
    later: BTreeMap<(u64, u64), Later>,
    next_later: u64,
    /// Actions of this moment that wait for steps of tasks.
    armed: VecDeque<(u64, Deed)>,
    broken: Vec<String>,
    /// The latest time that a clock has shown before it was set back.
    latest_ms: i64,
}

#[derive(Debug)]
enum Later {
    Start(usize),
    GoOn(usize),
    Thaw(u64),
    Again(VerbSpec, u32),
}

/// Runs a plan to its end.
pub fn run(plan: &Plan) -> Outcome {
    let mut world = World::new(plan);
    world.run();
    let (events, marks) = world.recorder.take();
    Outcome {
        events,
        marks,
        broken: world.broken,
    }
}

impl<'a> World<'a> {
    fn new(plan: &'a Plan) -> Self {
        let time = TrueTime::default();
        let recorder = Recorder::new(&time);
        let mut random = Random::new(plan.seed ^ 0x5eed_0f0d_d5ee_d5ed);
        let store_clock = NodeClock::new(&time, plan.world.store_offset_ms, 0);
        let nodes: Vec<Node> = (0..)
            .zip(&plan.world.nodes)
            .map(|(number, spec)| Node::new(number, spec.clone(), &time))
            .collect();
        // A store on the node's own disk goes by the node's own clock.
        let clock = match nodes.first() {
            Some(node) if !plan.world.is_remote => node.clock.clone(),
            _ => store_clock,
        };
        let disk = Disk::new(
            &time,
            &clock,
            &recorder,
            plan.world.is_remote,
            random.next_u64(),
        );
        Self {
            plan,
            recorder,
            actor: Actor::new("world"),
            disk,
            nodes,
            executor: Executor::new(),
            random,
            doubts: Doubts::default(),
            steps: 0,
            next_turn: 1,
            next_request: 1,
            next_epoch: 1,
            later: BTreeMap::new(),
            next_later: 0,
            armed: VecDeque::new(),
            broken: Vec::new(),
            latest_ms: 0,
            time,
        }
    }

    fn run(&mut self) {
        self.recorder.event(&self.actor, self.begin());
        self.disk.set_faults(self.plan.world.faults);
        for index in 0..self.nodes.len() {
            self.start(index);
        }
        let heal_at_us = self.plan.world.heal_at_us;
        self.run_until(heal_at_us, &mut self.plan.actions.iter().peekable(), |_| {
            false
        });
        self.heal();
        let rested = self.rest();
        if rested {
            self.recorder
                .event(&self.actor, What::Phase { liveness: true });
            self.live();
        }
        self.finish(rested);
    }

    fn begin(&self) -> What {
        let budgets = self
            .plan
            .world
            .nodes
            .iter()
            .map(|node| Budget::from(&node.budget));
        let budget = budgets.reduce(|a, b| Budget {
            fired: a.fired.max(b.fired),
            per_kind: a.per_kind.max(b.per_kind),
            scanned: a.scanned.max(b.scanned),
            elapsed_ms: a.elapsed_ms.max(b.elapsed_ms),
        });
        let kinds = KINDS.into_iter().chain([RECURRING]);
        let rules = EngineRules {
            lateness_ms: Some(LATENESS_MS),
            budget,
            // A read and a commit may take a quarter of a minute each, and a run its deadline.
            overrun_ms: 120_000,
            recurring: vec![Recurring {
                kind: RECURRING.0,
                every_ms: RECUR_MS,
                may_skip: false,
            }],
            retries: kinds
                .map(|kind| Retries::of(kind, &self.plan.world.retry))
                .collect(),
            wakes_kept: true,
            ..EngineRules::default()
        };
        What::Begin {
            seed: self.plan.seed,
            deadline_ms: crate::handlers::DEADLINE_MS,
            lag_ms: 0,
            rules: Some(Box::new(rules)),
        }
    }

    /// Lets everything go on until this time, or until `is_over`, which is asked whenever nothing is
    /// left to do at the moment.
    fn run_until<'b>(
        &mut self,
        end_us: u64,
        actions: &mut std::iter::Peekable<impl Iterator<Item = &'b Action>>,
        is_over: impl Fn(&Self) -> bool,
    ) {
        loop {
            self.take_jobs();
            self.take_doubts();
            self.do_armed(false);
            if self.executor.step(&mut self.random) {
                self.steps += 1;
                if self.steps > STEPS_MAX {
                    self.broken
                        .push(format!("goes in circles at {} us", self.time.now_us()));
                    return;
                }
                continue;
            }
            if !self.armed.is_empty() {
                self.do_armed(true);
                continue;
            }
            self.end_stopped();
            if is_over(self) {
                return;
            }
            let next_us = [
                self.time.next_end_us(),
                actions.peek().map(|action| action.at_us),
                self.later.first_key_value().map(|((at_us, _), _)| *at_us),
            ];
            let next_us = next_us.into_iter().flatten().min().unwrap_or(end_us);
            if next_us >= end_us {
                self.time.advance_to(end_us);
                return;
            }
            self.time.advance_to(next_us);
            while let Some(action) = actions.next_if(|action| action.at_us <= next_us) {
                self.armed
                    .push_back((self.steps + action.after_steps, action.deed.clone()));
            }
            self.do_later(next_us);
        }
    }

    /// Hands what the drivers' threads would do to the executor.
    fn take_jobs(&mut self) {
        for node in &self.nodes {
            let Some(life) = &node.life else { continue };
            while let Some(job) = life.jobs.next() {
                let tag = Tag::Turn(self.next_turn);
                self.next_turn += 1;
                self.executor.spawn(node.owner(), tag, job.is_tick, job.run);
            }
            if life.is_stopping && life.jobs.drops_ticks() {
                self.executor.drop_tasks(node.owner(), true);
            }
        }
    }

    /// Clients that were left in doubt ask again after a while.
    fn take_doubts(&mut self) {
        for (verb, retries) in self.doubts.take() {
            let at_us = self.time.now_us() + self.random.below(2_000_000);
            self.put_off(at_us, Later::Again(verb, retries));
        }
    }

    fn put_off(&mut self, at_us: u64, what: Later) {
        self.next_later += 1;
        self.later.insert((at_us, self.next_later), what);
    }

    fn do_later(&mut self, now_us: u64) {
        while let Some(entry) = self.later.first_entry() {
            if entry.key().0 > now_us {
                return;
            }
            match entry.remove() {
                Later::Start(index) => self.start(index),
                Later::GoOn(index) => {
                    if let Some(node) = self.nodes.get(index) {
                        self.executor.go_on(node.owner());
                    }
                }
                Later::Thaw(node) => self.clock_of(node).freeze(false),
                Later::Again(verb, retries) => {
                    let node = self.random.below(self.nodes.len() as u64);
                    self.ask(node, verb, retries);
                }
            }
        }
    }

    fn do_armed(&mut self, at_once: bool) {
        let mut at_once = at_once;
        while let Some(place) = self
            .armed
            .iter()
            .position(|(at_step, _)| at_once || *at_step <= self.steps)
        {
            // Only the first is hurried: the others may still meet what it begins.
            at_once = false;
            if let Some((_, deed)) = self.armed.remove(place) {
                self.perform(deed);
            }
        }
    }

    fn perform(&mut self, deed: Deed) {
        match deed {
            Deed::Verb {
                node,
                verb,
                retries,
            } => self.ask(node, verb, retries),
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
        }
    }

    fn index(&self, node: u64) -> Option<usize> {
        usize::try_from(node)
            .ok()
            .filter(|index| *index < self.nodes.len())
    }

    fn number(&self, index: usize) -> u16 {
        u16::try_from(index).unwrap_or(u16::MAX)
    }

    fn lives(&self, index: usize) -> bool {
        self.nodes
            .get(index)
            .is_some_and(|node| node.life.is_some())
    }

    fn start(&mut self, index: usize) {
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
        });
    }

    fn crash(&mut self, node: u64, down_us: u64) {
        let Some(index) = self.index(node).filter(|index| self.lives(*index)) else {
            return;
        };
        self.nodes[index].end(&mut self.executor, &self.recorder, true);
        // The next program knows all kinds, now and then.
        self.nodes[index].is_old &= self.random.chance(50);
        self.put_off(self.time.now_us() + down_us, Later::Start(index));
    }

    fn stop(&mut self, node: u64, grace_ms: u64, down_us: u64) {
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
    fn end_stopped(&mut self) {
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

    fn clock_of(&self, node: u64) -> NodeClock {
        self.index(node).map_or_else(
            || self.disk.clock().clone(),
            |index| self.nodes[index].clock.clone(),
        )
    }

    fn jump(&mut self, node: u64, by_ms: i64) {
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

    /// Asks this node, or the next that lives; without any nothing is asked.
    fn ask(&mut self, node: u64, verb: VerbSpec, retries: u32) {
        let count = self.nodes.len();
        let first = self.index(node).unwrap_or(0);
        let living = (0..count)
            .map(|step| (first + step) % count)
            .find(|index| self.lives(*index));
        let Some(index) = living else {
            return;
        };
        let node = &self.nodes[index];
        let Some(life) = &node.life else { return };
        let timers: Timers = life.handle.timers().clone();
        let now_ms = u64::try_from(node.clock.wall_ms()).unwrap_or(0);
        let number = self.next_request;
        self.next_request += 1;
        let request = Request::new(
            number,
            &node.clients,
            &self.recorder,
            (verb, retries),
            &self.doubts,
            now_ms,
        );
        let task = Box::pin(request.run(timers, now_ms));
        self.executor
            .spawn(node.owner(), Tag::Request(number), false, task);
    }

    /// Nothing goes wrong from now on: the store works, every node lives and knows every kind, and
    /// all clocks show the latest time that one of them has ever shown.
    fn heal(&mut self) {
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
    fn rest(&mut self) -> bool {
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
        self.is_at_rest()
    }

    fn has_open_requests(&self) -> bool {
        self.executor.has_requests()
    }

    fn is_at_rest(&self) -> bool {
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
                .all(|wake| wake.kind == STRANGE)
            && self.left().is_empty()
            && self.later.is_empty()
            && !self.has_open_requests()
            && !self.has_open_requests()
    }

    /// Timers that should have run: all of known kinds.
    fn left(&self) -> Vec<String> {
        let mut left = Vec::new();
        for number in 0..self.plan.world.partitions {
            for (key, _) in self.disk.memory().rows(&partition(number)) {
                let is_timer = key.starts_with(&[dueline::rows::class::TIMER, 0]);
                if is_timer && key.get(2) != Some(&STRANGE.0) {
                    left.push(format!("p{number} {}", key.escape_ascii()));
                }
            }
        }
        left
    }

    /// Timers that are due soon are served in time.
    fn live(&mut self) {
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

    fn finish(&mut self, rested: bool) {
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
        for number in 0..self.plan.world.partitions {
            let name = partition(number);
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
