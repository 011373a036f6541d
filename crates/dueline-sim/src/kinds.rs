//! Worlds of built-in kinds: nodes as everywhere, whose registries hold the kinds of one scenario of
//! `dueline-kindsuite`. Its clients ask through the nodes, every commit is judged as it becomes durable,
//! and in the end everything must be over.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dueline::BoxFuture;
use dueline::store::{Batch, Partition};
use dueline::timers::{Registry, TimerKind, Timers};
use dueline_kindsuite::scenario::{SCENARIOS, Scenario, Tally, Watched};
use dueline_testkit::model::{Random, Source};

use crate::plan::{Action, Deed, Plan};
use crate::recorder::Recorder;

/// How many scenarios there are: one for each built-in kind.
pub const COUNT: usize = SCENARIOS.len();

/// How many of a hundred seeds pause lanes while timers are pending.
const PAUSED_PERCENT: u64 = 40;

/// Turns a plan into one of a world of kinds: clients ask what the scenario draws.
pub fn move_into(plan: &mut Plan) {
    let mut random = Random::new(plan.seed ^ 0x0b11_7000_0000_0000);
    let scenario = usize::try_from(random.below(COUNT as u64)).unwrap_or(0);
    let heal_at_us = 1_000_000 * random.pick(&[12, 40, 150, 400]);
    // Troubles are spread over the longer time.
    let stretch = random
        .pick(&[1, heal_at_us / plan.world.heal_at_us.max(1)])
        .max(1);
    let is_kept = |action: &Action| !matches!(action.deed, Deed::Verb { .. });
    plan.actions.retain(is_kept);
    for action in &mut plan.actions {
        action.at_us = action.at_us.saturating_mul(stretch);
    }
    let nodes = plan.world.nodes.len() as u64;
    if made(scenario, &Tally::default())
        .1
        .needs_growing_store_time()
    {
        let is_remote = plan.world.is_remote;
        for action in &mut plan.actions {
            // The store has the number behind the last node, or goes by the clock of the only one.
            if let Deed::Jump { node, by_ms } = &mut action.deed
                && (*node >= nodes || !is_remote)
            {
                *by_ms = by_ms.saturating_abs();
            }
        }
    }
    let mut at_us = 0;
    for _ in 0..random.pick(&[20, 60, 120]) {
        if random.chance(60) {
            at_us = random.below(heal_at_us);
        }
        plan.actions.push(Action {
            at_us,
            after_steps: random.below(20),
            deed: Deed::Ask {
                node: random.below(nodes),
                draw: random.next_u64(),
            },
        });
    }
    if random.chance(PAUSED_PERCENT) {
        for _ in 0..random.pick(&[1, 3, 8]) {
            plan.actions.push(Action {
                at_us: random.below(heal_at_us),
                after_steps: random.below(20),
                deed: Deed::PauseLane {
                    node: random.below(nodes),
                    lane: random.next_u64(),
                    for_us: random.pick(&[1_000, 700_000, 5_000_000, 30_000_000, 200_000_000]),
                },
            });
        }
    }
    plan.actions.sort_by_key(|action| action.at_us);
    plan.world.scenario = Some(scenario);
    plan.world.heal_at_us = heal_at_us;
    for node in &mut plan.world.nodes {
        node.is_old = false;
    }
}

/// A scenario that is played.
#[derive(Debug)]
pub struct Play {
    name: &'static str,
    tally: Tally,
    watched: Arc<Mutex<Watched>>,
    partitions: Vec<Partition>,
    kinds: BTreeSet<TimerKind>,
}

impl Play {
    /// The scenario of this number.
    pub fn new(number: usize) -> Self {
        let tally = Tally::default();
        let (name, scenario) = made(number, &tally);
        Self {
            name,
            tally,
            partitions: scenario.partitions(),
            watched: Arc::new(Mutex::new(Watched::new(scenario))),
            kinds: BTreeSet::new(),
        }
    }

