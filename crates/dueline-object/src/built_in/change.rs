//! Changes of built-in kinds, committed with effects of the host's.

use std::future::Future;
use std::pin::Pin;

use dueline::kinds::Planned;
use dueline::store::{Batch, BatchOutcome};
use dueline::timers::TimerError;
use wasm_bindgen::JsValue;

use crate::outcome::{Scheduling, marked};
use crate::verbs::VerbFuture;

/// How often a change is planned before others are said to be in its way. Each time another one was committed
/// instead, so as many that wait for a hook at a time all come through.
const TRIES_MAX: u32 = 64;

/// A planned change: its batch, and what it comes to.
pub(super) type Change = (Batch, JsValue);

/// A change that is being planned. Boxed, so that committing is one piece of code for all verbs.
pub(super) type Planning = Pin<Box<dyn Future<Output = Result<Change, TimerError>>>>;

/// A plan as the host is told of it.
pub(super) fn change<T>(planned: Planned<T>, shown: impl FnOnce(&T) -> JsValue) -> Change {
    let outcome = shown(&planned.outcome);
    (planned.batch, outcome)
}

/// Plans and commits until no guard is lost. The effects are done inside the commit; a change that writes
/// nothing does none.
pub(super) fn committed(
    scheduling: Scheduling,
    effects: Option<f64>,
    plan: impl Fn(Scheduling) -> Planning + 'static,
) -> VerbFuture {
    Box::pin(committing(scheduling, effects, Box::new(plan)))
}

async fn committing(
    Scheduling { timers, partition }: Scheduling,
    effects: Option<f64>,
    plan: Box<dyn Fn(Scheduling) -> Planning>,
) -> Result<JsValue, TimerError> {
    for _ in 0..TRIES_MAX {
        let planning = plan(Scheduling {
            timers: timers.clone(),
            partition: partition.clone(),
        });
        let (mut batch, outcome) = planning.await?;
        if batch.writes.is_empty() {
            return Ok(outcome);
        }
        batch = batch.append(marked(effects));
        // A time bound that is lost has passed meanwhile: the next plan says so.
        if timers.store().apply(&partition, batch).await? == BatchOutcome::Committed {
            return Ok(outcome);
        }
    }
    Err(TimerError::Contended)
}
