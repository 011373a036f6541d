//! Plain objects for the package.

use dueline::rows::Failure;
use dueline::timers::{
    Cancelled, DeadView, LaneSummary, ScheduleOutcome, Scheduled, TimerKind, TimerView,
};
use dueline_worker::AlarmReport;
use js_sys::{JsString, Object, Reflect, Uint8Array};
use wasm_bindgen::prelude::*;

use crate::literals::literal;
use crate::platform::Host;

/// A plain object that is being filled.
pub(crate) struct Record(Object);

impl Record {
    pub(crate) fn new() -> Self {
        Self(Object::new())
    }

    pub(crate) fn with(self, name: &'static str, value: impl Into<JsValue>) -> Self {
        self.named(&literal(name), value)
    }

    pub(crate) fn named(self, name: &JsString, value: impl Into<JsValue>) -> Self {
        // A plain object takes every property.
        let _ = Reflect::set(&self.0, name, &value.into());
        self
    }

    /// A word of a closed set.
    pub(crate) fn word(self, name: &'static str, word: &'static str) -> Self {
        self.with(name, literal(word))
    }

    /// A number below 2^53.
    pub(crate) fn number(self, name: &'static str, value: u64) -> Self {
        self.with(name, JsValue::from_f64(value as f64))
    }

    fn kind(self, kind: TimerKind) -> Self {
        self.with("kind", JsValue::from_f64(f64::from(kind.0)))
    }

    /// A name's UTF-8, which the package decodes.
    fn reference(self, bytes: &[u8]) -> Self {
        self.bytes("reference", bytes)
    }

    fn generation(self, generation: u64) -> Self {
        self.with("generation", generation.to_string())
    }

    pub(crate) fn bytes(self, name: &'static str, bytes: &[u8]) -> Self {
        self.with(name, Uint8Array::from(bytes))
    }

    fn payload(self, bytes: &[u8]) -> Self {
        self.bytes("payload", bytes)
    }

    fn failure(self, failure: Option<&Failure>) -> Self {
        match failure {
            Some(failure) => self
                .with("lastError", failure.error.as_str())
                .number("lastErrorAt", failure.at_ms),
            None => self,
        }
    }

    pub(crate) fn done(self) -> JsValue {
        self.0.into()
    }
}

pub(crate) fn timer_view(view: &TimerView, now_ms: u64) -> JsValue {
    Record::new()
        .kind(view.kind)
        .reference(&view.reference)
        .with("isNamed", view.named)
        .number("dueAt", view.due_at_ms)
        .number("nextAt", view.next_at_ms)
        .word("state", view.state_at(now_ms).as_str())
        .number("attempt", view.attempt.into())
        .generation(view.generation)
        .payload(&view.payload)
        .failure(view.last_error.as_ref())
        .done()
}

pub(crate) fn dead_view(view: &DeadView) -> JsValue {
    Record::new()
        .with("id", view.id.to_string())
        .kind(view.kind)
        .reference(&view.reference)
        .with("isNamed", view.named)
        .word("reason", view.reason.as_str())
        .number("deadAt", view.dead_at_ms)
        .number("dueAt", view.due_at_ms)
        .number("attempt", view.attempt.into())
        .generation(view.generation)
        .payload(&view.payload)
        .failure(view.error.as_ref())
        .done()
}

pub(crate) fn lane_summary(lane: &LaneSummary) -> JsValue {
    let mut record = Record::new()
        .kind(lane.kind)
        .number("timers", lane.timers.rows as u64)
        .with("hasMoreTimers", lane.timers.more)
        .number("retrying", lane.retrying as u64)
        .number("claimed", lane.claimed as u64)
        .number("dead", lane.dead.rows as u64)
        .with("hasMoreDead", lane.dead.more);
    let times = [
        ("nextAt", lane.first_due_ms),
        ("pausedSince", lane.paused_since_ms),
    ];
    for (name, at_ms) in times {
        if let Some(at_ms) = at_ms {
            record = record.number(name, at_ms);
        }
    }
    record.done()
}

/// Made by the host at once: each property of a record costs a call, and scheduling is what is done most.
pub(crate) fn scheduled(host: &Host, scheduled: &Scheduled) -> JsValue {
    host.scheduled(
        scheduled.generation,
        scheduled.due_at_ms as f64,
        &literal(scheduled.state.as_str()),
        &literal(outcome_of(scheduled)),
    )
}

fn outcome_of(scheduled: &Scheduled) -> &'static str {
    match scheduled.outcome {
        ScheduleOutcome::Created => "created",
        ScheduleOutcome::Replaced => "replaced",
        ScheduleOutcome::Moved => "moved",
        ScheduleOutcome::Kept => "kept",
    }
}

pub(crate) fn cancelled(cancelled: &Cancelled) -> JsValue {
    Record::new()
        .word("state", cancelled.state.as_str())
        .generation(cancelled.generation)
        .done()
}

pub(crate) fn alarm_report(report: &AlarmReport) -> JsValue {
    let total = &report.total;
    let settled = &report.settled;
    let record = Record::new()
        .number("ticks", report.ticks.into())
        .number("fired", total.fired + settled.fired)
        .number("rescheduled", total.rescheduled + settled.rescheduled)
        .number("failed", total.failed + settled.failed)
        .number("dead", total.dead + settled.dead)
        .number("claimed", total.claimed)
        .number("quarantined", report.quarantined)
        .number("refused", report.refused)
        .with("stoppedOnBudget", report.stopped_on_budget)
        .number("worstLatenessMs", report.worst_lateness_ms);
    match report.next_alarm_ms {
        Some(at_ms) => record.number("nextAlarmAt", at_ms),
        None => record,
    }
    .done()
}
