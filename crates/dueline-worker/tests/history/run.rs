//! One history: requests, alarms, crashes and faults, switched between any two turns.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use dueline::BoxFuture;
use dueline::runtime::{Clock, Runtime};
use dueline::store::Partition;
use dueline::timers::{Counts, TickBudget};
use dueline_testkit::model::{Ledger, Random};
use dueline_testkit::{ManualClock, SequenceEntropy};
use dueline_worker::simulated::{AlarmEnd, Delivery, SimulatedObject};
use dueline_worker::{
    AlarmError, AlarmInfo, AlarmReport, ObjectDriver, ObjectOptions, ObjectStorage, Restored, Start,
};

use super::script::{Script, Trap};
use super::verb::random_verb;
use super::weather::Weather;

const START_MS: i64 = 1_000_000;
pub const ENGINE: u8 = 0;
pub const USER: u8 = 1;

/// What a task came to.
pub enum Ended {
    /// An alarm that the platform waits for, or one that it does not know of.
    Alarm(Result<AlarmReport, AlarmError>, bool),
    Request(Result<Restored, AlarmError>),
}

struct Task {
    actor: u8,
    future: BoxFuture<'static, Ended>,
}

/// What happened in a history, so that one in which nothing does is noticed.
#[derive(Clone, Copy, Debug, Default)]
pub struct Seen {
    pub total: Counts,
    pub settled: Counts,
    pub alarms: u64,
    pub crashes: u64,
    pub turns_lost: u64,
    pub traps: u64,
    pub restored: u64,
    pub thrown: u64,
    pub given_up: u64,
    pub cancelled: u64,
}

impl Seen {
    pub fn add(&mut self, other: &Self) {
        self.total.add(&other.total);
        self.settled.add(&other.settled);
        self.alarms += other.alarms;
        self.crashes += other.crashes;
        self.turns_lost += other.turns_lost;
        self.traps += other.traps;
        self.restored += other.restored;
        self.thrown += other.thrown;
        self.given_up += other.given_up;
        self.cancelled += other.cancelled;
    }
}

pub struct History {
    pub seed: u64,
    pub(super) random: Random,
    pub(super) weather: Weather,
    pub(super) clock: ManualClock,
    pub(super) object: SimulatedObject,
    instance: Option<ObjectDriver>,
    starts: Start,
    budget: TickBudget,
    drain_ticks_max: u32,
    group_max: u16,
    tasks: Vec<Task>,
    trap: Trap,
    pub(super) partitions: Vec<Partition>,
    pub(super) ledger: Ledger,
    /// Whether the platform has lost the alarm or given it up, and nobody has looked since.
    pub(super) is_excused: bool,
    /// Whether the alarm failed and waits for its retry.
    pub(super) is_retrying: bool,
    pub(super) latest_ms: u64,
    pub(super) broken: Vec<String>,
    is_traced: bool,
    pub seen: Seen,
}

