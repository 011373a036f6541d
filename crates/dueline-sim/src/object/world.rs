//! A whole run of one object: its clients, its platform and time.

use std::collections::{BTreeMap, VecDeque};
use std::iter::Peekable;
use std::sync::{Arc, Mutex, PoisonError};

use dueline::runtime::Clock;
use dueline::timers::KindSet;
use dueline_history::What;
use dueline_testkit::model::Random;
use dueline_worker::simulated::SimulatedObject;
use dueline_worker::{AlarmError, AlarmReport, ObjectDriver, Restored, Start};

use super::spec::{Mishap, ObjectSpec};
use super::stage::Stage;
use super::storage::Waiting;
use super::trap::Trap;
use crate::client::{Doubts, Request};
use crate::executor::{Executor, Owner};
use crate::plan::{Action, Deed, NodeSpec, Plan, VerbSpec};
use crate::recorder::{Actor, Hidden, Recorder};
use crate::time::{NodeClock, TrueTime};
use crate::world::{Outcome, STEPS_MAX, begin};

/// Whose the tasks of the instance are.
pub(super) const INSTANCE: Owner = 0;

/// How a task of the instance ended.
#[derive(Debug)]
pub(super) enum Ended {
    /// The alarm of this number.
    Alarm(u64, Result<AlarmReport, AlarmError>),
    /// The look at the alarm with which a request begins.
    Looked(Result<Restored, AlarmError>),
}

/// Where the tasks of the instance leave how they ended.
#[derive(Clone, Debug, Default)]
pub(super) struct Ends(Arc<Mutex<Vec<Ended>>>);

impl Ends {
    pub(super) fn push(&self, ended: Ended) {
        let mut ends = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        ends.push(ended);
    }

    fn take(&self) -> Vec<Ended> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// An instance of the object.
#[derive(Debug)]
pub(super) struct Instance {
    pub(super) driver: ObjectDriver,
    /// Those who ask it: what draws their generations.
    pub(super) clients: Actor,
}

/// What comes later than it was planned.
#[derive(Debug)]
pub(super) enum Later {
    GoOn,
    Thaw,
    Again(VerbSpec, u32),
    Sync,
    Visit,
}

pub(super) struct ObjectWorld<'a> {
    pub(super) plan: &'a Plan,
    pub(super) spec: &'a ObjectSpec,
    pub(super) node: &'a NodeSpec,
    pub(super) time: TrueTime,
    pub(super) clock: NodeClock,
    pub(super) recorder: Recorder,
    pub(super) actor: Actor,
    pub(super) stage: Stage,
    pub(super) object: SimulatedObject,
    pub(super) waiting: Waiting,
    pub(super) instance: Option<Instance>,
    pub(super) starts: Start,
    pub(super) is_old: bool,
    /// The kinds that the last instance ran, and that of rows that name none.
    pub(super) kinds: KindSet,
    pub(super) trap: Trap,
    pub(super) executor: Executor,
    pub(super) random: Random,
    pub(super) ends: Ends,
    /// Alarms under way, each with whether the platform waits for it.
    pub(super) alarms: BTreeMap<u64, bool>,
    pub(super) next_turn: u64,
    /// The next alarm, and by how much its delivery is off, in milliseconds.
    pub(super) delivery: Option<(u64, i64)>,
    pub(super) doubts: Doubts,
    pub(super) next_request: u64,
    pub(super) next_epoch: u64,
    pub(super) later: BTreeMap<(u64, u64), Later>,
    next_later: u64,
    armed: VecDeque<(u64, Deed)>,
    steps: u64,
    /// Behind how many further turns that are not durable the instance crashes.
    crash_in: Option<u64>,
    pub(super) is_sync_planned: bool,
    pub(super) is_frozen: bool,
    pub(super) is_healed: bool,
    /// Whether the platform has lost the alarm or given it up, and nobody has looked since.
    pub(super) is_excused: bool,
    /// The latest time that the clock has ever shown.
    pub(super) latest_ms: u64,
    pub(super) broken: Vec<String>,
}