    /// What is told of every commit.
    pub fn watcher(&self) -> impl FnMut(Source, &Partition, &Batch, u64) + Send + 'static {
        let watched = Arc::clone(&self.watched);
        move |source, partition, batch, now_ms| {
            lock(&watched).committed(source, partition, batch, now_ms);
        }
    }

    /// The kinds of a process with these timers.
    pub fn registry(&mut self, timers: &Timers) -> Registry {
        let mut registry = Registry::new();
        for (kind, registration) in lock(&self.watched).scenario.kinds(timers) {
            self.kinds.insert(kind);
            let registered = registry.register(kind, registration);
            assert!(registered.is_ok(), "{}: {registered:?}", self.name);
        }
        registry
    }

    /// Whether the scenario has timers of this kind run.
    pub fn runs(&self, kind: TimerKind) -> bool {
        self.kinds.contains(&kind)
    }

    /// How many lanes there may be.
    pub fn lanes(&self) -> u64 {
        (self.partitions.len() * self.kinds.len()) as u64
    }

    /// Pauses or resumes one of the lanes; if the store does not answer, it stays as it is.
    pub fn set_paused(
        &self,
        lane: u64,
        timers: &Timers,
        is_paused: bool,
        recorder: &Recorder,
    ) -> BoxFuture<'static, ()> {
        let (timers, recorder) = (timers.clone(), recorder.clone());
        let kinds = self.kinds.iter();
        let mut lanes = kinds.flat_map(|kind| self.partitions.iter().map(|of| (of.clone(), *kind)));
        let place = lane
            .checked_rem(self.lanes())
            .and_then(|place| usize::try_from(place).ok());
        let lane = place.and_then(|place| lanes.nth(place));
        Box::pin(async move {
            let Some((partition, kind)) = lane else {
                return;
            };
            let done = if is_paused {
                timers.pause(&partition, kind).await
            } else {
                timers.resume(&partition, kind).await
            };
            match done {
                Ok(true) if is_paused => recorder.mark("a lane is paused"),
                Ok(true) => recorder.mark("a lane is resumed"),
                _ => {}
            }
        })
    }

    /// What a client asks for that has these timers.
    pub fn ask(&self, draw: u64, timers: &Timers) -> BoxFuture<'static, ()> {
        let mut random = Random::new(draw);
        let place = random.below(self.partitions.len() as u64);
        let mut partitions = self.partitions.iter();
        match partitions.nth(usize::try_from(place).unwrap_or(0)) {
            Some(partition) => {
                let mut watched = lock(&self.watched);
                watched.scenario.ask(&mut random, timers, partition)
            }
            None => Box::pin(std::future::ready(())),
        }
    }

    /// Nothing goes wrong any more: what clients ask for that is to be mended.
    pub fn calm(&self, timers: &Timers) -> Vec<BoxFuture<'static, ()>> {
        let mut watched = lock(&self.watched);
        watched.scenario.calm();
        let mends = self
            .partitions
            .iter()
            .map(|partition| watched.scenario.mend(timers, partition));
        mends.flatten().collect()
    }

    /// The partitions that there are.
    pub fn partitions(&self) -> Vec<Partition> {
        lock(&self.watched).partitions()
    }

    /// What was broken, if it has come to its end in all; what happened is marked.
    pub fn conclude(&self, rested: bool, recorder: &Recorder) -> Vec<String> {
        for name in self.tally.counted().into_keys() {
            recorder.mark(name);
        }
        let mut watched = lock(&self.watched);
        let broken = if rested {
            watched.conclude()
        } else {
            std::mem::take(&mut watched.broken)
        };
        let named = broken
            .into_iter()
            .map(|what| format!("{}: {what}", self.name));
        named.collect()
    }
}

/// The name of this scenario, and a fresh one.
fn made(number: usize, tally: &Tally) -> (&'static str, Box<dyn Scenario>) {
    let named = SCENARIOS.get(number % COUNT).unwrap_or(&SCENARIOS[0]);
    (named.0, (named.1)(tally))
}

fn lock(watched: &Mutex<Watched>) -> MutexGuard<'_, Watched> {
    watched.lock().unwrap_or_else(PoisonError::into_inner)
}
