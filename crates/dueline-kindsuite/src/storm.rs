//! Random histories of a kind: two processes that run its timers and a client that uses it, over one store
//! in memory, stepped between any two calls of the store. Processes crash, commits are in doubt or come
//! late, calls fail, clocks are stepped and apart. A history is its seed.

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};

use dueline::rows::{TimerKey, class, class_end, class_start};
use dueline::runtime::{Clock, Runtime};
use dueline::store::{Batch, Key, NamespaceStore, Partition, ReadStore, ScanRange, Value, Write};
use dueline::timers::{
    ClaimedCall, Engine, Registration, Registry, TickBudget, TimerKind, Timers, run_due,
};
use dueline_testkit::model::{Arena, Committed, Mishap, Random, Source, Tasks};
use dueline_testkit::{ManualClock, SequenceEntropy, block_on};

/// When a history begins, in milliseconds since 1970.
pub const START_MS: u64 = 1_000_000_000;
const PROCESSES: usize = 2;
const CLIENT: usize = PROCESSES;

/// What the client asks for, as a task.
pub type Ask = Pin<Box<dyn Future<Output = ()>>>;

/// How often each thing has happened in all histories together: a rule that never had a case shows
/// nothing.
#[derive(Clone, Debug, Default)]
pub struct Tally(Arc<Mutex<BTreeMap<&'static str, u64>>>);

impl Tally {
    pub fn count(&self, what: &'static str) {
        *self.0.lock().unwrap().entry(what).or_default() += 1;
    }

    /// Panics unless each of these has happened this often.
    #[track_caller]
    pub fn assert_at_least(&self, least: u64, what: &[&'static str]) {
        let counted = self.0.lock().unwrap();
        for what in what {
            let times = counted.get(what).copied().unwrap_or(0);
            assert!(times >= least, "{what}: {times} times only, {counted:?}");
        }
    }
}

/// The rows of a partition that are not the engine's.
pub type Rows = BTreeMap<Key, Value>;

/// A kind under a storm.
pub trait Scenario {
    /// Where it happens; more than one for a kind that reaches over partitions.
    fn partitions(&self) -> Vec<Partition> {
        vec![Partition::new("p").unwrap()]
    }

    /// The kinds of a process, over its own timers.
    fn kinds(&self, timers: &Timers) -> Vec<(TimerKind, Registration)>;

    /// Whether some pages are short, as the contract allows.
    fn has_short_pages(&self) -> bool {
        false
    }

    /// Something for the client to ask for next.
    fn ask(&mut self, random: &mut Random, client: &Timers, partition: &Partition) -> Ask;

    /// Judges one commit, given every row of the partition as it was before; what is wrong with it.
    fn judge(&mut self, change: &Change<'_>) -> Vec<String>;

    /// Nothing goes wrong any more and nothing is asked for: what has to be so that everything ends.
    fn calm(&mut self) {}

    /// Judges what is left when all timers of the kinds have ended; what is wrong with it.
    fn judge_end(&mut self, rows: &Rows) -> Vec<String>;

    /// The same for all partitions together.
    fn judge_end_of_all(&mut self, all: &BTreeMap<Partition, Rows>) -> Vec<String> {
        let empty = Rows::new();
        let partitions = self.partitions();
        let rows = partitions.iter().map(|of| all.get(of).unwrap_or(&empty));
        rows.flat_map(|rows| self.judge_end(rows)).collect()
    }
}

/// A batch that was committed.
#[derive(Debug)]
pub struct Change<'a> {
    pub source: Source,
    pub now_ms: u64,
    pub partition: &'a Partition,
    pub before: &'a Rows,
    pub after: &'a Rows,
    /// Every partition as it is afterwards.
    pub all: &'a BTreeMap<Partition, Rows>,
    /// The timers of the partition as they are afterwards.
    pub timers: &'a Rows,
    pub batch: &'a Batch,
}

impl Change<'_> {
    /// The keys that changed, with their values before and after.
    pub fn of_prefix(&self, prefix: &[u8]) -> Vec<(Key, Option<Value>, Option<Value>)> {
        let mut keys: Vec<&Key> = self.before.keys().chain(self.after.keys()).collect();
        keys.retain(|key| key.starts_with(prefix));
        keys.sort();
        keys.dedup();
        keys.into_iter()
            .map(|key| {
                let (before, after) = (self.before.get(key), self.after.get(key));
                (key.clone(), before.cloned(), after.cloned())
            })
            .filter(|(_, before, after)| before != after)
            .collect()
    }
}

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

/// What the watcher of the store keeps.
struct Watched<S> {
    scenario: S,
    all: BTreeMap<Partition, Rows>,
    timers: BTreeMap<Partition, Rows>,
    broken: Vec<String>,
}

/// One history.
pub struct Storm<S> {
    arena: Arc<Arena>,
    random: Random,
    weather: Weather,
    partitions: Vec<Partition>,
    clock: ManualClock,
    client_clock: ManualClock,
    client: Timers,
    processes: Vec<Process>,
    tasks: Tasks<Ended>,
    watched: Arc<Mutex<Watched<S>>>,
    seed: u64,
}

impl<S> fmt::Debug for Storm<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Storm")
            .field("seed", &self.seed)
            .field("weather", &self.weather)
            .finish_non_exhaustive()
    }
}