/// Runs a plan of an object to its end.
pub fn run(plan: &Plan, spec: &ObjectSpec) -> Outcome {
    let Some(mut world) = ObjectWorld::new(plan, spec) else {
        return Outcome {
            events: Vec::new(),
            marks: BTreeMap::new(),
            broken: vec!["the simulated platform could not be made".to_owned()],
            hidden: Hidden::default(),
        };
    };
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

impl<'a> ObjectWorld<'a> {
    fn new(plan: &'a Plan, spec: &'a ObjectSpec) -> Option<Self> {
        let time = TrueTime::default();
        let recorder = Recorder::new(&time);
        let mut random = Random::new(plan.seed ^ 0x0b1e_c700_5eed_5eed);
        let node = plan.world.nodes.first()?;
        let clock = NodeClock::new(&time, node.offset_ms, node.drift_ppm);
        let mut object = SimulatedObject::new(Arc::new(clock.clone())).ok()?;
        object.set_retry_first_ms(spec.retry_first_ms);
        object.storage().record_wakes(true);
        object.storage().set_faults(spec.faults(random.next_u64()));
        Some(Self {
            plan,
            spec,
            node,
            stage: Stage::new(Recorder::new(&time), &recorder),
            time,
            clock,
            recorder,
            actor: Actor::new("object"),
            object,
            waiting: Waiting::default(),
            instance: None,
            starts: Start::Fresh,
            is_old: node.is_old,
            kinds: KindSet::new(),
            trap: Trap::default(),
            executor: Executor::new(),
            random,
            ends: Ends::default(),
            alarms: BTreeMap::new(),
            next_turn: 1,
            delivery: None,
            doubts: Doubts::default(),
            next_request: 1,
            next_epoch: 1,
            later: BTreeMap::new(),
            next_later: 0,
            armed: VecDeque::new(),
            steps: 0,
            crash_in: None,
            is_sync_planned: false,
            is_frozen: false,
            is_healed: false,
            is_excused: false,
            latest_ms: 0,
            broken: Vec::new(),
        })
    }

    fn run(&mut self) {
        self.recorder.event(&self.actor, begin(self.plan));
        let mut actions = self.plan.actions.iter().peekable();
        self.run_until(self.plan.world.heal_at_us, &mut actions, |_| false);
        self.heal();
        let rested = self.rest();
        if rested {
            self.recorder
                .event(&self.actor, What::Phase { liveness: true });
            self.live();
        }
        self.finish(rested);
    }

    /// Lets everything go on until this time, or until `is_over`, which is asked whenever nothing is
    /// left to do at the moment.
    pub(super) fn run_until<'b>(
        &mut self,
        end_us: u64,
        actions: &mut Peekable<impl Iterator<Item = &'b Action>>,
        is_over: impl Fn(&Self) -> bool,
    ) {
        loop {
            self.take_doubts();
            self.do_armed(false);
            if self.random.chance(20) && self.deliver_if_due() {
                continue;
            }
            if self.executor.step(&mut self.random) {
                self.steps += 1;
                self.polled();
                if self.steps > STEPS_MAX {
                    let now_us = self.time.now_us();
                    self.broken.push(format!("goes in circles at {now_us} us"));
                    return;
                }
                continue;
            }
            if !self.armed.is_empty() {
                self.do_armed(true);
                continue;
            }
            if is_over(self) {
                return;
            }
            if self.deliver_if_due() {
                continue;
            }
            let next_us = [
                self.time.next_end_us(),
                actions.peek().map(|action| action.at_us),
                self.later.first_key_value().map(|((at_us, _), _)| *at_us),
                self.delivery_at_us(),
            ];
            let next_us = next_us.into_iter().flatten().min().unwrap_or(end_us);
            if next_us >= end_us {
                self.advance_to(end_us);
                return;
            }
            self.advance_to(next_us);
            while let Some(action) = actions.next_if(|action| action.at_us <= next_us) {
                self.armed
                    .push_back((self.steps + action.after_steps, action.deed.clone()));
            }
            self.do_later(next_us);
        }
    }

    fn advance_to(&mut self, at_us: u64) {
        self.time.advance_to(at_us);
        self.latest_ms = self.latest_ms.max(self.now_ms());
    }

    /// A task has had a turn.
    fn polled(&mut self) {
        if self.trap.take() {
            return self.trapped();
        }
        self.end_turn();
        for ended in self.ends.take() {
            self.ended(ended);
        }
        let is_exposed = self.object.unsynced() > 0 && !self.is_healed;
        if let Some(left) = self.crash_in.filter(|_| is_exposed) {
            self.crash_in = left.checked_sub(1);
            if left == 0 {
                self.crash();
            }
        }
    }

    /// The object's clock.
    pub(super) fn now_ms(&self) -> u64 {
        u64::try_from(self.clock.wall_ms()).unwrap_or(0)
    }

    /// Clients that were left in doubt ask again after a while.
    fn take_doubts(&mut self) {
        for (verb, retries) in self.doubts.take() {
            let in_us = self.random.below(2_000_000);
            self.put_off(in_us, Later::Again(verb, retries));
        }
    }

    pub(super) fn put_off(&mut self, in_us: u64, what: Later) {
        self.next_later += 1;
        let at_us = self.time.now_us().saturating_add(in_us);
        self.later.insert((at_us, self.next_later), what);
    }

    fn do_later(&mut self, now_us: u64) {
        while let Some(entry) = self.later.first_entry() {
            if entry.key().0 > now_us {
                return;
            }
            match entry.remove() {
                Later::GoOn => self.executor.go_on(INSTANCE),
                Later::Thaw => {
                    self.is_frozen = false;
                    self.clock.freeze(false);
                    self.latest_ms = self.latest_ms.max(self.now_ms());
                }
                Later::Again(verb, retries) => self.ask(verb, retries),
                Later::Sync => {
                    self.is_sync_planned = false;
                    self.sync();
                }
                Later::Visit => self.visit(),
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
            Deed::Verb { verb, retries, .. } => self.ask(verb, retries),
            // Only worlds of kinds have these.
            Deed::Ask { .. } | Deed::PauseLane { .. } => {}
            // Most turns are durable soon: a crash at any other time loses none.
            Deed::Crash { .. } if self.random.chance(50) => {
                self.crash_in = Some(self.random.below(4));
            }
            Deed::Crash { .. } => self.crash(),
            Deed::Stop { .. } => self.evict(),
            Deed::Suspend { for_us, .. } => {
                self.executor.suspend(INSTANCE);
                self.put_off(for_us, Later::GoOn);
            }
            Deed::Jump { by_ms, .. } => self.jump(by_ms),
            Deed::Freeze { for_us, .. } => {
                self.is_frozen = true;
                self.clock.freeze(true);
                self.put_off(for_us, Later::Thaw);
            }
            Deed::Nudge { .. } | Deed::LandLate | Deed::Full { .. } => self.sync(),
            Deed::Befall(Mishap::Trap) => self.trapped(),
            Deed::Befall(Mishap::LoseAlarm) => {
                if self.object.lose_alarm() {
                    self.recorder.mark("an alarm is lost");
                    self.is_excused = true;
                }
            }
            Deed::Befall(Mishap::AlarmAgain) => self.deliver_again(),
            Deed::Befall(Mishap::RunByHand) => self.run_by_hand(),
        }
    }

    fn jump(&mut self, by_ms: i64) {
        self.recorder.mark("a clock jumps");
        self.clock.jump_ms(by_ms);
        self.latest_ms = self.latest_ms.max(self.now_ms());
        self.stage.recorder.event(
            &self.actor,
            What::Clock {
                node: Some(0),
                wall_ms: self.now_ms(),
                jumped_ms: by_ms,
            },
        );
    }

    /// A request: looks at the alarm, as each does, and then does what it was sent for.
    pub(super) fn ask(&mut self, verb: VerbSpec, retries: u32) {
        let now_ms = self.now_ms();
        let number = self.next_request;
        self.next_request += 1;
        let tag = verb.what.tag(number);
        let Some(instance) = self.instance() else {
            return;
        };
        let (driver, clients) = (instance.driver.clone(), instance.clients.clone());
        let request = Request::new(
            number,
            &clients,
            &self.stage.recorder,
            (verb, retries),
            &self.doubts,
            now_ms,
        );
        let ends = self.ends.clone();
        let task = Box::pin(async move {
            ends.push(Ended::Looked(driver.restore().await));
            let timers = driver.timers().clone();
            request.run(timers, now_ms).await;
        });
        self.executor.spawn(INSTANCE, tag, false, task);
    }
}
