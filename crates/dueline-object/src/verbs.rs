//! The verbs of scheduling. Each returns a promise.

use std::future::Future;
use std::pin::Pin;

use bytes::Bytes;
use dueline::timers::{
    DeadId, ListCursor, ListQuery, Refused, Timer, TimerError, TimerKind, TimerState, TimerStates,
};
use js_sys::{Array, Promise};
use wasm_bindgen::prelude::*;

use crate::errors::thrown_timer_error;
use crate::object::ObjectCore;
use crate::outcome::{Scheduling, policy_of, time_of, unpacked};
use crate::platform::Host;
use crate::records::{Record, cancelled, dead_view, lane_summary, scheduled, timer_view};
use crate::tasks::promise;

#[wasm_bindgen]
impl ObjectCore {
    /// Schedules a timer. Of what was scheduled.
    pub fn schedule(
        &self,
        kind: u8,
        reference: String,
        is_named: bool,
        due_at: f64,
        payload: Vec<u8>,
        policy: u8,
    ) -> Promise {
        let timer = Timer::new(TimerKind(kind), reference)
            .due_at(time_of(due_at))
            .payload(payload);
        let timer = if is_named { timer.named() } else { timer };
        let host = self.host.clone();
        self.verb(|Scheduling { timers, partition }| {
            Box::pin(async move {
                let policy = policy_of(policy);
                let done = timers.schedule(&partition, timer, policy).await?;
                Ok(scheduled(&host, &done))
            })
        })
    }

    /// Schedules all of these timers, which are packed, or none. Of a list of what was scheduled, or of
    /// `{ index, error }` for the one that was refused, without an index for all.
    #[wasm_bindgen(js_name = scheduleAll)]
    pub fn schedule_all(&self, packed: Vec<u8>) -> Promise {
        let (driver, host) = (self.driver.clone(), self.host.clone());
        self.verb(|Scheduling { partition, .. }| {
            Box::pin(async move {
                let wanted = unpacked(&packed);
                Ok(match driver.schedule_all(&partition, &wanted.asked).await {
                    Ok(done) => {
                        let done = done.iter().map(|done| scheduled(&host, done));
                        done.collect::<Array>().into()
                    }
                    Err(Refused { index, error }) => Record::new()
                        .with("index", index.map(|index| index as f64))
                        .with("error", thrown_timer_error(&error))
                        .done(),
                })
            })
        })
    }

    /// Of what was cancelled, or `undefined`.
    pub fn cancel(&self, kind: u8, name: String, if_match: Option<String>) -> Promise {
        self.verb(|Scheduling { timers, partition }| {
            Box::pin(async move {
                let if_match = generation_of(if_match)?;
                let name = Bytes::from(name);
                let done = timers
                    .cancel(&partition, TimerKind(kind), &name, if_match)
                    .await?;
                Ok(done.as_ref().map_or(JsValue::UNDEFINED, cancelled))
            })
        })
    }

    /// Of a view of the timer of a name, or `undefined`.
    pub fn get(&self, kind: u8, name: String) -> Promise {
        self.verb(|Scheduling { timers, partition }| {
            Box::pin(async move {
                let name = Bytes::from(name);
                let found = timers.get(&partition, TimerKind(kind), &name).await?;
                let now_ms = timers.runtime().now_ms();
                Ok(found.map_or(JsValue::UNDEFINED, |view| timer_view(&view, now_ms)))
            })
        })
    }

    /// Of what the timer of a name was moved to.
    pub fn reschedule(
        &self,
        kind: u8,
        name: String,
        due_at: f64,
        if_match: Option<String>,
    ) -> Promise {
        let host = self.host.clone();
        self.verb(|Scheduling { timers, partition }| {
            Box::pin(async move {
                let if_match = generation_of(if_match)?;
                let (kind, name) = (TimerKind(kind), Bytes::from(name));
                let due_at_ms = time_of(due_at);
                let done = timers.reschedule(&partition, kind, &name, due_at_ms, if_match);
                Ok(scheduled(&host, &done.await?))
            })
        })
    }

    /// Of `{ timers, next }`: one page of the timers of a kind. States are separated by commas.
    pub fn list(
        &self,
        kind: u8,
        states: Option<String>,
        prefix: Option<String>,
        due_before: Option<f64>,
        after: Option<String>,
        limit: u32,
    ) -> Promise {
        self.verb(|Scheduling { timers, partition }| {
            Box::pin(async move {
                let mut query = ListQuery::new(TimerKind(kind));
                if let Some(states) = states {
                    query.states = states_of(&states)?;
                }
                query.prefix = prefix.map(Bytes::from);
                query.due_before_ms = due_before.map(time_of);
                query.after = after.map(|text| text.parse::<ListCursor>()).transpose()?;
                query.limit = limit as usize;
                let page = timers.list(&partition, &query).await?;
                let now_ms = timers.runtime().now_ms();
                let shown: Array = page
                    .timers
                    .iter()
                    .map(|view| timer_view(view, now_ms))
                    .collect();
                Ok(paged("timers", shown, page.next.map(|next| next.to_string())).done())
            })
        })
    }

