//! Outboxes: `dueline::kinds::outcome_delivery`.

use dueline::BoxFuture;
use dueline::kinds::outcome_delivery::{
    DeadOutcome, DeadOutcomeReason, Delivery, DeliveryOptions, OUTCOME_DELIVERY, Outbox,
    OutboxBuilder, OutboxName, Outcome, OutcomeDelivery, OutcomePage, Sink, SinkError,
    WaitingOutcome,
};
use dueline::ordered::OrderedMap;
use dueline::store::Batch;
use dueline::timers::{HandlerError, Registration, TimerCtx, TimerError, TimerKind, Timers};
use js_sys::{Array, Promise, Uint8Array};
use wasm_bindgen::prelude::*;

use super::change::{change, committed};
use super::hooks::Hooks;
use crate::kinds::retry;
use crate::object::ObjectCore;
use crate::outcome::{Scheduling, time_of};
use crate::platform::{KindOptions, Outcome as HandlerOutcome};
use crate::records::Record;

#[wasm_bindgen]
extern "C" {
    /// How one outbox is delivered: its name, its retries, and `deadlineMs`, that of a call.
    #[wasm_bindgen(extends = KindOptions)]
    pub type OutboxSettings;

    #[wasm_bindgen(method, getter, js_name = rowsMax)]
    fn rows_max(this: &OutboxSettings) -> Option<u32>;

    #[wasm_bindgen(method, getter, js_name = budgetMs)]
    fn budget_ms(this: &OutboxSettings) -> Option<f64>;

    /// Outcomes that are appended with what becomes of a timer: [`Outgoing`], each with its outbox.
    #[wasm_bindgen(method, getter, js_name = outbox)]
    fn told(this: &HandlerOutcome) -> Option<Array>;

    /// An outcome to be appended.
    pub type Outgoing;

    /// The name of its outbox; only if it goes with a timer.
    #[wasm_bindgen(method, getter)]
    fn name(this: &Outgoing) -> String;

    #[wasm_bindgen(method, getter)]
    fn id(this: &Outgoing) -> String;

    #[wasm_bindgen(method, getter)]
    fn payload(this: &Outgoing) -> Uint8Array;

    /// Why a delivery failed.
    pub type Refusal;

    /// `failed`, `unavailable`, `refused`.
    #[wasm_bindgen(method, getter)]
    fn fault(this: &Refusal) -> String;

    #[wasm_bindgen(method, getter)]
    fn text(this: &Refusal) -> String;

    #[wasm_bindgen(method, getter, js_name = afterMs)]
    fn after_ms(this: &Refusal) -> Option<f64>;
}

pub(super) fn entry(
    outboxes: &Array,
    hooks: &Hooks,
    timers: &Timers,
) -> Result<(TimerKind, Registration), TimerError> {
    let mut delivery = OutcomeDelivery::new(timers.runtime().clone());
    for settings in outboxes.iter() {
        let settings: OutboxSettings = settings.unchecked_into();
        let name = OutboxName::new(settings.name())?;
        delivery = delivery.sink_with(name, Receiver(hooks.clone()), options(&settings));
    }
    Ok((OUTCOME_DELIVERY, delivery.registration()))
}

fn options(settings: &OutboxSettings) -> DeliveryOptions {
    let mut options = DeliveryOptions::default();
    options.retry = retry(settings, options.retry);
    if let Some(rows_max) = settings.rows_max() {
        options.rows_max = rows_max as usize;
    }
    if let Some(deadline_ms) = settings.deadline_ms() {
        options.call_deadline_ms = time_of(deadline_ms);
    }
    if let Some(budget_ms) = settings.budget_ms() {
        options.run_budget_ms = time_of(budget_ms);
    }
    options
}

/// The application's sink of one outbox: nothing, or a [`Refusal`].
struct Receiver(Hooks);