/// Plays these many histories from seed 0 on, or those that `DUELINE_FIRST_SEED` and `DUELINE_HISTORIES`
/// ask for, and panics with what was broken.
pub fn play<S: Scenario + Send + 'static>(usual: u64, scenario: impl Fn() -> S) {
    let asked = |name: &str| std::env::var(name).ok()?.parse::<u64>().ok();
    let first = asked("DUELINE_FIRST_SEED").unwrap_or(0);
    let count = asked("DUELINE_HISTORIES").unwrap_or(usual);
    for seed in first..first + count {
        let broken = Storm::new(seed, scenario()).run();
        assert!(broken.is_empty(), "seed {seed}: {broken:#?}");
    }
}

impl<S: Scenario + Send + 'static> Storm<S> {
    pub fn new(seed: u64, scenario: S) -> Self {
        let mut random = Random::new(seed);
        let clock = ManualClock::new(i64::try_from(START_MS).unwrap());
        let arena = Arena::new(&clock);
        let weather = weather(&mut random, &arena);
        let partitions = scenario.partitions();
        if scenario.has_short_pages() && random.chance(40) {
            arena.shorten_pages(random.next_u64(), 30);
        }
        let watched = Arc::new(Mutex::new(Watched {
            scenario,
            all: BTreeMap::new(),
            timers: BTreeMap::new(),
            broken: Vec::new(),
        }));
        let watcher = Arc::clone(&watched);
        arena.watch(move |committed| watcher.lock().unwrap().see(committed));
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
        let mut watched = self.watched.lock().unwrap();
        let mut broken = std::mem::take(&mut watched.broken);
        let all = watched.all.clone();
        broken.extend(watched.scenario.judge_end_of_all(&all));
        broken
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

impl<S: Scenario> Watched<S> {
    fn see(&mut self, committed: &Committed<'_>) {
        let Some(batch) = committed.batch else {
            return;
        };
        let rows = self.all.entry(committed.partition.clone()).or_default();
        let before = rows.clone();
        write(rows, batch, |key| {
            key.get(1) != Some(&0) || key.first() == Some(&class::BUILT_IN)
        });
        let timers = self.timers.entry(committed.partition.clone()).or_default();
        write(timers, batch, |key| key.starts_with(&[class::TIMER, 0]));
        let change = Change {
            source: committed.source,
            now_ms: committed.now_ms,
            partition: committed.partition,
            before: &before,
            after: &self.all[committed.partition],
            all: &self.all,
            timers,
            batch,
        };
        let broken = self.scenario.judge(&change);
        self.broken.extend(broken);
    }
}

/// Writes what a batch does to some of the keys.
fn write(rows: &mut Rows, batch: &Batch, is_of: impl Fn(&Key) -> bool) {
    for write in &batch.writes {
        if !is_of(write.key()) {
            continue;
        }
        match write {
            Write::Put(key, value) => rows.insert(key.clone(), value.clone()),
            Write::Delete(key) => rows.remove(key),
        };
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
