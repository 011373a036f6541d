//! One random history, told by its seed.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use dueline::kinds::ticket_expiry::{Counted, TICKET_EXPIRY, TicketId};
use dueline::rows::{TimerKey, class, class_end, class_start};
use dueline::runtime::Clock;
use dueline::store::{Partition, ReadStore, ScanRange};
use dueline::timers::{ClaimedCall, TickBudget, run_due};
use dueline_testkit::model::{Arena, Mishap, Random, Source, Tasks};
use dueline_testkit::{ManualClock, block_on};

use super::checker::{Checker, rows_in};
use super::client::{Request, Told};
use super::process::{Aborted, Process};

const START_MS: i64 = 1_000_000;
const DRIVERS: usize = 2;
const CLIENTS: usize = 2;

enum Ended {
    Tick(Vec<ClaimedCall>),
    Told(Told),
    Settled,
}

struct History {
    arena: Arc<Arena>,
    random: Random,
    partition: Partition,
    clock: ManualClock,
    /// Two drivers, then two clients.
    processes: Vec<Process>,
    tasks: Tasks<Ended>,
    checker: Arc<Mutex<Checker>>,
    known: Vec<TicketId>,
    told: Vec<Told>,
    aborted: Aborted,
    has_sessions: bool,
    damages: bool,
    crashes: bool,
    clock_steps: bool,
}

/// What a history came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// Every rule that was broken.
    pub broken: Vec<String>,
    /// How many tickets ended in which way.
    pub ends: BTreeMap<String, u64>,
    /// How many tickets had their session aborted.
    pub aborted: u64,
    /// How often a ticket was found set aside after a commit.
    pub set_aside: u64,
}

impl Seen {
    /// Adds what another history came to.
    pub fn add(&mut self, other: Self) {
        self.broken.extend(other.broken);
        for (end, count) in other.ends {
            *self.ends.entry(end).or_default() += count;
        }
        self.aborted += other.aborted;
        self.set_aside += other.set_aside;
    }
}

/// Runs the history of a seed to its end.
pub fn run(seed: u64) -> Seen {
    let mut history = History::new(seed);
    let steps = 100 + history.random.below(400);
    for _ in 0..steps {
        history.step();
    }
    history.quiesce();
    history.check_told();
    let checker = history.checker.lock().unwrap();
    let mut seen = Seen {
        aborted: history.aborted.lock().unwrap().len() as u64,
        set_aside: checker.set_aside,
        ..Seen::default()
    };
    for rule in &checker.broken {
        seen.broken.push(format!("seed {seed}: {rule}"));
    }
    for end in checker.ended.values() {
        *seen.ends.entry(end.clone()).or_default() += 1;
    }
    seen
}

