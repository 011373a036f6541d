//! One random history: two drivers and a client over one store, stepped between their store calls.

use std::sync::Arc;

use dueline::runtime::{Clock, Runtime};
use dueline::store::{NamespaceStore, Partition};
use dueline::timers::{ClaimedCall, Counts, Tick, TickBudget, Timers};
use dueline_history::{EngineRules, Retries, What, check_all, keep};
use dueline_testkit::model::{Arena, Random, Source, Tasks};
use dueline_testkit::{ManualClock, SequenceEntropy, block_on};

use super::driver::{Driver, Ended, Paused, policy};
use super::record::Record;
use super::verb::Request;
use super::weather::Weather;
use dueline_testkit::model::script::KINDS;

pub const START_MS: i64 = 1_000_000;
const CLIENT: usize = 2;

pub struct History {
    pub arena: Arc<Arena>,
    random: Random,
    weather: Weather,
    partition: Partition,
    clock: ManualClock,
    client_clock: ManualClock,
    client: Runtime,
    record: Record,
    drivers: Vec<Driver>,
    tasks: Tasks<Ended>,
    seed: u64,
    broken: Vec<String>,
    /// Whether tasks were dropped before their end.
    was_cut: bool,
    /// What every tick together did.
    pub seen: Counts,
}

/// What these histories are held to. Their clocks are set at will and their ticks cut anywhere, so
/// there is no bound of skew, lateness or elapsed time.
fn begin(seed: u64) -> What {
    let retries = KINDS.iter().map(|kind| Retries::of(*kind, &policy()));
    What::Begin {
        seed,
        deadline_ms: 0,
        lag_ms: 0,
        rules: Some(Box::new(EngineRules {
            retries: retries.collect(),
            wakes_kept: true,
            ..EngineRules::default()
        })),
    }
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
        if random.chance(30) {
            arena.shorten_pages(random.next_u64(), 30);
        }
        let record = Record::new(&clock);
        record.watch(&arena);
        record.test(begin(seed));
        let drivers = (0..2)
            .map(|index| {
                let clock = ManualClock::new(START_MS + weather.skew_ms[index]);
                let group_max = random.pick(&[1, 2, 3, 8, 64]);
                let identity = (index, random.next_u64());
                Driver::new(&arena, clock, identity, group_max, &record)
            })
            .collect();
        let client_clock = ManualClock::new(START_MS);
        let client = Runtime::new(
            Arc::new(client_clock.clone()),
            Arc::new(client_clock.clone()),
            Arc::new(SequenceEntropy::new(random.next_u64())),
        );
        Self {
            arena,
            random,
            weather,
            partition: Partition::new("p").unwrap(),
            clock,
            client_clock,
            client,
            record,
            drivers,
            tasks: Tasks::new(),
            seed,
            broken: Vec::new(),
            was_cut: false,
            seen: Counts::default(),
        }
    }

    /// Runs the history and what is left behind it to the end; every rule that was broken.
    pub fn run(&mut self) -> Vec<String> {
        for _ in 0..self.weather.steps {
            self.step();
        }
        self.quiesce();
        self.record.scan(&self.arena, &self.partition, true);
        let mut broken = std::mem::take(&mut self.broken);
        broken.extend_from_slice(self.arena.ledger().broken());
        let left = self.arena.ledger().timers(&self.partition);
        if !left.is_empty() {
            broken.push(format!("left at the end: {left:?}"));
        }
        let wakes = self.arena.memory().wakes();
        if !wakes.is_empty() {
            broken.push(format!("wakes are left at the end: {wakes:?}"));
        }
        let told = self.seen.fired + self.seen.rescheduled;
        let effects = self.arena.ledger().effects() as u64;
        let is_calm = self.weather.mishaps.is_empty() || self.weather.per_mille == 0;
        if is_calm && !self.weather.crashes && !self.was_cut && told != effects {
            broken.push(format!(
                "the reports tell of {told} effects, there were {effects}"
            ));
        }
        for line in &mut broken {
            *line = format!("seed {}: {line}", self.seed);
        }
        let history = self.record.take();
        let found = check_all(&history);
        if !found.is_empty() || !broken.is_empty() {
            let name = format!("faults_histories-{}", self.seed);
            broken.push(keep(&name, &history, &found));
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
        match self.tasks.step(place) {
            Some((owner, Ended::Tick(tick, budget, paused))) => {
                self.check_tick(&tick, budget, &paused);
                for call in tick.calls {
                    self.begin_call(owner, call);
                }
            }
            Some((_, Ended::Settled(counts))) => self.seen.add(&counts),
            Some((_, Ended::Other)) | None => {}
        }
    }

    /// No tick does more than its budget allows, or anything for a kind that is paused all along.
    fn check_tick(&mut self, tick: &Tick, budget: TickBudget, paused: &Paused) {
        let (report, most) = (&tick.report, u64::from(budget.max_fired));
        let capped = |counts: &Counts| counts.progressed() <= u64::from(budget.max_per_kind);
        if report.total.progressed() > most || !report.per_kind.values().all(capped) {
            self.broken
                .push(format!("over its budget {budget:?}: {report:?}"));
        }
        let all_along = self.arena.ledger().resumes() == paused.resumes;
        for kind in paused.kinds.iter().filter(|_| all_along) {
            let did = report.per_kind.get(kind).copied().unwrap_or_default();
            if did.progressed() > 0 {
                self.broken.push(format!("kind {kind} was paused: {did:?}"));
            }
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
                return Ended::Settled(engine.settle(call.run().await).await);
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
        let request = Request::random(
            &mut self.random,
            &self.arena,
            &self.client,
            &self.partition,
            &self.record,
        );
        self.tasks.spawn(CLIENT, async move {
            request.send().await;
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
        self.record.stop(index);
        let identity = (index, seed);
        self.drivers[index] = Driver::new(&self.arena, clock, identity, group_max, &self.record);
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
            self.was_cut = true;
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
        let store = self.arena.actor(Source::User) as Arc<dyn NamespaceStore>;
        let client = Timers::new(store, self.client.clone());
        for kind in KINDS {
            drop(block_on(client.resume(&self.partition, kind)));
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
        if let Ended::Tick(tick, budget, paused) = block_on(tick) {
            self.check_tick(&tick, budget, &paused);
            for call in tick.calls {
                let finished = block_on(call.run());
                let counts = block_on(self.drivers[0].engine.settle(finished));
                self.seen.add(&counts);
            }
        }
        true
    }
}
