use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;

use dueline::runtime::Clock;
use dueline::store::{NamespaceStore, Partition};
use dueline::timers::{ClaimedCall, Counts, Tick, TickBudget, Timers};
use dueline_history::Recorder;
use dueline_testkit::model::{Arena, Mishap, Source, Tasks};
use dueline_testkit::{ManualClock, block_on};

use super::driver::{Driver, KINDS, runtime};
use super::record::{judge, record};
use super::verbs::{self, Verb};
use super::{Disguise, Script};

const START_MS: i64 = 1_000_000;
const CLIENT: usize = 2;
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
    reached: Reached,
}

type Reached = Rc<RefCell<BTreeSet<String>>>;

impl World {
    pub(super) fn new(script: &mut Script<'_>, disguise: Disguise) -> Self {
        let clock = ManualClock::new(START_MS);
        let arena = Arena::new(&clock);
        let history = record(&arena, &clock);
        let client_clock = ManualClock::new(START_MS);
        let skews_ms = [0, 0, 2_000, -2_000, 60_000, -60_000];
        let mut start = |seed| {
            let skewed = ManualClock::new(START_MS + script.pick(&skews_ms));
            Driver::start(&arena, disguise, skewed, seed)
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
            reached: Reached::default(),
        }
    }

    pub(super) fn step(&mut self, script: &mut Script<'_>) {
        match script.next() {
            0xff => self.shorten_pages(script),
            0xfe => self.put_malformed_row(script),
            usual => self.usual_step(usual % 16, script),
        }
        if self.arena.has_crashed() {
            // The call that crashed never ends, whoever made it: all processes begin again.
            self.arena.heal();
            self.crash(0);
            self.crash(1);
            self.tasks.drop_all_of(CLIENT);
        }
    }

    fn usual_step(&mut self, what: u8, script: &mut Script<'_>) {
        match what {
            0..6 => self.poll(usize::from(script.next())),
            6 | 7 => self.begin_tick(script),
            8 | 9 => {
                let verb = verbs::schedule(&self.client, &self.partition, script);
                self.begin_verb(verb);
            }
            10 => {
                let verb = verbs::other(&self.client, &self.partition, script);
                self.begin_verb(verb);
            }
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
                if self.arena.land_late() {
                    self.reach("a late commit");
                }
            }
        }
    }

    fn shorten_pages(&self, script: &mut Script<'_>) {
        let (seed, percent) = (script.next(), script.pick(&[0, 30, 90]));
        self.arena.shorten_pages(u64::from(seed), percent);
    }

    /// Puts a row that no verb writes, as somebody might who works past the engine.
    fn put_malformed_row(&mut self, script: &mut Script<'_>) {
        self.seeds += 1;
        let now_ms = self.client.runtime().now_ms();
        let batch = verbs::malformed_row(now_ms, self.seeds, script);
        let store = self.arena.actor(Source::User);
        // A planned mishap may hit it; a crash is seen by the step.
        let mut tasks = Tasks::new();
        let partition = self.partition.clone();
        tasks.spawn(CLIENT, async move { store.apply(&partition, batch).await });
        for _ in 0..4 {
            tasks.step(0);
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

    /// What happened so far.
    pub(super) fn reached(&self) -> BTreeSet<String> {
        self.reached.borrow().clone()
    }

    fn reach(&self, what: &str) {
        self.reached.borrow_mut().insert(what.to_owned());
    }

    fn reach_tick(&self, tick: &Tick) {
        let report = &tick.report;
        let mut reached = self.reached.borrow_mut();
        reached.extend(counted("ticked", &report.total));
        for (name, is_reached) in [
            ("quarantined", report.quarantined > 0),
            ("paused", report.paused_lanes > 0),
            ("stopped on budget", report.stopped_on_budget),
            ("held back", report.held_back),
            ("full", report.store_full),
        ] {
            if is_reached {
                reached.insert(format!("ticked: {name}"));
            }
        }
    }

    fn poll(&mut self, place: usize) {
        let Some(place) = place.checked_rem(self.tasks.len()) else {
            return;
        };
        if let Some((owner, Some(tick))) = self.tasks.step(place) {
            self.reach_tick(&tick);
            for call in tick.calls {
                self.begin_call(owner, call);
            }
        }
    }

    fn begin_call(&mut self, owner: usize, call: ClaimedCall) {
        let engine = self.drivers[owner].engine.clone();
        let reached = Rc::clone(&self.reached);
        self.tasks.spawn(owner, async move {
            let finished = call.run().await;
            let counts = engine.settle(finished).await;
            reached.borrow_mut().extend(counted("settled", &counts));
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

    fn begin_verb(&mut self, verb: Verb) {
        if self.tasks.of(CLIENT) > 2 {
            return;
        }
        let reached = Rc::clone(&self.reached);
        self.tasks.spawn(CLIENT, async move {
            let ended = verb.await;
            reached.borrow_mut().insert(ended);
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

/// The counts that are not 0.
fn counted(by: &str, counts: &Counts) -> Vec<String> {
    let names = [
        ("fired", counts.fired),
        ("rescheduled", counts.rescheduled),
        ("claimed", counts.claimed),
        ("failed", counts.failed),
        ("dead", counts.dead),
        ("raced", counts.raced),
        ("unknown", counts.unknown_outcome),
        ("held", counts.held),
        ("deferred", counts.deferred),
    ];
    let named = names.iter().filter(|(_, count)| *count > 0);
    named.map(|(name, _)| format!("{by}: {name}")).collect()
}
