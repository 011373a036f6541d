//! Runs a plan and holds its history to every invariant.

use std::any::Any;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use dueline_history::{Broken, Checkers, Event, Invariant};

use crate::paused::Paused;
use crate::plan::Plan;
use crate::watch::Watch;
use crate::world::Outcome;
use crate::{object, world};

/// What became of a run.
#[derive(Debug)]
pub struct Verdict {
    /// Every promise that was broken, as sentences; empty is right.
    pub broken: Vec<String>,
    /// What happened.
    pub events: Vec<Event>,
    /// Places that were reached, and how often.
    pub marks: BTreeMap<&'static str, u64>,
}

/// What is told from runs and effects that only scripted handlers take down: a kind's own rules stand in
/// their place.
const NEED_SCRIPTS: [Invariant; 2] = [Invariant::I1, Invariant::I13];

/// Runs a plan and checks what happened. A panic outside of a handler is a broken promise too.
pub fn judge(plan: &Plan) -> Verdict {
    match catch_unwind(AssertUnwindSafe(|| run(plan))) {
        Ok(outcome) => {
            let mut broken = outcome.broken;
            let paused = Paused::new(outcome.hidden.turns.clone());
            let mut checkers = Checkers::new().with(Box::new(paused));
            if plan.world.scenario.is_none() {
                let watch = Watch::new(plan, outcome.hidden);
                checkers = checkers.with(Box::new(watch));
            }
            for event in &outcome.events {
                checkers.take(event);
            }
            let found = checkers.end();
            let applies = |it: &&Broken| {
                plan.world.scenario.is_none() || !NEED_SCRIPTS.contains(&it.invariant)
            };
            broken.extend(found.iter().filter(applies).map(ToString::to_string));
            Verdict {
                broken,
                events: outcome.events,
                marks: outcome.marks,
            }
        }
        Err(panic) => Verdict {
            broken: vec![format!("panicked: {}", text_of(panic.as_ref()))],
            events: Vec::new(),
            marks: BTreeMap::new(),
        },
    }
}

fn run(plan: &Plan) -> Outcome {
    match &plan.world.object {
        Some(spec) => object::run(plan, spec),
        None => world::run(plan),
    }
}

fn text_of(panic: &(dyn Any + Send)) -> &str {
    panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message")
}
