//! What a handler in JavaScript said, as the engine understands it.

use bytes::Bytes;
use dueline::store::{Batch, Partition};
use dueline::timers::{
    Asked, DueTimer, Fired, HandlerError, Policy, Timer, TimerCtx, TimerKind, Timers,
};
use dueline_worker::effect_mark;
use wasm_bindgen::prelude::*;

use crate::platform::Outcome;

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

impl Said {
    /// With the effects of this number, or 0 without any.
    pub(crate) fn done(effects: f64) -> Self {
        Self::Done {
            effects: (effects > 0.0).then_some(effects),
        }
    }
}

impl From<JsValue> for Said {
    fn from(said: JsValue) -> Self {
        match said.as_f64() {
            Some(effects) => Self::done(effects),
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
        if let Some(packed) = outcome.schedules() {
            let wanted = unpacked(&packed.to_vec());
            let plans = self.timers.plan_all(&self.partition, &wanted.asked).await;
            let plans = plans.map_err(|refused| refused.error)?;
            for ((plan, asked), cancels) in plans.into_iter().zip(&wanted.asked).zip(wanted.cancels)
            {
                let planned = if cancels {
                    plan.into_cancel(&asked.timer)?
                } else {
                    plan.batch
                };
                batch = batch.append(planned);
            }
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

/// Timers to be scheduled, or cancelled, together.
#[derive(Default)]
pub(crate) struct WantedAll {
    pub(crate) asked: Vec<Asked>,
    /// Whether each is to be cancelled.
    cancels: Vec<bool>,
}

/// Numbers of each timer.
const NUMBERS: usize = 8;

/// Many timers, one behind the other, since an object would cost a call for each of its parts: eight numbers,
/// a reference and a payload each. The numbers are its kind, 1 if it has a name, its due, its policy, the bytes
/// of the reference and of the payload, and the halves of the generation that it is to replace, or -1.
pub(crate) fn unpacked(packed: &[u8]) -> WantedAll {
    let mut left = packed;
    let mut take = |length: usize| {
        let (taken, rest) = left.split_at_checked(length).unwrap_or((left, &[]));
        left = rest;
        taken
    };
    let mut wanted = WantedAll::default();
    loop {
        let head = take(NUMBERS * 8);
        let (chunks, _) = head.as_chunks::<8>();
        let Ok(numbers) = <&[[u8; 8]; NUMBERS]>::try_from(chunks) else {
            return wanted;
        };
        let [
            kind,
            is_named,
            due_at,
            policy,
            reference,
            payload,
            high,
            low,
        ] = numbers.map(f64::from_le_bytes);
        let reference = Bytes::copy_from_slice(take(reference as usize));
        let mut timer = Timer::new(TimerKind(kind as u8), reference)
            .due_at(time_of(due_at))
            .payload(Bytes::copy_from_slice(take(payload as usize)));
        if is_named > 0.0 {
            timer = timer.named();
        }
        let policy = policy as u8;
        wanted.cancels.push(policy == CANCEL);
        wanted.asked.push(Asked {
            timer,
            policy: policy_of(policy),
            if_match: (high >= 0.0).then_some((high as u64) << 32 | low as u64),
        });
    }
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