impl Sink for Receiver {
    fn deliver<'a>(&'a self, delivery: &'a Delivery) -> BoxFuture<'a, Result<(), SinkError>> {
        Box::pin(async move {
            let told = Record::new()
                .bytes("outbox", delivery.outbox.as_bytes())
                .number("sequence", delivery.sequence)
                .bytes("id", &delivery.id)
                .bytes("payload", &delivery.body)
                .number("writtenAt", delivery.written_at_ms)
                .number("attempt", delivery.attempt.into())
                .done();
            let answer = self.0.ask("outbox.deliver", told).await;
            let answer = answer.map_err(|error| SinkError::failed(error.text()))?;
            if answer.is_undefined() {
                return Ok(());
            }
            let refusal: Refusal = answer.unchecked_into();
            let text = refusal.text();
            let error = match refusal.fault().as_str() {
                "unavailable" => SinkError::unavailable(text),
                "refused" => SinkError::refused(text),
                _ => SinkError::failed(text),
            };
            Err(match refusal.after_ms() {
                Some(after_ms) => error.retry_after_ms(time_of(after_ms)),
                None => error,
            })
        })
    }
}

fn outbox(Scheduling { timers, partition }: Scheduling, name: &str) -> Result<Outbox, TimerError> {
    let name = OutboxName::new(name.to_owned())?;
    Ok(Outbox::new(timers, partition, name))
}

fn outcome_of(outgoing: &Outgoing) -> Outcome {
    Outcome {
        id: outgoing.id().into(),
        body: outgoing.payload().to_vec().into(),
    }
}

/// The batch that appends what a handler tells with what becomes of its timer: one builder for each outbox.
pub(crate) async fn told_with(
    ctx: &TimerCtx<'_>,
    timers: &Timers,
    outcome: &HandlerOutcome,
) -> Result<Batch, HandlerError> {
    let mut outboxes: OrderedMap<OutboxName, OutboxBuilder> = OrderedMap::new();
    for told in outcome.told().iter().flat_map(Array::iter) {
        let told: Outgoing = told.unchecked_into();
        let name = OutboxName::new(told.name())?;
        let mut builder = match outboxes.remove(&name) {
            Some(builder) => builder,
            None => OutboxBuilder::read(ctx.reads(), ctx.partition(), &name).await?,
        };
        builder.append(outcome_of(&told), ctx.now_ms())?;
        outboxes.insert(name, builder);
    }
    let mut batch = Batch::new();
    for builder in outboxes.into_values() {
        batch = batch.append(builder.finish(timers, ctx.now_ms())?);
    }
    Ok(batch)
}

#[wasm_bindgen]
impl ObjectCore {
    /// Of the sequences of outcomes, each an [`Outgoing`].
    #[wasm_bindgen(js_name = outboxAppend)]
    pub fn outbox_append(&self, name: String, outcomes: &Array, effects: Option<f64>) -> Promise {
        let outcomes: Vec<Outcome> = outcomes
            .iter()
            .map(|outcome| outcome_of(&outcome.unchecked_into()))
            .collect();
        self.verb(move |scheduling| {
            committed(scheduling, effects, move |scheduling| {
                let (name, outcomes) = (name.clone(), outcomes.clone());
                Box::pin(async move {
                    let planned = outbox(scheduling, &name)?.plan(&outcomes).await?;
                    Ok(change(planned, |sequences| {
                        let sequences = sequences.iter().map(|of| JsValue::from_f64(*of as f64));
                        sequences.collect::<Array>().into()
                    }))
                })
            })
        })
    }

    /// Of whether anything waits.
    #[wasm_bindgen(js_name = outboxWake)]
    pub fn outbox_wake(&self, name: String) -> Promise {
        self.verb(move |scheduling| {
            committed(scheduling, None, move |scheduling| {
                let name = name.clone();
                Box::pin(async move {
                    let planned = outbox(scheduling, &name)?.plan_wake().await?;
                    Ok(change(planned, |is_woken| JsValue::from_bool(*is_woken)))
                })
            })
        })
    }

    /// Of `{ count, bytes }`.
    #[wasm_bindgen(js_name = outboxBacklog)]
    pub fn outbox_backlog(&self, name: String) -> Promise {
        self.verb(move |scheduling| {
            Box::pin(async move {
                let backlog = outbox(scheduling, &name)?.backlog().await?;
                Ok(Record::new()
                    .number("count", backlog.rows)
                    .number("bytes", backlog.bytes)
                    .done())
            })
        })
    }