impl History {
    fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let clock = ManualClock::new(START_MS);
        let arena = Arena::new(&clock);
        let mishaps: Vec<_> = [
            Mishap::Unavailable,
            Mishap::Full,
            Mishap::UnknownWritten,
            Mishap::UnknownNotWritten,
            Mishap::UnknownLate,
        ]
        .into_iter()
        .filter(|_| random.chance(50))
        .collect();
        if !mishaps.is_empty() {
            let per_mille = random.pick(&[0, 5, 20, 80]);
            arena.fail_calls(random.next_u64(), per_mille, &mishaps);
        }
        if random.chance(30) {
            arena.shorten_pages(random.next_u64(), 30);
        }
        let checker = Arc::new(Mutex::new(Checker::new()));
        let (watched, memory) = (Arc::clone(&checker), Arc::clone(arena.memory()));
        arena.watch(move |commit| {
            if commit.batch.is_some() {
                let rows = rows_in(&memory, commit.partition);
                watched.lock().unwrap().committed(&rows, commit.now_ms);
            }
        });
        let mut history = Self {
            partition: Partition::new("p").unwrap(),
            clock,
            processes: Vec::new(),
            tasks: Tasks::new(),
            checker,
            known: Vec::new(),
            told: Vec::new(),
            aborted: Arc::default(),
            has_sessions: random.chance(50),
            damages: random.chance(40),
            crashes: random.chance(50),
            clock_steps: random.chance(30),
            arena,
            random,
        };
        for index in 0..DRIVERS + CLIENTS {
            let skew_ms = history.random.pick(&[0, 0, 0, 400, -400, 60_000, -60_000]);
            let process = history.process(index, ManualClock::new(START_MS + skew_ms));
            history.processes.push(process);
        }
        history
    }

    fn process(&mut self, index: usize, clock: ManualClock) -> Process {
        let source = if index < DRIVERS {
            Source::Engine
        } else {
            Source::User
        };
        let seed = self.random.next_u64();
        let group_max = self.random.pick(&[1, 2, 8, 64]);
        let aborted = self.has_sessions.then_some(&self.aborted);
        Process::new(&self.arena, (source, seed), clock, group_max, aborted)
    }

    fn step(&mut self) {
        match self.random.below(100) {
            0..76 => (0..4).for_each(|_| self.poll_one()),
            76..82 => self.begin_tick(),
            82..93 => self.begin_request(),
            93..95 => {
                let by_ms = self.random.pick(&[1, 50, 200, 700, 3_000, 61_000]);
                self.advance(by_ms);
            }
            95..96 => drop(self.arena.land_late()),
            96..98 if self.crashes => self.crash(),
            98..100 if self.clock_steps => self.step_a_clock(),
            _ => self.poll_one(),
        }
    }

    fn poll_one(&mut self) {
        let place = self.random.below(self.tasks.len() as u64);
        match self.tasks.step(usize::try_from(place).unwrap()) {
            Some((owner, Ended::Tick(calls))) => {
                for call in calls {
                    let engine = self.processes[owner].engine.clone();
                    self.tasks.spawn(owner, async move {
                        engine.settle(call.run().await).await;
                        Ended::Settled
                    });
                }
            }
            Some((_, Ended::Told(told))) => {
                if let Told::Opened(id) = told {
                    self.known.push(id);
                }
                self.told.push(told);
            }
            Some((_, Ended::Settled)) | None => {}
        }
    }

    fn begin_tick(&mut self) {
        let owner = usize::try_from(self.random.below(DRIVERS as u64)).unwrap();
        if self.tasks.of(owner) > 6 {
            return;
        }
        let budget = TickBudget {
            max_fired: self.random.pick(&[1, 3, 1_000]),
            ..TickBudget::default()
        };
        let (engine, partition) = (self.processes[owner].engine.clone(), self.partition.clone());
        self.tasks.spawn(owner, async move {
            Ended::Tick(run_due(&engine, &partition, budget).await.calls)
        });
    }

    fn begin_request(&mut self) {
        let owner = DRIVERS + usize::try_from(self.random.below(CLIENTS as u64)).unwrap();
        if self.tasks.of(owner) > 2 {
            return;
        }
        let request = Request::random(&mut self.random, &self.known, self.damages);
        let asked = request.send(
            self.processes[owner].tickets.clone(),
            self.partition.clone(),
        );
        self.tasks
            .spawn(owner, async move { Ended::Told(asked.await) });
    }

    fn advance(&mut self, by_ms: u64) {
        self.clock.advance_ms(by_ms);
        for process in &self.processes {
            process.clock.advance_ms(by_ms);
        }
    }

    /// The store's clock goes forward alone: what it has seen as expired stays so.
    fn step_a_clock(&mut self) {
        let by_ms: i64 = self.random.pick(&[-5_000, -300, 300, 20_000]);
        match usize::try_from(self.random.below(5)).unwrap() {
            4 => self.clock.jump_wall_ms(by_ms.abs()),
            index => self.processes[index].clock.jump_wall_ms(by_ms),
        }
    }

    fn crash(&mut self) {
        let owner = usize::try_from(self.random.below(4)).unwrap();
        self.tasks.drop_all_of(owner);
        let clock = self.processes[owner].clock.clone();
        self.processes[owner] = self.process(owner, clock);
    }

    /// Nothing goes wrong any more: everything ends, what was damaged is mended, time passes.
    fn quiesce(&mut self) {
        self.arena.heal();
        if self.random.chance(50) {
            while self.arena.land_late() {}
        }
        if self.random.chance(50) {
            self.tasks.drop_all_of(0);
            self.tasks.drop_all_of(1);
        }
        for _ in 0..20_000 {
            if self.tasks.is_empty() {
                break;
            }
            self.poll_one();
            if self.random.chance(1) {
                self.advance(500);
            }
        }
        self.arena.drop_late();
        let clocks = self.processes.iter().map(|process| &process.clock);
        let now_ms = clocks.chain([&self.clock]).map(Clock::wall_ms).max();
        for clock in self.processes.iter().map(|process| &process.clock) {
            clock.set_wall_ms(now_ms.unwrap());
        }
        self.clock.set_wall_ms(now_ms.unwrap());
        let tickets = self.processes[DRIVERS].tickets.clone();
        let resources = ["seat", "stall"].map(|name| Counted::Resource(name.into()));
        let actors = ["alice", "bob"].map(|name| Counted::Actor(name.into()));
        for counted in resources.into_iter().chain(actors) {
            let recounted = block_on(tickets.recount(&self.partition, &counted));
            assert!(recounted.is_ok(), "{recounted:?}");
        }
        for _ in 0..400 {
            if !self.work_off_once() {
                break;
            }
        }
        let rows = rows_in(self.arena.memory(), &self.partition);
        self.checker.lock().unwrap().check_quiet(&rows);
    }

    /// Goes on to the next timer and fires what is due; false if none is left.
    fn work_off_once(&mut self) -> bool {
        let range = ScanRange::new(class_start(class::TIMER), class_end(class::TIMER), 4_000);
        let page = block_on(self.arena.memory().scan(&self.partition, &range)).unwrap();
        let mut keys = page
            .rows
            .iter()
            .map(|(key, _)| TimerKey::decode(key).unwrap());
        let Some(first) = keys.find(|key| key.kind == TICKET_EXPIRY) else {
            return false;
        };
        let now_ms = u64::try_from(self.clock.wall_ms()).unwrap();
        self.advance(first.due_ms.saturating_sub(now_ms));
        let engine = &self.processes[0].engine;
        let tick = block_on(run_due(engine, &self.partition, TickBudget::default()));
        for call in tick.calls {
            let finished = block_on(call.run());
            block_on(engine.settle(finished));
        }
        true
    }

    /// What clients were told has come about, and no ticket that was used had its session aborted.
    fn check_told(&mut self) {
        let mut checker = self.checker.lock().unwrap();
        let aborted = self.aborted.lock().unwrap();
        checker.check_told(&self.told, &aborted, self.has_sessions);
    }
}
