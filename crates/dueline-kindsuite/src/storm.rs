//! Random histories of a kind: two processes that run its timers and a client that uses it, over one store
//! in memory, stepped between any two calls of the store. Processes crash, commits are in doubt or come
//! late, calls fail, clocks are stepped and apart. A history is its seed.

use std::fmt;
use std::sync::{Arc, Mutex};

use dueline::rows::{TimerKey, class, class_end, class_start};
use dueline::runtime::{Clock, Runtime};
use dueline::store::{NamespaceStore, Partition, ReadStore, ScanRange};
use dueline::timers::{ClaimedCall, Engine, Registry, TickBudget, Timers, run_due};
use dueline_testkit::model::{Arena, Mishap, Random, Source, Tasks};
use dueline_testkit::{ManualClock, SequenceEntropy, block_on};

use crate::scenario::Watched;
pub use crate::scenario::{Ask, Change, Rows, Scenario, Tally};

/// When a history begins, in milliseconds since 1970.
pub const START_MS: u64 = 1_000_000_000;
const PROCESSES: usize = 2;
const CLIENT: usize = PROCESSES;

/// What goes wrong; all of it follows from the seed.
#[derive(Debug)]
struct Weather {
    crashes: bool,
    clock_steps: bool,
    skews_ms: [i64; PROCESSES + 1],
    steps: u64,
}

struct Process {
    clock: ManualClock,
    engine: Engine,
}

enum Ended {
    Tick(usize, Vec<ClaimedCall>),
    Other,
}

/// One history.
pub struct Storm {
    arena: Arc<Arena>,
    random: Random,
    weather: Weather,
    partitions: Vec<Partition>,
    clock: ManualClock,
    client_clock: ManualClock,
    client: Timers,
    processes: Vec<Process>,
    tasks: Tasks<Ended>,
    watched: Arc<Mutex<Watched>>,
    seed: u64,
}

impl fmt::Debug for Storm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Storm")
            .field("seed", &self.seed)
            .field("weather", &self.weather)
            .finish_non_exhaustive()
    }
}

/// Plays these many histories from seed 0 on, or those that `DUELINE_FIRST_SEED` and `DUELINE_HISTORIES`
/// ask for, and panics with what was broken.
pub fn play<S: Scenario + 'static>(usual: u64, scenario: impl Fn() -> S) {
    let asked = |name: &str| std::env::var(name).ok()?.parse::<u64>().ok();
    let first = asked("DUELINE_FIRST_SEED").unwrap_or(0);
    let count = asked("DUELINE_HISTORIES").unwrap_or(usual);
    for seed in first..first + count {
        let broken = Storm::new(seed, scenario()).run();
        assert!(broken.is_empty(), "seed {seed}: {broken:#?}");
    }
}

impl Storm {
    pub fn new(seed: u64, scenario: impl Scenario + 'static) -> Self {
        let mut random = Random::new(seed);
        let clock = ManualClock::new(i64::try_from(START_MS).unwrap());
        let arena = Arena::new(&clock);
        let weather = weather(&mut random, &arena);
        let partitions = scenario.partitions();
        if scenario.has_short_pages() && random.chance(40) {
            arena.shorten_pages(random.next_u64(), 30);
        }
        let watched = Arc::new(Mutex::new(Watched::new(Box::new(scenario))));
        let watcher = Arc::clone(&watched);
        arena.watch(move |committed| {
            if let Some(batch) = committed.batch {
                let (source, partition) = (committed.source, committed.partition);
                let mut watched = watcher.lock().unwrap();
                watched.committed(source, partition, batch, committed.now_ms);
            }
        });
        let client_clock = clock_at(weather.skews_ms[CLIENT]);
        let client = timers_of(&arena, Source::User, &client_clock, random.next_u64());
        let mut storm = Self {
            arena,
            partitions,
            clock,
            client_clock,
            client,
            processes: Vec::new(),
            tasks: Tasks::new(),
            watched,
            seed,
            random,
            weather,
        };
        for index in 0..PROCESSES {
            let clock = clock_at(storm.weather.skews_ms[index]);
            let process = storm.start(clock);
            storm.processes.push(process);
        }
        storm
    }

