//! A whole run: nodes, store, clients and time.
#![allow(
    clippy::indexing_slicing,
    reason = "a node that is not there is a fault of the simulator, and must be heard"
)]

mod deeds;
mod ending;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use dueline_history::{Budget, EngineRules, Event, Recurring, Retries, What};
use dueline_testkit::model::Random;
use dueline_testkit::model::script::{KINDS, RECUR_MS};

use crate::client::Doubts;
use crate::disk::Disk;
use crate::executor::Executor;
use crate::kinds::Play;
use crate::node::Node;
use crate::plan::{Action, Deed, Plan, RECURRING, VerbSpec};
use crate::recorder::{Actor, Hidden, Recorder};
use crate::tag::Tag;
use crate::time::{NodeClock, TrueTime};

/// How long what was begun among faults may take until everything is at rest again: holding back, claims
/// and back-off come to about two minutes.
pub(crate) const REST_US: u64 = 900_000_000;
/// How late a timer may be while nothing goes wrong, in milliseconds: where several nodes write, each
/// asks for what the others have written only every second.
const LATENESS_MS: u64 = 3_000;
/// The same for one node whose clock goes by the true time: then its driver sleeps exactly.
const LATENESS_TRUE_MS: u64 = 100;
/// How long a process may stand still, in milliseconds.
const STAND_STILL_MS_MAX: u64 = 600_000;
/// How long timers are served before the end while nothing goes wrong.
pub(crate) const LIVE_US: u64 = 5_000_000;
/// How long nothing happens before that.
const CALM_US: u64 = 16_000_000;
/// A run that takes more steps than this has gone in circles.
pub(crate) const STEPS_MAX: u64 = 400_000;

/// What a run came to.
#[derive(Debug)]
pub struct Outcome {
    /// What happened.
    pub events: Vec<Event>,
    /// Places that were reached, and how often.
    pub marks: BTreeMap<&'static str, u64>,
    /// What the run itself found wrong, beside what the checkers find in its history.
    pub broken: Vec<String>,
    /// What the rules of the simulator's own need.
    pub hidden: Hidden,
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
    /// What is played, if it is not scripted kinds.
    play: Option<Play>,
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
    /// A lane of the scenario, through this node.
    Resume {
        node: u64,
        lane: u64,
    },
}

/// Runs a plan to its end.
pub fn run(plan: &Plan) -> Outcome {
    let mut world = World::new(plan);
    world.run();
    let mut taken = world.recorder.take();
    world.broken.append(&mut taken.hidden.wrong);
    Outcome {
        events: taken.events,
        marks: taken.marks,
        broken: world.broken,
        hidden: taken.hidden,
    }
}

/// What a plan is held to.
pub(crate) fn begin(plan: &Plan) -> What {
    let budgets = plan
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
        lateness_ms: Some(if plan.world.is_remote || !plan.has_true_clocks() {
            LATENESS_MS
        } else {
            LATENESS_TRUE_MS
        }),
        budget,
        // A read and a commit may take a quarter of a minute each, and a run its deadline; a world of kinds
        // lasts long enough for a stand-still to be over in the middle of a tick.
        overrun_ms: match plan.world.scenario {
            Some(_) => 120_000 + STAND_STILL_MS_MAX,
            None => 120_000,
        },
        recurring: vec![Recurring {
            kind: RECURRING.0,
            every_ms: RECUR_MS,
            may_skip: false,
        }],
        retries: kinds
            .map(|kind| Retries::of(kind, &plan.world.retry))
            .collect(),
        wakes_kept: true,
        ..EngineRules::default()
    };
    What::Begin {
        seed: plan.seed,
        deadline_ms: crate::handlers::DEADLINE_MS,
        lag_ms: 0,
        rules: Some(Box::new(rules)),
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
        let play = plan.world.scenario.map(Play::new);
        if let Some(play) = &play {
            disk.watch(Box::new(play.watcher()));
        }
        Self {
            plan,
            play,
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
        self.recorder.event(&self.actor, begin(self.plan));
        self.disk.set_faults(self.plan.world.faults);
        for index in 0..self.nodes.len() {
            self.start(index);
        }
        let heal_at_us = self.plan.world.heal_at_us;
        self.run_until(heal_at_us, &mut self.plan.actions.iter().peekable(), |_| {
            false
        });
        self.heal();
        let rested = match self.play {
            Some(_) => self.rest_of_kinds(),
            None => self.rest(),
        };
        if rested && self.play.is_none() {
            // Reads of the store that were refused before are held back for a while.
            let until_us = self.time.now_us() + CALM_US;
            self.run_until(until_us, &mut std::iter::empty().peekable(), |_| false);
            self.recorder
                .event(&self.actor, What::Phase { liveness: true });
            self.live();
        }
        self.finish(rested);
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
                self.crash_killed();
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
                self.recorder.turn();
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
                Later::Resume { node, lane } => self.set_paused(node, lane, false),
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
}
