use std::sync::Arc;

use dueline::Bytes;
use dueline::runtime::Clock;
use dueline::store::{NamespaceStore, Partition};
use dueline::timers::{ClaimedCall, Policy, Tick, TickBudget, Timer, Timers};
use dueline_history::Recorder;
use dueline_testkit::model::{Arena, Mishap, Source, Tasks};
use dueline_testkit::{ManualClock, block_on};

use super::Script;
use super::driver::{Driver, KINDS, runtime};
use super::handler::payload;
use super::record::{judge, record};

const START_MS: i64 = 1_000_000;
const CLIENT: usize = 2;
const REFERENCES: [&str; 4] = ["a", "b", "c", "d"];
const POLICIES: [Policy; 3] = [Policy::Replace, Policy::KeepEarliest, Policy::IfAbsent];
const MISHAPS: [Mishap; 7] = [
    Mishap::Unavailable,
    Mishap::Full,
    Mishap::UnknownWritten,
    Mishap::UnknownNotWritten,
    Mishap::UnknownLate,
    Mishap::CrashBefore,
    Mishap::CrashAfter,
];
/// More than any history needs: a timer has at most four attempts and reschedules itself three times.
const LOOKS_MAX: usize = 1_000;

pub(super) struct World {
    arena: Arc<Arena>,
    history: Arc<Recorder>,
    partition: Partition,
    clock: ManualClock,
    client_clock: ManualClock,
    client: Timers,
    drivers: [Driver; 2],
    tasks: Tasks<Option<Tick>>,
    seeds: u64,
}

impl World {
    pub(super) fn new(script: &mut Script<'_>) -> Self {
        let clock = ManualClock::new(START_MS);
        let arena = Arena::new(&clock);
        let history = record(&arena, &clock);
        let client_clock = ManualClock::new(START_MS);
        let skews_ms = [0, 0, 2_000, -2_000, 60_000, -60_000];
        let mut start = |seed| {
            let skewed = ManualClock::new(START_MS + script.pick(&skews_ms));
            Driver::start(&arena, skewed, seed)
        };
        let drivers = [start(1), start(2)];
        let store = arena.actor_of(Source::User, 3) as Arc<dyn NamespaceStore>;
        Self {
            client: Timers::new(store, runtime(&client_clock, 3)),
            partition: Partition::new("p").expect("a partition"),
            arena,
            history,
            clock,
            client_clock,
            drivers,
            tasks: Tasks::new(),
            seeds: 3,
        }
    }

    pub(super) fn step(&mut self, script: &mut Script<'_>) {
        match script.next() % 16 {
            0..6 => self.poll(usize::from(script.next())),
            6 | 7 => self.begin_tick(script),
            8 | 9 => self.begin_schedule(script),
            10 => self.begin_other_verb(script),
            11 | 12 => {
                let by_ms = script.pick(&[1, 50, 200, 700, 3_000, 13_000]);
                self.advance(by_ms);
            }
            13 => {
                let (nth, spared) = (script.next() % 12, script.next() % 3);
                let mishap = script.pick(&MISHAPS);
                self.arena
                    .fail_call(u64::from(nth) + 1, usize::from(spared), mishap);
            }
            14 => self.crash(usize::from(script.next() % 2)),
            _ => {
                self.arena.land_late();
            }
        }
        if self.arena.has_crashed() {
            // The call that crashed never ends, whoever made it: all processes begin again.
            self.arena.heal();
            self.crash(0);
            self.crash(1);
            self.tasks.drop_all_of(CLIENT);
        }
    }

    /// Every rule that was broken.
    pub(super) fn broken(&self) -> Vec<String> {
        let mut broken = self.arena.ledger().broken().to_vec();
        let left = self.arena.ledger().timers(&self.partition);
        if !left.is_empty() {
            broken.push(format!("left at the end: {left:?}"));
        }
        let wakes = self.arena.memory().wakes();
        if !wakes.is_empty() {
            broken.push(format!("wakes are left at the end: {wakes:?}"));
        }
        broken.extend(judge(&self.history, &self.arena, &self.partition));
        broken
    }

    fn poll(&mut self, place: usize) {
        let Some(place) = place.checked_rem(self.tasks.len()) else {
            return;
        };
        if let Some((owner, Some(tick))) = self.tasks.step(place) {
            for call in tick.calls {
                self.begin_call(owner, call);
            }
        }
    }

    fn begin_call(&mut self, owner: usize, call: ClaimedCall) {
        let engine = self.drivers[owner].engine.clone();
        self.tasks.spawn(owner, async move {
            let finished = call.run().await;
            let _counts = engine.settle(finished).await;
            None
        });
    }