    /// Plays it to its end; what was broken.
    pub fn run(mut self) -> Vec<String> {
        for _ in 0..self.weather.steps {
            self.step();
        }
        self.calm_down();
        self.watched.lock().unwrap().conclude()
    }

    fn start(&mut self, clock: ManualClock) -> Process {
        let timers = timers_of(&self.arena, Source::Engine, &clock, self.random.next_u64());
        let mut registry = Registry::new();
        for (kind, registration) in self.watched.lock().unwrap().scenario.kinds(&timers) {
            registry.register(kind, registration).unwrap();
        }
        let engine = Engine::new(
            Arc::clone(timers.store()),
            timers.runtime().clone(),
            registry,
        );
        Process { clock, engine }
    }

    fn step(&mut self) {
        match self.random.below(100) {
            0..76 => self.poll_one(),
            76..83 => self.begin_tick(),
            83..91 => self.begin_ask(),
            91..95 => {
                let by_ms = self
                    .random
                    .pick(&[1, 50, 200, 700, 3_000, 3_000, 11_000, 31_000]);
                self.advance(by_ms);
            }
            95 => {
                self.arena.land_late();
            }
            96..98 if self.weather.crashes => self.crash(),
            98..100 if self.weather.clock_steps => self.step_a_clock(),
            _ => self.poll_one(),
        }
    }

    fn poll_one(&mut self) {
        let place = usize::try_from(self.random.below(self.tasks.len() as u64)).unwrap();
        if let Some((_, Ended::Tick(index, calls))) = self.tasks.step(place) {
            for call in calls {
                let engine = self.processes[index].engine.clone();
                self.tasks.spawn(index, async move {
                    let _counts = engine.settle(call.run().await).await;
                    Ended::Other
                });
            }
        }
    }

    fn begin_tick(&mut self) {
        let index = usize::try_from(self.random.below(PROCESSES as u64)).unwrap();
        if self.tasks.of(index) < 6 {
            let engine = self.processes[index].engine.clone();
            let tick = tick(index, engine, self.draw_partition());
            self.tasks.spawn(index, tick);
        }
    }

    fn begin_ask(&mut self) {
        if self.tasks.of(CLIENT) < 4 {
            let partition = self.draw_partition();
            let mut watched = self.watched.lock().unwrap();
            let ask = watched
                .scenario
                .ask(&mut self.random, &self.client, &partition);
            drop(watched);
            self.tasks.spawn(CLIENT, async move {
                ask.await;
                Ended::Other
            });
        }
    }

    fn draw_partition(&mut self) -> Partition {
        match self.partitions.as_slice() {
            [only] => only.clone(),
            several => {
                let index = self.random.below(several.len() as u64);
                several[usize::try_from(index).unwrap()].clone()
            }
        }
    }

    fn advance(&self, by_ms: u64) {
        self.clock.advance_ms(by_ms);
        self.client_clock.advance_ms(by_ms);
        for process in &self.processes {
            process.clock.advance_ms(by_ms);
        }
    }

    fn clocks(&self) -> Vec<&ManualClock> {
        let processes = self.processes.iter().map(|process| &process.clock);
        [&self.clock, &self.client_clock]
            .into_iter()
            .chain(processes)
            .collect()
    }

    fn step_a_clock(&mut self) {
        let by_ms = self.random.pick(&[-20_000, -900, 900, 20_000]);
        let index = usize::try_from(self.random.below(2 + PROCESSES as u64)).unwrap();
        self.clocks()[index].jump_wall_ms(by_ms);
    }

    /// A process dies between two calls and is started again.
    fn crash(&mut self) {
        let index = usize::try_from(self.random.below(PROCESSES as u64)).unwrap();
        self.tasks.drop_all_of(index);
        let clock = self.processes[index].clock.clone();
        self.processes[index] = self.start(clock);
    }

