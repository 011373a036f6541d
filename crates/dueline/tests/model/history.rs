//! One random history: two drivers and a client over one store, stepped between their store calls.

use std::sync::Arc;

use dueline::rows::TimerKey;
use dueline::runtime::{Clock, Runtime};
use dueline::store::{Batch, NamespaceStore, Partition, WakeStore};
use dueline::store::{LaneWake, Wake};
use dueline::timers::{
    ClaimedCall, Counts, Engine, KindSet, Policy, Registration, Registry, RetryPolicy, Tick,
    TickBudget, TickRequest, Timer, TimerKind, Timers,
};
use dueline_testkit::model::{ActorStore, Arena, Mishap, Random, Source, Tasks};
use dueline_testkit::{ManualClock, SequenceEntropy, block_on};

use super::script::{KINDS, REFERENCES, Script, random_payload};

pub const START_MS: i64 = 1_000_000;
const CLIENT: usize = 2;

/// What a history is made of; all of it follows from the seed.
#[derive(Clone, Debug)]
pub struct Weather {
    pub mishaps: Vec<Mishap>,
    pub per_mille: u64,
    pub crashes: bool,
    pub clock_steps: bool,
    pub skew_ms: [i64; 2],
    pub steps: u64,
}

impl Weather {
    pub fn of(random: &mut Random) -> Self {
        let all = [
            Mishap::Unavailable,
            Mishap::Full,
            Mishap::UnknownWritten,
            Mishap::UnknownNotWritten,
            Mishap::UnknownLate,
        ];
        let mishaps = all.into_iter().filter(|_| random.chance(50)).collect();
        let skews = [0, 0, 0, 2_000, -2_000, 60_000, -60_000];
        Self {
            mishaps,
            per_mille: random.pick(&[0, 5, 20, 80, 200]),
            crashes: random.chance(50),
            clock_steps: random.chance(30),
            skew_ms: [random.pick(&skews), random.pick(&skews)],
            steps: 100 + random.below(500),
        }
    }
}

enum Ended {
    Tick(Tick, TickBudget),
    Other,
}

struct Driver {
    store: Arc<ActorStore>,
    clock: ManualClock,
    engine: Engine,
    cautious_until_ms: Option<u64>,
    group_max: u16,
}

pub fn policy() -> RetryPolicy {
    RetryPolicy {
        attempts_max: Some(4),
        initial_ms: 400,
        max_ms: 3_000,
        jitter_percent: 20,
    }
}

/// Three inline kinds of different group sizes and a detached one.
pub fn registry(runtime: &Runtime, group_max: u16, policy: RetryPolicy) -> Registry {
    let script = || Script {
        runtime: runtime.clone(),
    };
    let mut registry = Registry::new();
    let sizes = [group_max, (group_max / 2).max(1), 1];
    for (kind, size) in KINDS.into_iter().zip(sizes) {
        let inline = Registration::inline(script()).group_max(size).retry(policy);
        registry.register(kind, inline).unwrap();
    }
    let detached = Registration::detached(script())
        .concurrency(3)
        .deadline_ms(2_000)
        .retry(policy);
    registry.register(KINDS[3], detached).unwrap();
    registry
}

impl Driver {
    fn new(arena: &Arc<Arena>, clock: ManualClock, seed: u64, group_max: u16) -> Self {
        let store = arena.actor(Source::Engine);
        let runtime = Runtime::new(
            Arc::new(clock.clone()),
            Arc::new(clock.clone()),
            Arc::new(SequenceEntropy::new(seed)),
        );
        let registry = registry(&runtime, group_max, policy());
        let as_store = Arc::clone(&store) as Arc<dyn NamespaceStore>;
        Self {
            engine: Engine::new(as_store, runtime, registry),
            store,
            clock,
            cautious_until_ms: None,
            group_max,
        }
    }

    fn tick(
        &self,
        partition: &Partition,
        budget: TickBudget,
        by_wakes: bool,
    ) -> impl Future<Output = Ended> + use<> {
        let (engine, store) = (self.engine.clone(), Arc::clone(&self.store));
        let (partition, cautious_until_ms) = (partition.clone(), self.cautious_until_ms);
        async move {
            let mut kinds: KindSet = engine.slots().runnable(&engine.registry().kinds());
            kinds.insert(TimerKind::INVALID);
            let mut wakes = Vec::new();
            if by_wakes {
                let now_ms = engine.runtime().now_ms();
                let Ok(page) = store.due_wakes(&kinds, now_ms, None, 64).await else {
                    return Ended::Other;
                };
                wakes = page.wakes.iter().map(lane_wake).collect();
                if wakes.is_empty() {
                    return Ended::Other;
                }
            }
            let request = TickRequest {
                partition: &partition,
                wakes: by_wakes.then_some(wakes.as_slice()),
                cautious_until_ms,
            };
            let mut state = engine.start_tick(budget);
            Ended::Tick(engine.tick(request, &mut state).await, budget)
        }
    }
}

