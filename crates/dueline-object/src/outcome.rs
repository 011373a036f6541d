//! What a handler in JavaScript said, as the engine understands it.

use std::str::from_utf8;

use bytes::Bytes;
use dueline::store::{Batch, Partition};
use dueline::timers::{
    Asked, DueTimer, Fired, HandlerError, Policy, Refused, Timer, TimerCtx, TimerError, TimerKind,
    Timers,
};
use dueline_worker::effect_mark;
use wasm_bindgen::prelude::*;

use crate::platform::{Outcome, Wanted};

/// What `ObjectCore` and handlers share.
#[derive(Clone, Debug)]
pub(crate) struct Scheduling {
    pub(crate) timers: Timers,
    pub(crate) partition: Partition,
}

/// What the host says of a run.
pub(crate) enum Said {
    /// The timer is done. Most are, so this has no object of its own.
    Done {
        effects: Option<f64>,
    },
    More(Outcome),
}

impl From<JsValue> for Said {
    fn from(said: JsValue) -> Self {
        match said.as_f64() {
            Some(effects) => Self::Done {
                effects: (effects > 0.0).then_some(effects),
            },
            None => Self::More(said.unchecked_into()),
        }
    }
}

impl Scheduling {
    /// What becomes of a timer by what was said.
    pub(crate) async fn fired(
        &self,
        ctx: &TimerCtx<'_>,
        timer: &DueTimer,
        said: Said,
    ) -> Result<Fired, HandlerError> {
        let outcome = match said {
            Said::Done { effects } => return Ok(Fired::Done(marked(effects))),
            Said::More(outcome) => outcome,
        };
        let outcome = &outcome;
        let reason = || outcome.reason().unwrap_or_default();
        match outcome.said().as_str() {
            "done" => Ok(Fired::Done(self.effects(ctx, outcome).await?)),
            "reschedule" => Ok(Fired::Reschedule {
                due_at_ms: time_of(outcome.due_at().unwrap_or(0.0)),
                payload: match outcome.payload() {
                    Some(payload) => Bytes::from(payload.to_vec()),
                    None => timer.payload().clone(),
                },
                batch: self.effects(ctx, outcome).await?,
            }),
            "retry" => Ok(Fired::Retry {
                after_ms: outcome.after_ms().map(time_of),
                reason: reason(),
            }),
            "dead" => Ok(Fired::Dead {
                reason: reason(),
                batch: self.effects(ctx, outcome).await?,
            }),
            "undecodable" => Err(HandlerError::undecodable(reason())),
            _ => Err(HandlerError::new(reason())),
        }
    }

    /// The batch of an outcome's effects and of what is scheduled, cancelled and told with them.
    async fn effects(&self, ctx: &TimerCtx<'_>, outcome: &Outcome) -> Result<Batch, HandlerError> {
        let mut batch = marked(outcome.effects());
        for wanted in outcome.schedules().iter().flat_map(js_sys::Array::iter) {
            let wanted: Wanted = wanted.unchecked_into();
            let payload = wanted.payload().to_vec();
            let timer = timer_of(
                wanted.kind(),
                wanted.reference(),
                wanted.is_named(),
                wanted.due_at(),
                payload,
            );
            let policy = policy_of(wanted.policy());
            let planned = self.timers.plan(&self.partition, &timer, policy).await?;
            let planned = if wanted.policy() == CANCEL {
                planned.into_cancel(&timer)?
            } else {
                planned.batch
            };
            batch = batch.append(planned);
        }
        #[cfg(feature = "kinds")]
        let batch = batch.append(crate::built_in::told_with(ctx, &self.timers, outcome).await?);
        #[cfg(not(feature = "kinds"))]
        let _ = ctx;
        Ok(batch)
    }
}

/// A batch with the mark of the effects of this number.
pub(crate) fn marked(effects: Option<f64>) -> Batch {
    let mut batch = Batch::new();
    if let Some(number) = effects {
        batch.writes.push(effect_mark(number as u64));
    }
    batch
}

/// A time or a span in whole milliseconds; the package has looked at its range.
pub(crate) fn time_of(ms: f64) -> u64 {
    ms as u64
}

pub(crate) fn timer_of(
    kind: u8,
    reference: String,
    is_named: bool,
    due_at: f64,
    payload: Vec<u8>,
) -> Timer {
    let timer = Timer::new(TimerKind(kind), reference)
        .due_at(time_of(due_at))
        .payload(payload);
    if is_named { timer.named() } else { timer }
}

/// Many timers as they come: see `ObjectCore::schedule_all`.
pub(crate) fn asked_of(numbers: &[f64], bytes: Vec<u8>) -> Result<Vec<Asked>, Refused> {
    let mut bytes = Bytes::from(bytes);
    let mut take = |length: f64| bytes.split_to(bytes.len().min(length as usize));
    let mut asked = Vec::with_capacity(numbers.len() / 7);
    for each in numbers.chunks_exact(7) {
        let &[
            kind,
            is_named,
            due_at,
            policy,
            reference,
            generation,
            payload,
        ] = each
        else {
            continue;
        };
        let timer = Timer::new(TimerKind(kind as u8), take(reference)).due_at(time_of(due_at));
        let generation = take(generation);
        let timer = timer.payload(take(payload));
        let if_match = (!generation.is_empty())
            .then(|| generation_of(from_utf8(&generation).unwrap_or_default()))
            .transpose()
            .map_err(|error| Refused {
                index: Some(asked.len()),
                error,
            })?;
        asked.push(Asked {
            timer: if is_named > 0.0 { timer.named() } else { timer },
            policy: policy_of(policy as u8),
            if_match,
        });
    }
    Ok(asked)
}

/// A generation, as it was given out.
pub(crate) fn generation_of(text: &str) -> Result<u64, TimerError> {
    text.parse()
        .map_err(|_| TimerError::Invalid("this is not a generation of a timer".into()))
}

/// In the place of a policy: the timer of the name is cancelled.
const CANCEL: u8 = 3;

/// The policy of a number, which the package has looked at.
pub(crate) fn policy_of(policy: u8) -> Policy {
    match policy {
        0 => Policy::Replace,
        1 => Policy::KeepEarliest,
        _ => Policy::IfAbsent,
    }
}