    /// Nothing goes wrong any more: what is under way ends, and what is there is worked off.
    fn calm_down(&mut self) {
        self.arena.heal();
        while self.random.chance(50) && self.arena.land_late() {}
        self.arena.drop_late();
        for round in 0.. {
            assert!(round < 50_000, "seed {}: tasks that never end", self.seed);
            if self.tasks.is_empty() {
                break;
            }
            self.poll_one();
            if self.random.chance(1) {
                self.advance(500);
            }
        }
        self.watched.lock().unwrap().scenario.calm();
        let latest = self.clocks().into_iter().map(Clock::wall_ms).max().unwrap();
        for clock in self.clocks() {
            clock.set_wall_ms(latest);
        }
        for partition in &self.partitions {
            let mut watched = self.watched.lock().unwrap();
            let mend = watched.scenario.mend(&self.client, partition);
            drop(watched);
            if let Some(mend) = mend {
                block_on(mend);
            }
        }
        for _ in 0..400 * self.partitions.len() {
            if !self.work_off_once() {
                return;
            }
        }
        panic!("seed {}: timers that never end", self.seed);
    }

    /// Runs the first process at the first due of one of its kinds.
    fn work_off_once(&mut self) -> bool {
        let engine = self.processes[0].engine.clone();
        let dues = self.partitions.iter().map(|partition| {
            let due_ms = self.first_due_ms(&engine, partition)?;
            Some((due_ms, partition.clone()))
        });
        let Some((due_ms, partition)) = dues.flatten().min() else {
            return false;
        };
        let now_ms = engine.runtime().now_ms();
        self.advance(due_ms.saturating_sub(now_ms));
        if let Ended::Tick(_, calls) = block_on(tick(0, engine.clone(), partition)) {
            for call in calls {
                let _counts = block_on(async { engine.settle(call.run().await).await });
            }
        }
        true
    }

    /// The first timer of a kind that has a handler.
    fn first_due_ms(&self, engine: &Engine, partition: &Partition) -> Option<u64> {
        let mut range = ScanRange::new(class_start(class::TIMER), class_end(class::TIMER), 4_096);
        let mut first = None;
        loop {
            let page = block_on(self.arena.memory().scan(partition, &range)).unwrap();
            for (key, _) in page.rows {
                let key = TimerKey::decode(&key).unwrap();
                if engine.registry().get(key.kind).is_some() {
                    first = Some(first.unwrap_or(u64::MAX).min(key.due_ms));
                }
            }
            range.after = page.next;
            if range.after.is_none() {
                return first;
            }
        }
    }
}

fn weather(random: &mut Random, arena: &Arena) -> Weather {
    let all = [
        Mishap::Unavailable,
        Mishap::Full,
        Mishap::UnknownWritten,
        Mishap::UnknownNotWritten,
        Mishap::UnknownLate,
    ];
    let mishaps: Vec<Mishap> = all.into_iter().filter(|_| random.chance(50)).collect();
    let per_mille = random.pick(&[0, 5, 20, 80, 200]);
    if !mishaps.is_empty() {
        arena.fail_calls(random.next_u64(), per_mille, &mishaps);
    }
    let skews = [0, 0, 0, 700, -700, 4_000, -4_000, 60_000, -60_000];
    Weather {
        crashes: random.chance(50),
        clock_steps: random.chance(30),
        skews_ms: [(); PROCESSES + 1].map(|()| random.pick(&skews)),
        steps: 300 + random.below(1_200),
    }
}

fn clock_at(skew_ms: i64) -> ManualClock {
    ManualClock::new(i64::try_from(START_MS).unwrap() + skew_ms)
}

fn timers_of(arena: &Arc<Arena>, source: Source, clock: &ManualClock, seed: u64) -> Timers {
    let runtime = Runtime::new(
        Arc::new(clock.clone()),
        Arc::new(clock.clone()),
        Arc::new(SequenceEntropy::new(seed)),
    );
    let store = arena.actor(source) as Arc<dyn NamespaceStore>;
    Timers::new(store, runtime)
}

async fn tick(index: usize, engine: Engine, partition: Partition) -> Ended {
    let tick = run_due(&engine, &partition, TickBudget::default()).await;
    Ended::Tick(index, tick.calls)
}