fn lane_wake(wake: &Wake) -> LaneWake {
    LaneWake {
        kind: wake.kind,
        at_ms: wake.at_ms,
    }
}

pub struct History {
    pub arena: Arc<Arena>,
    random: Random,
    weather: Weather,
    partition: Partition,
    clock: ManualClock,
    client_clock: ManualClock,
    client: Timers,
    drivers: Vec<Driver>,
    tasks: Tasks<Ended>,
    seed: u64,
    broken: Vec<String>,
    /// What every tick together did.
    pub seen: Counts,
}

impl History {
    pub fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let weather = Weather::of(&mut random);
        let clock = ManualClock::new(START_MS);
        let arena = Arena::new(&clock);
        if !weather.mishaps.is_empty() {
            arena.fail_calls(random.next_u64(), weather.per_mille, &weather.mishaps);
        }
        let drivers = (0..2)
            .map(|index| {
                let clock = ManualClock::new(START_MS + weather.skew_ms[index]);
                let group_max = random.pick(&[1, 2, 3, 8, 64]);
                Driver::new(&arena, clock, random.next_u64(), group_max)
            })
            .collect();
        let client_clock = ManualClock::new(START_MS);
        let client = Timers::new(
            arena.actor(Source::User) as Arc<dyn NamespaceStore>,
            Runtime::new(
                Arc::new(client_clock.clone()),
                Arc::new(client_clock.clone()),
                Arc::new(SequenceEntropy::new(random.next_u64())),
            ),
        );
        Self {
            arena,
            random,
            weather,
            partition: Partition::new("p").unwrap(),
            clock,
            client_clock,
            client,
            drivers,
            tasks: Tasks::new(),
            seed,
            broken: Vec::new(),
            seen: Counts::default(),
        }
    }

    /// Runs the history and what is left behind it to the end; every rule that was broken.
    pub fn run(&mut self) -> Vec<String> {
        for _ in 0..self.weather.steps {
            self.step();
        }
        self.quiesce();
        let mut broken = std::mem::take(&mut self.broken);
        broken.extend_from_slice(self.arena.ledger().broken());
        let left = self.arena.ledger().timers(&self.partition);
        if !left.is_empty() {
            broken.push(format!("left at the end: {left:?}"));
        }
        for line in &mut broken {
            *line = format!("seed {}: {line}", self.seed);
        }
        broken
    }

    fn step(&mut self) {
        match self.random.below(100) {
            0..70 => self.poll_one(),
            70..80 => self.begin_tick(),
            80..90 => self.begin_verb(),
            90..94 => {
                let by_ms = self.random.pick(&[1, 50, 200, 700, 3_000, 13_000]);
                self.advance(by_ms);
            }
            94..96 => {
                self.arena.land_late();
            }
            96..98 if self.weather.crashes => self.crash(),
            98..100 if self.weather.clock_steps => self.step_a_clock(),
            _ => self.poll_one(),
        }
    }

    fn poll_one(&mut self) {
        let place = self.random.below(self.tasks.len() as u64) as usize;
        if let Some((owner, Ended::Tick(tick, budget))) = self.tasks.step(place) {
            self.check_budget(&tick, budget);
            for call in tick.calls {
                self.begin_call(owner, call);
            }
        }
    }

    /// No tick does more than its budget allows.
    fn check_budget(&mut self, tick: &Tick, budget: TickBudget) {
        let (report, most) = (&tick.report, u64::from(budget.max_fired));
        let capped = |counts: &Counts| counts.progressed() <= u64::from(budget.max_per_kind);
        if report.total.progressed() > most || !report.per_kind.values().all(capped) {
            self.broken
                .push(format!("over its budget {budget:?}: {report:?}"));
        }
        self.seen.add(&report.total);
    }

    fn begin_call(&mut self, owner: usize, call: ClaimedCall) {
        let engine = self.drivers[owner].engine.clone();
        let gives_back = self.random.chance(20);
        self.tasks.spawn(owner, async move {
            if gives_back {
                let claim = call.claim().clone();
                drop(call);
                let _released = engine.release(&claim).await;
            } else {
                let _counts = engine.settle(call.run().await).await;
            }
            Ended::Other
        });
    }

    fn begin_tick(&mut self) {
        let index = self.random.below(2) as usize;
        if self.tasks.of(index) > 6 {
            return;
        }
        let few = |random: &mut Random| random.pick(&[1, 2, 3, 8, 1_000]);
        let budget = TickBudget {
            max_fired: few(&mut self.random),
            max_per_kind: few(&mut self.random),
            max_scanned: few(&mut self.random),
            max_elapsed_ms: self.random.pick(&[1, 500, 30_000]),
        };
        let by_wakes = self.random.chance(80);
        let tick = self.drivers[index].tick(&self.partition, budget, by_wakes);
        self.tasks.spawn(index, tick);
    }

    fn begin_verb(&mut self) {
        if self.tasks.of(CLIENT) > 2 {
            return;
        }
        let random = &mut self.random;
        let kind = random.pick(&KINDS);
        let reference = dueline::Bytes::from_static(random.pick(&REFERENCES).as_bytes());
        let now_ms = self.client_clock.wall_ms() as u64;
        let due_ms = match random.below(4) {
            0 => now_ms - 500,
            1 => now_ms,
            2 => now_ms + 1,
            _ => now_ms + random.below(4_000),
        };
        let (timers, partition) = (self.client.clone(), self.partition.clone());
        let what = random.below(20);
        let policy = random.pick(&[Policy::Replace, Policy::KeepEarliest, Policy::IfAbsent]);
        let mut timer = Timer::new(kind, reference.clone())
            .due_at(due_ms)
            .payload(random_payload(random));
        if random.chance(60) {
            timer = timer.named();
        }
        let generation = random.next_u64();
        self.tasks.spawn(CLIENT, async move {
            match what {
                0..12 => drop(timers.schedule(&partition, timer, policy).await),
                12..14 => drop(timers.cancel(&partition, kind, &reference, None).await),
                14 => drop(timers.pause(&partition, kind).await),
                15 => drop(timers.resume(&partition, kind).await),
                16 => drop(
                    timers
                        .reschedule(&partition, kind, &reference, due_ms, None)
                        .await,
                ),
                17 => {
                    if let Ok(page) = timers.dead(&partition, None, None, 1).await {
                        for dead in page.dead {
                            drop(timers.requeue(&partition, &dead.id).await);
                        }
                    }
                }
                18 => {
                    let short = TimerKey::lane_due_end(kind, due_ms);
                    let batch = Batch::new().put(short, "malformed");
                    drop(timers.store().apply(&partition, batch).await);
                }
                _ => {
                    let key = TimerKey {
                        kind,
                        due_ms,
                        generation,
                        reference,
                    };
                    let batch = Batch::new().put(key.encode(), "no header");
                    drop(timers.store().apply(&partition, batch).await);
                }
            }
            Ended::Other
        });
    }

    fn advance(&mut self, by_ms: u64) {
        self.clock.advance_ms(by_ms);
        self.client_clock.advance_ms(by_ms);
        for driver in &self.drivers {
            driver.clock.advance_ms(by_ms);
        }
    }

    fn step_a_clock(&mut self) {
        let by_ms = self.random.pick(&[-5_000, -300, 300, 20_000]);
        match self.random.below(4) {
            0 => self.clock.jump_wall_ms(by_ms),
            1 => self.client_clock.jump_wall_ms(by_ms),
            index => self.drivers[index as usize - 2].clock.jump_wall_ms(by_ms),
        }
    }

    fn crash(&mut self) {
        let index = self.random.below(2) as usize;
        self.tasks.drop_all_of(index);
        let clock = self.drivers[index].clock.clone();
        let group_max = self.drivers[index].group_max;
        let opened_at_ms = clock.wall_ms() as u64;
        let seed = self.random.next_u64();
        self.drivers[index] = Driver::new(&self.arena, clock, seed, group_max);
        self.drivers[index].cautious_until_ms = Some(opened_at_ms);
    }

    /// Nothing goes wrong any more: lets everything end, and works off what is there by its stored
    /// wakes alone.
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
        for kind in KINDS {
            drop(block_on(self.client.resume(&self.partition, kind)));
        }
        let clocks = [&self.clock, &self.client_clock, &self.drivers[0].clock];
        let now_ms = clocks
            .map(|clock| clock.wall_ms())
            .into_iter()
            .max()
            .unwrap();
        for clock in clocks {
            clock.set_wall_ms(now_ms);
        }
        for _ in 0..400 {
            if !self.work_off_once() {
                break;
            }
        }
    }

    fn work_off_once(&mut self) -> bool {
        let wakes = self.arena.memory().wakes();
        let Some(first) = wakes.first() else {
            return false;
        };
        let now_ms = self.clock.wall_ms() as u64;
        self.advance(first.at_ms.saturating_sub(now_ms));
        let tick = self.drivers[0].tick(&self.partition, TickBudget::default(), true);
        if let Ended::Tick(tick, budget) = block_on(tick) {
            self.check_budget(&tick, budget);
            for call in tick.calls {
                let finished = block_on(call.run());
                let _counts = block_on(self.drivers[0].engine.settle(finished));
            }
        }
        true
    }
}
