//! Quotas: `dueline::kinds::quota_rollup`. The object is the coordinator of its own charges, so that every
//! counter is exact.

use dueline::kinds::quota_rollup::{Amounts, COUNTERS_MAX, OwnCharges, Quota, QuotaUsage, Quotas};
use dueline::store::{Batch, Partition};
use dueline::timers::{Registration, TimerError, TimerKind, Timers};
use js_sys::{Float64Array, Promise};
use wasm_bindgen::prelude::*;

use super::change::committed;
use crate::object::ObjectCore;
use crate::outcome::{Scheduling, marked, time_of};
use crate::records::Record;

pub(super) fn entry() -> (TimerKind, Registration) {
    OwnCharges.entry()
}

#[wasm_bindgen]
impl ObjectCore {
    /// Charges a quota if no counter comes to more than its limit. Of `{ outcome, used, startsAt, endsAt, counter }`:
    /// what is used with it, or without it, and of a refusal the first counter that would be over its limit.
    #[wasm_bindgen(js_name = quotaCharge)]
    pub fn quota_charge(
        &self,
        name: String,
        window: f64,
        amounts: &[f64],
        limits: &[f64],
        effects: Option<f64>,
    ) -> Promise {
        let (amounts, limits) = (counters(amounts), counters(limits));
        self.verb(move |scheduling| {
            // The mark is in the plan: effects are done with a charge of nothing too.
            committed(scheduling, None, move |Scheduling { timers, partition }| {
                let name = name.clone();
                Box::pin(async move {
                    let reads = timers.store().clone();
                    let quotas = quotas(timers, name, partition.clone(), window)?;
                    let planned = quotas.plan_charge(&*reads, &partition, amounts).await?;
                    let usage = planned.outcome;
                    Ok(match usage.total.first_over(&limits) {
                        None => (
                            planned.batch.append(marked(effects)),
                            used(&usage, usage.total).word("outcome", "charged").done(),
                        ),
                        Some(counter) => (
                            Batch::new(),
                            used(&usage, usage.total.minus(amounts))
                                .word("outcome", "refused")
                                .number("counter", counter as u64)
                                .done(),
                        ),
                    })
                })
            })
        })
    }

    /// Of `{ used, startsAt, endsAt }` of the present window.
    #[wasm_bindgen(js_name = quotaUsage)]
    pub fn quota_usage(&self, name: String, window: f64) -> Promise {
        self.verb(move |Scheduling { timers, partition }| {
            Box::pin(async move {
                let quotas = quotas(timers, name, partition.clone(), window)?;
                let usage = quotas.usage(&partition).await?;
                Ok(used(&usage, usage.total).done())
            })
        })
    }

    /// Of what was charged in the window that holds a time; `undefined` if nothing was, or its rows are gone.
    #[wasm_bindgen(js_name = quotaTotal)]
    pub fn quota_total(&self, name: String, window: f64, at: Option<f64>) -> Promise {
        self.verb(move |Scheduling { timers, partition }| {
            Box::pin(async move {
                let at_ms = at.map_or_else(|| timers.runtime().now_ms(), time_of);
                let quotas = quotas(timers, name, partition, window)?;
                let total = quotas.total(quotas.quota().window_at(at_ms)).await?;
                Ok(total.map_or(JsValue::UNDEFINED, |total| numbers(total).into()))
            })
        })
    }
}

fn quotas(
    timers: Timers,
    name: String,
    partition: Partition,
    window: f64,
) -> Result<Quotas, TimerError> {
    let quota = Quota::new(name, partition, time_of(window))?;
    Ok(Quotas::new(timers, quota))
}

/// Whole numbers below 2^53, as the package has looked at them.
fn counters(given: &[f64]) -> Amounts {
    let mut all = [0; COUNTERS_MAX];
    for (to, from) in all.iter_mut().zip(given) {
        *to = *from as u64;
    }
    Amounts::from(all)
}

fn numbers(amounts: Amounts) -> Float64Array {
    Float64Array::from(amounts.as_array().map(|amount| amount as f64).as_slice())
}

fn used(usage: &QuotaUsage, amounts: Amounts) -> Record {
    Record::new()
        .with("used", numbers(amounts))
        .number("startsAt", usage.window.start_ms)
        .number("endsAt", usage.window.end_ms())
}