    fn begin_tick(&mut self, script: &mut Script<'_>) {
        let index = usize::from(script.next() % 2);
        if self.tasks.of(index) > 6 {
            return;
        }
        let few = [1, 2, 8, 1_000];
        let budget = TickBudget {
            max_fired: script.pick(&few),
            max_per_kind: script.pick(&few),
            max_scanned: script.pick(&few),
            max_elapsed_ms: 30_000,
        };
        let tick = self.drivers[index].tick(&self.partition, budget);
        self.tasks.spawn(index, tick);
    }

    fn begin_schedule(&mut self, script: &mut Script<'_>) {
        let now_ms = self.client.runtime().now_ms();
        let due_ms = match script.next() {
            early @ 0..64 => now_ms - u64::from(early) * 10,
            later => now_ms + u64::from(later - 64) * 20,
        };
        let mut timer = Timer::new(script.pick(&KINDS), script.pick(&REFERENCES))
            .due_at(due_ms)
            .payload(payload(script.next(), script.next()));
        if !script.next().is_multiple_of(3) {
            timer = timer.named();
        }
        let policy = script.pick(&POLICIES);
        let (client, partition) = (self.client.clone(), self.partition.clone());
        self.begin_verb(async move {
            drop(client.schedule(&partition, timer, policy).await);
        });
    }

    fn begin_other_verb(&mut self, script: &mut Script<'_>) {
        let (client, partition) = (self.client.clone(), self.partition.clone());
        let (what, kind) = (script.next() % 6, script.pick(&KINDS));
        let reference = Bytes::from_static(script.pick(&REFERENCES).as_bytes());
        let due_ms = client.runtime().now_ms() + u64::from(script.next()) * 10;
        self.begin_verb(async move {
            match what {
                0 | 1 => drop(client.cancel(&partition, kind, &reference, None).await),
                2 => drop(client.pause(&partition, kind).await),
                3 => drop(client.resume(&partition, kind).await),
                4 => {
                    let moved = client.reschedule(&partition, kind, &reference, due_ms, None);
                    drop(moved.await);
                }
                _ => {
                    let Ok(page) = client.dead(&partition, None, None, 1).await else {
                        return;
                    };
                    for dead in page.dead {
                        drop(client.requeue(&partition, &dead.id).await);
                    }
                }
            }
        });
    }

    fn begin_verb(&mut self, verb: impl Future<Output = ()> + 'static) {
        if self.tasks.of(CLIENT) > 2 {
            return;
        }
        self.tasks.spawn(CLIENT, async move {
            verb.await;
            None
        });
    }

    fn advance(&mut self, by_ms: u64) {
        self.clock.advance_ms(by_ms);
        self.client_clock.advance_ms(by_ms);
        for driver in &self.drivers {
            driver.clock.advance_ms(by_ms);
        }
    }

    fn crash(&mut self, index: usize) {
        self.tasks.drop_all_of(index);
        self.seeds += 1;
        self.drivers[index].restart(&self.arena, self.seeds);
    }

    /// Nothing goes wrong any more: what is under way ends or is cut, commits in doubt happen or
    /// never do, and the rest is worked off by the stored wakes.
    pub(super) fn come_to_rest(&mut self, is_cut: bool) {
        self.arena.heal();
        if is_cut {
            self.crash(0);
            self.crash(1);
            self.arena.drop_late();
        }
        while self.arena.land_late() {}
        for turn in 0..20_000 {
            if self.tasks.is_empty() {
                break;
            }
            self.poll(turn);
            if turn % 100 == 99 {
                self.advance(500);
            }
        }
        assert!(self.tasks.is_empty(), "something never ends");
        for kind in KINDS {
            drop(block_on(self.client.resume(&self.partition, kind)));
        }
        let clocks = [&self.clock, &self.client_clock, &self.drivers[0].clock];
        let latest_ms = clocks.map(|clock| clock.wall_ms()).into_iter().max();
        for clock in clocks {
            clock.set_wall_ms(latest_ms.unwrap_or(START_MS));
        }
        for _ in 0..LOOKS_MAX {
            if !self.work_off_once() {
                break;
            }
        }
    }

    fn work_off_once(&mut self) -> bool {
        let Some(first_ms) = self.arena.memory().wakes().first().map(|wake| wake.at_ms) else {
            return false;
        };
        let now_ms = self.drivers[0].engine.runtime().now_ms();
        self.advance(first_ms.saturating_sub(now_ms));
        let tick = self.drivers[0].tick(&self.partition, TickBudget::default());
        if let Some(tick) = block_on(tick) {
            for call in tick.calls {
                let finished = block_on(call.run());
                let _counts = block_on(self.drivers[0].engine.settle(finished));
            }
        }
        true
    }
}