impl History {
    pub fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let weather = Weather::of(&mut random);
        let clock = ManualClock::new(START_MS);
        let object = SimulatedObject::new(Arc::new(clock.clone())).unwrap();
        object.storage().record_wakes(true);
        object
            .storage()
            .set_faults(weather.faults(random.next_u64()));
        let few = |random: &mut Random| random.pick(&[1, 2, 3, 8, 1_000]);
        let budget = TickBudget {
            max_fired: few(&mut random),
            max_per_kind: few(&mut random),
            max_scanned: few(&mut random),
            max_elapsed_ms: random.pick(&[1, 500, 30_000]),
        };
        let group_max = random.pick(&[1, 2, 8]);
        let drain_ticks_max = random.pick(&[1, 2, 16]);
        let names = ["p", "q", "r"];
        let partitions = names[..1 + random.below(3) as usize]
            .iter()
            .map(|name| Partition::new(*name).unwrap())
            .collect();
        Self {
            seed,
            random,
            weather,
            clock,
            object,
            instance: None,
            starts: Start::Fresh,
            budget,
            drain_ticks_max,
            group_max,
            tasks: Vec::new(),
            trap: Trap::default(),
            partitions,
            ledger: Ledger::default(),
            is_excused: false,
            is_retrying: false,
            latest_ms: 0,
            broken: Vec::new(),
            is_traced: std::env::var_os("DUELINE_TRACE").is_some(),
            seen: Seen::default(),
        }
    }

    /// Runs the history and what is left behind it to the end; every rule that was broken.
    pub fn run(&mut self) -> Vec<String> {
        for _ in 0..self.weather.steps {
            self.step();
        }
        self.quiesce();
        let mut broken = std::mem::take(&mut self.broken);
        broken.extend_from_slice(self.ledger.broken());
        for line in &mut broken {
            *line = format!("seed {}: {line}", self.seed);
        }
        broken
    }

    pub(super) fn now_ms(&self) -> u64 {
        self.clock.wall_ms() as u64
    }

    fn step(&mut self) {
        let drawn = self.random.below(100);
        self.trace(drawn);
        match drawn {
            0..56 => self.poll_one(),
            56..66 => self.sync(),
            66..76 => self.deliver_if_due(),
            76..86 => self.begin_request(),
            86..93 => {
                let by_ms = self.random.pick(&[1, 1, 7, 50, 300, 1_500, 9_000, 70_000]);
                self.advance(by_ms);
            }
            93..95 if self.weather.crashes => self.crash(),
            95 if self.weather.loses_alarms => {
                self.is_excused |= self.object.lose_alarm();
            }
            96..98 if self.weather.clock_steps => {
                let by_ms = self.random.pick(&[-5_000, -300, -1, 300, 20_000]);
                self.clock.jump_wall_ms(by_ms);
            }
            98 if self.weather.twice && self.tasks.iter().all(|task| task.actor == USER) => {
                self.begin_alarm(AlarmInfo::default(), false);
            }
            _ => self.poll_one(),
        }
        self.latest_ms = self.latest_ms.max(self.now_ms());
    }

    /// Shows each step if `DUELINE_TRACE` is set, for a seed that failed.
    fn trace(&self, drawn: u64) {
        if self.is_traced {
            println!(
                "step {drawn:2} at {}: stored {:?}, next {:?}, serving {}, un-synced {}, tasks {:?}, excused {}",
                self.now_ms(),
                self.object.storage().alarm_ms(),
                self.object.next_alarm_ms(),
                self.object.is_serving(),
                self.object.unsynced(),
                self.tasks.iter().map(|task| task.actor).collect::<Vec<_>>(),
                self.is_excused,
            );
        }
    }

    fn advance(&mut self, by_ms: u64) {
        self.clock.advance_ms(by_ms);
        self.latest_ms = self.latest_ms.max(self.now_ms());
    }

    fn poll_one(&mut self) {
        if self.tasks.is_empty() {
            return;
        }
        let place = self.random.below(self.tasks.len() as u64) as usize;
        self.poll(place);
    }

    /// One turn of one task.
    pub(super) fn poll(&mut self, place: usize) {
        let task = &mut self.tasks[place];
        self.object.storage().set_actor(task.actor);
        let polled = poll_once(task.future.as_mut());
        if self.trap.take() {
            return self.trapped();
        }
        self.object.end_turn().unwrap();
        self.check_alarm();
        if let Poll::Ready(ended) = polled {
            drop(self.tasks.remove(place));
            self.ended(ended);
        }
    }

    fn ended(&mut self, ended: Ended) {
        match ended {
            Ended::Request(Ok(restored)) => self.restored(restored),
            Ended::Request(Err(_)) => self.check_thrown(),
            Ended::Alarm(result, is_known) => {
                let end = match &result {
                    Ok(report) => {
                        self.check_budget(report);
                        self.seen.total.add(&report.total);
                        self.seen.settled.add(&report.settled);
                        AlarmEnd::Well
                    }
                    Err(_) => {
                        self.seen.thrown += 1;
                        self.check_thrown();
                        AlarmEnd::Failed
                    }
                };
                if is_known {
                    self.end_alarm(end);
                }
            }
        }
    }

    /// All partitions of a tick together do no more than one budget allows.
    fn check_budget(&mut self, report: &AlarmReport) {
        let most = u64::from(self.budget.max_fired);
        if report.total.progressed() > most * u64::from(report.ticks) {
            self.broken
                .push(format!("over its budget of {most}: {report:?}"));
        }
    }

    fn check_thrown(&mut self) {
        if !self.weather.has_storage_faults() {
            self.broken.push("an error without a fault".to_owned());
        }
    }

    fn restored(&mut self, restored: Restored) {
        if matches!(restored, Restored::Set { .. }) {
            self.seen.restored += 1;
        }
        self.excuse_until_set();
        self.check_alarm();
    }

    /// The excuse ends when the platform has an alarm again.
    fn excuse_until_set(&mut self) {
        self.is_excused &= self.object.next_alarm_ms().is_none();
    }

    fn end_alarm(&mut self, end: AlarmEnd) {
        let now_ms = self.now_ms();
        let records = self.object.alarm_ended(end, now_ms).unwrap();
        self.show(records);
        self.after_alarm(end != AlarmEnd::Well);
        self.check_alarm();
    }

    /// The platform has dealt with the end of an alarm.
    fn after_alarm(&mut self, failed: bool) {
        self.is_retrying = failed;
        if failed && self.object.next_alarm_ms().is_none() {
            self.seen.given_up += 1;
            self.is_excused = true;
        }
    }

    fn trapped(&mut self) {
        self.seen.traps += 1;
        let was_serving = self.object.is_serving();
        self.tasks.clear();
        self.instance = None;
        self.starts = if self.weather.tells_of_traps {
            Start::AfterTrap
        } else {
            Start::Fresh
        };
        self.object.trap(self.now_ms()).unwrap();
        if was_serving {
            self.after_alarm(true);
        }
        self.check_alarm();
    }

    /// The instance is gone, and some of its last turns.
    fn crash(&mut self) {
        if self.instance.is_none() {
            return;
        }
        self.seen.crashes += 1;
        let was_serving = self.object.is_serving();
        self.tasks.clear();
        self.instance = None;
        let unsynced = self.object.unsynced() as u64;
        let kept = self.random.below(unsynced + 1);
        self.seen.turns_lost += unsynced - kept;
        let records = self.object.crash(kept as usize, self.now_ms()).unwrap();
        self.show(records);
        if was_serving {
            self.after_alarm(true);
        }
        self.check_alarm();
    }

    pub(super) fn sync(&mut self) {
        let records = self.object.sync().unwrap();
        self.show(records);
        self.excuse_until_set();
        self.check_scheduler();
    }

    fn deliver_if_due(&mut self) {
        let Some(at_ms) = self.object.next_alarm_ms() else {
            return;
        };
        let early_ms = if self.weather.early { 3 } else { 0 };
        let is_due = self.now_ms() + self.random.below(early_ms + 1) >= at_ms;
        let is_put_off = self.weather.late && self.random.chance(60);
        if is_due && !is_put_off {
            self.deliver();
        }
    }

    pub(super) fn deliver(&mut self) {
        match self.object.deliver(self.now_ms()) {
            Delivery::Run(info) => {
                self.seen.alarms += 1;
                self.is_retrying = false;
                let scheduled_at_ms = info.scheduled_at_ms.filter(|_| self.weather.says_when);
                let info = AlarmInfo {
                    scheduled_at_ms,
                    ..info
                };
                self.begin_alarm(info, true);
            }
            Delivery::Cancelled => {
                self.seen.cancelled += 1;
                self.is_retrying = false;
            }
            Delivery::Nothing => {}
        }
    }

    fn begin_alarm(&mut self, info: AlarmInfo, is_known: bool) {
        let Some(driver) = self.instance() else {
            if is_known {
                self.end_alarm(AlarmEnd::Failed);
            }
            return;
        };
        self.spawn(ENGINE, async move {
            Ended::Alarm(driver.on_alarm(info).await, is_known)
        });
    }

    fn begin_request(&mut self) {
        if self.tasks.len() > 3 {
            return;
        }
        let Some(driver) = self.instance() else {
            return;
        };
        let partition =
            self.partitions[self.random.below(self.partitions.len() as u64) as usize].clone();
        let verb = random_verb(&mut self.random, &driver, partition, self.weather.traps);
        self.spawn(USER, async move {
            let restored = driver.restore().await;
            verb.await;
            Ended::Request(restored)
        });
    }

    pub(super) fn spawn(
        &mut self,
        actor: u8,
        future: impl Future<Output = Ended> + Send + 'static,
    ) {
        self.tasks.push(Task {
            actor,
            future: Box::pin(future),
        });
    }

    pub(super) fn tasks(&self) -> usize {
        self.tasks.len()
    }

    /// The instance; made, and its alarm looked at, if there is none. Nothing else runs meanwhile.
    pub(super) fn instance(&mut self) -> Option<ObjectDriver> {
        if let Some(instance) = &self.instance {
            return Some(instance.clone());
        }
        self.object.storage().set_actor(ENGINE);
        let entropy = SequenceEntropy::new(self.random.next_u64());
        let runtime = Runtime::new(
            Arc::new(self.clock.clone()),
            Arc::new(self.clock.clone()),
            Arc::new(entropy),
        );
        let script = Script {
            runtime: runtime.clone(),
            trap: self.trap.clone(),
        };
        let opened = ObjectDriver::open(
            Arc::new(self.object.storage().clone()) as Arc<dyn ObjectStorage>,
            runtime,
            script.registry(self.group_max),
            self.starts,
            ObjectOptions {
                budget: self.budget,
                calls_max: 3,
                stay_ms: 5_000,
                drain_ticks_max: self.drain_ticks_max,
                ..ObjectOptions::default()
            },
        );
        self.object.end_turn().unwrap();
        let Ok(driver) = opened else {
            self.check_thrown();
            return None;
        };
        self.starts = Start::Fresh;
        let constructing = driver.clone();
        let mut restore = Box::pin(async move { constructing.restore().await });
        let restored = loop {
            let polled = poll_once(restore.as_mut());
            self.object.end_turn().unwrap();
            if let Poll::Ready(restored) = polled {
                break restored;
            }
        };
        self.instance = Some(driver.clone());
        match restored {
            Ok(restored) => self.restored(restored),
            Err(_) => self.check_thrown(),
        }
        Some(driver)
    }
}

fn poll_once<F: Future + ?Sized>(future: Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}