    /// Of `{ items, next }`: one page of those that wait.
    #[wasm_bindgen(js_name = outboxWaiting)]
    pub fn outbox_waiting(&self, name: String, after: Option<f64>, limit: u32) -> Promise {
        self.verb(move |scheduling| {
            Box::pin(async move {
                let outbox = outbox(scheduling, &name)?;
                let page = outbox.waiting(after.map(time_of), limit as usize).await?;
                Ok(paged(&page, waiting))
            })
        })
    }

    /// Of `{ items, next }`: one page of those that were set aside.
    #[wasm_bindgen(js_name = outboxDead)]
    pub fn outbox_dead(&self, name: String, after: Option<f64>, limit: u32) -> Promise {
        self.verb(move |scheduling| {
            Box::pin(async move {
                let outbox = outbox(scheduling, &name)?;
                let page = outbox.dead(after.map(time_of), limit as usize).await?;
                Ok(paged(&page, dead))
            })
        })
    }

    /// Of the new sequence, or `undefined`.
    #[wasm_bindgen(js_name = outboxRequeue)]
    pub fn outbox_requeue(&self, name: String, sequence: f64, effects: Option<f64>) -> Promise {
        self.verb(move |scheduling| {
            committed(scheduling, effects, move |scheduling| {
                let name = name.clone();
                Box::pin(async move {
                    let outbox = outbox(scheduling, &name)?;
                    let planned = outbox.plan_requeue(time_of(sequence)).await?;
                    Ok(change(planned, |sequence| {
                        sequence.map_or(JsValue::UNDEFINED, |of| JsValue::from_f64(of as f64))
                    }))
                })
            })
        })
    }

    /// Of whether it was among the dead.
    #[wasm_bindgen(js_name = outboxPurge)]
    pub fn outbox_purge(&self, name: String, sequence: f64, effects: Option<f64>) -> Promise {
        self.verb(move |scheduling| {
            committed(scheduling, effects, move |scheduling| {
                let name = name.clone();
                Box::pin(async move {
                    let outbox = outbox(scheduling, &name)?;
                    let planned = outbox.plan_purge(time_of(sequence)).await?;
                    Ok(change(planned, |is_gone| JsValue::from_bool(*is_gone)))
                })
            })
        })
    }

    /// Of whether it waited.
    #[wasm_bindgen(js_name = outboxSetAside)]
    pub fn outbox_set_aside(
        &self,
        name: String,
        sequence: f64,
        why: String,
        effects: Option<f64>,
    ) -> Promise {
        self.verb(move |scheduling| {
            committed(scheduling, effects, move |scheduling| {
                let (name, why) = (name.clone(), why.clone());
                Box::pin(async move {
                    let outbox = outbox(scheduling, &name)?;
                    let planned = outbox.plan_set_aside(time_of(sequence), &why).await?;
                    Ok(change(planned, |is_aside| JsValue::from_bool(*is_aside)))
                })
            })
        })
    }
}

fn waiting(of: &WaitingOutcome) -> Record {
    let record = Record::new()
        .number("sequence", of.sequence)
        .number("writtenAt", of.written_at_ms)
        .number("attempt", of.attempt.into())
        .number("retryAt", of.retry_at_ms);
    with_outcome(record, of.outcome.as_ref())
}

fn dead(of: &DeadOutcome) -> Record {
    let reason = match of.reason {
        DeadOutcomeReason::Exhausted => "exhausted",
        DeadOutcomeReason::Refused => "refused",
        DeadOutcomeReason::ByHand => "byHand",
        _ => "undecodable",
    };
    let record = Record::new()
        .number("sequence", of.sequence)
        .word("reason", reason)
        .with("error", of.error.as_str())
        .number("attempt", of.attempt.into())
        .number("deadAt", of.dead_at_ms);
    with_outcome(record, of.outcome.as_ref())
}

fn with_outcome(record: Record, outcome: Option<&Outcome>) -> Record {
    match outcome {
        Some(outcome) => record
            .bytes("id", &outcome.id)
            .bytes("payload", &outcome.body),
        None => record,
    }
}

fn paged<T>(page: &OutcomePage<T>, shown: fn(&T) -> Record) -> JsValue {
    let items: Array = page.outcomes.iter().map(|of| shown(of).done()).collect();
    let record = Record::new().with("items", items);
    match page.next {
        Some(next) => record.number("next", next),
        None => record,
    }
    .done()
}
