//! Runs scenarios and adds up what was seen.

use std::fmt;

use crate::judge::{Both, Found, judge};
use crate::{After, Ours, Reference, Scenario, Script};

/// What was run and seen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Scenarios.
    pub scenarios: u64,
    /// Ticks of each engine.
    pub ticks: u64,
    /// Timers that fired here.
    pub fires: u64,
    /// Timers that fired on both sides in the same tick.
    pub fires_on_both: u64,
    /// Calls of handlers, on both sides.
    pub runs: u64,
    /// Ticks without any difference.
    pub ticks_alike: u64,
    /// The differences that are meant, and in how many places they were seen.
    pub found: Found,
}

impl Totals {
    /// Adds another's.
    pub fn add(&mut self, other: &Self) {
        self.scenarios += other.scenarios;
        self.ticks += other.ticks;
        self.fires += other.fires;
        self.fires_on_both += other.fires_on_both;
        self.runs += other.runs;
        self.ticks_alike += other.ticks_alike;
        for (difference, times) in &other.found {
            *self.found.entry(*difference).or_default() += times;
        }
    }

    fn note(&mut self, ours: &After, theirs: &After, found: &Found) {
        self.ticks += 1;
        self.fires += ours.effects.len() as u64;
        let on_both = ours.effects.intersection(&theirs.effects);
        self.fires_on_both += on_both.count() as u64;
        self.runs += (ours.runs.len() + theirs.runs.len()) as u64;
        self.ticks_alike += u64::from(found.is_empty());
        for (difference, times) in found {
            *self.found.entry(*difference).or_default() += times;
        }
    }
}

/// A scenario in which the engines differ in a way that is not meant.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The scenario.
    pub scenario: Scenario,
    /// The tick.
    pub tick: u32,
    /// What differs.
    pub what: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            scenario,
            tick,
            what,
        } = self;
        write!(
            f,
            "seed {} differs in tick {tick}: {what}\n{scenario:?}",
            scenario.seed
        )
    }
}

/// Runs one scenario.
///
/// # Errors
/// The first difference that is not meant.
pub fn run_scenario(scenario: &Scenario) -> Result<Totals, Box<Failure>> {
    let (our_script, their_script) = (Script::new(scenario.clone()), Script::new(scenario.clone()));
    let mut ours = Ours::new(scenario, &our_script);
    let theirs = Reference::new(scenario, &their_script);
    let mut totals = Totals {
        scenarios: 1,
        ..Totals::default()
    };
    let mut last_ms = 0;
    for tick in 0..scenario.ticks {
        let step = scenario.step(tick, last_ms, &theirs.look(), &their_script);
        last_ms = step.now_ms;
        ours.prepare(&step);
        theirs.prepare(&step);
        let before = theirs.look();
        let here = ours.tick(&step);
        let there = theirs.tick(&step);
        let both = Both {
            scenario,
            script: &our_script,
            step: &step,
            before: &before,
            ours: &here,
            theirs: &there,
        };
        let found = judge(&both).map_err(|what| {
            Box::new(Failure {
                scenario: scenario.clone(),
                tick,
                what,
            })
        })?;
        last_ms = last_ms.max(here.ended_ms);
        totals.note(&here, &there, &found);
        ours.tidy();
        theirs.tidy();
        if !found.is_empty() {
            theirs.become_as(&here);
        }
    }
    ours.judge().map_err(|what| {
        Box::new(Failure {
            scenario: scenario.clone(),
            tick: scenario.ticks,
            what,
        })
    })?;
    Ok(totals)
}

/// The shortest run of a failing seed that still fails: fewer ticks, then fewer timers a tick.
pub fn shrink(failure: Box<Failure>) -> Box<Failure> {
    let mut least = failure;
    least.scenario.ticks = least.tick.saturating_add(1);
    while let Some(burst) = least.scenario.burst.checked_sub(1) {
        let smaller = Scenario {
            burst,
            ..least.scenario.clone()
        };
        match run_scenario(&smaller) {
            Err(failure) => {
                least = failure;
                least.scenario.ticks = least.tick.saturating_add(1);
            }
            Ok(_) => break,
        }
    }
    least
}