    /// Pauses a kind; with `wait` behind the runs that are under way. Of whether it was not paused before.
    pub fn pause(&self, kind: u8, wait: bool) -> Promise {
        let engine = self.driver.engine().clone();
        self.verb(|Scheduling { timers, partition }| {
            Box::pin(async move {
                let kind = TimerKind(kind);
                let done = if wait {
                    engine.pause_and_drain(&partition, kind).await?
                } else {
                    timers.pause(&partition, kind).await?
                };
                Ok(JsValue::from_bool(done))
            })
        })
    }

    /// Of whether the kind was paused.
    pub fn resume(&self, kind: u8) -> Promise {
        self.verb(|Scheduling { timers, partition }| {
            Box::pin(async move {
                let done = timers.resume(&partition, TimerKind(kind)).await?;
                Ok(JsValue::from_bool(done))
            })
        })
    }

    /// Of the numbers of the kinds that are paused.
    pub fn paused(&self) -> Promise {
        self.verb(|Scheduling { timers, partition }| {
            Box::pin(async move {
                let paused = timers.paused(&partition).await?;
                let kinds = paused.iter().map(|(kind, _)| JsValue::from(kind.0));
                Ok(kinds.collect::<Array>().into())
            })
        })
    }

    /// Of one record for each kind that has timers, dead timers or a pause.
    pub fn counts(&self) -> Promise {
        self.verb(|Scheduling { timers, partition }| {
            Box::pin(async move {
                let lanes = timers.lanes(&partition).await?;
                Ok(lanes.iter().map(lane_summary).collect::<Array>().into())
            })
        })
    }

    /// Of `{ dead, next }`: one page of the dead timers of a kind, or of all.
    pub fn dead(&self, kind: Option<u8>, after: Option<String>, limit: u32) -> Promise {
        self.verb(|Scheduling { timers, partition }| {
            Box::pin(async move {
                let after = after.map(|text| text.parse::<DeadId>()).transpose()?;
                let kind = kind.map(TimerKind);
                let page = timers
                    .dead(&partition, kind, after.as_ref(), limit as usize)
                    .await?;
                let shown: Array = page.dead.iter().map(dead_view).collect();
                Ok(paged("dead", shown, page.next.map(|next| next.to_string())).done())
            })
        })
    }

    /// Of what a dead timer was scheduled as, or `undefined`.
    pub fn requeue(&self, id: String) -> Promise {
        let host = self.host.clone();
        self.verb(|Scheduling { timers, partition }| {
            Box::pin(async move {
                let done = timers.requeue(&partition, &id.parse()?).await?;
                Ok(done.map_or(JsValue::UNDEFINED, |done| scheduled(&host, &done)))
            })
        })
    }

    /// Requeues a page of the dead timers of a kind, or of all. Of `{ requeued, next }`, a number and a
    /// place to go on.
    #[wasm_bindgen(js_name = requeuePage)]
    pub fn requeue_page(&self, kind: Option<u8>, after: Option<String>, limit: u32) -> Promise {
        self.verb(|Scheduling { timers, partition }| {
            Box::pin(async move {
                let after = after.map(|text| text.parse::<DeadId>()).transpose()?;
                let kind = kind.map(TimerKind);
                let page = timers
                    .requeue_page(&partition, kind, after.as_ref(), limit as usize)
                    .await?;
                let requeued = JsValue::from_f64(page.requeued.len() as f64);
                Ok(paged("requeued", requeued, page.next.map(|next| next.to_string())).done())
            })
        })
    }

    /// Of whether there was such a dead timer.
    pub fn purge(&self, id: String) -> Promise {
        self.verb(|Scheduling { timers, partition }| {
            Box::pin(async move {
                let done = timers.purge(&partition, &id.parse()?).await?;
                Ok(JsValue::from_bool(done))
            })
        })
    }
}

/// What a verb comes to.
pub(crate) type VerbFuture = Pin<Box<dyn Future<Output = Result<JsValue, TimerError>>>>;

impl ObjectCore {
    pub(crate) fn verb(&self, verb: impl FnOnce(Scheduling) -> VerbFuture) -> Promise {
        answered(&self.host, verb(self.scheduling.clone()))
    }
}

fn answered(host: &Host, verb: VerbFuture) -> Promise {
    let answer = async move { verb.await.map_err(|error| thrown_timer_error(&error)) };
    promise(host, Box::pin(answer))
}

pub(crate) fn paged(name: &'static str, page: impl Into<JsValue>, next: Option<String>) -> Record {
    let record = Record::new().with(name, page);
    match next {
        Some(next) => record.with("next", next),
        None => record,
    }
}

fn generation_of(text: Option<String>) -> Result<Option<u64>, TimerError> {
    let parsed = text.map(|text| text.parse()).transpose();
    parsed.map_err(|_| TimerError::Invalid("this is not a generation of a timer".into()))
}

fn states_of(names: &str) -> Result<TimerStates, TimerError> {
    let mut states = Vec::new();
    for name in names.split(',') {
        let known = TimerState::ALL
            .into_iter()
            .find(|state| state.as_str() == name);
        states.push(known.ok_or_else(|| {
            TimerError::Invalid("a state is `pending`, `retrying`, `claimed` or `dead`".into())
        })?);
    }
    Ok(states.into_iter().collect())
}
