//! Reservations: `dueline::kinds::reservation_reconcile`.

use bytes::Bytes;
use dueline::BoxFuture;
use dueline::kinds::outcome_delivery::OutboxName;
use dueline::kinds::reservation_reconcile::{
    End, Forgotten, OnAbandon, Reservation, ReservationId, ReservationState, Reservations,
    Settlement, Terms,
};
use dueline::store::Batch;
use dueline::timers::{HandlerError, Registration, TimerCtx, TimerError, TimerKind, Timers};
use js_sys::Promise;
use wasm_bindgen::prelude::*;

use super::change::{Change, change, committed};
use super::hooks::Hooks;
use crate::object::ObjectCore;
use crate::outcome::{Scheduling, time_of};
use crate::records::Record;

#[wasm_bindgen]
extern "C" {
    /// What the application is asked of reservations.
    pub type ReservationSettings;

    /// Whether the application is asked what else is written when one is abandoned.
    #[wasm_bindgen(method, getter, js_name = hasOnAbandon)]
    fn has_on_abandon(this: &ReservationSettings) -> bool;
}

pub(super) fn entry(
    settings: &ReservationSettings,
    timers: &Timers,
    hooks: &Hooks,
) -> (TimerKind, Registration) {
    let reservations = Reservations::new(timers.clone());
    if settings.has_on_abandon() {
        reservations.on_abandon(Abandoned(hooks.clone())).entry()
    } else {
        reservations.entry()
    }
}

/// The application's `onAbandon`: the number of its effects, 0 without any.
struct Abandoned(Hooks);

impl OnAbandon for Abandoned {
    fn effects<'a>(
        &'a self,
        _: &'a TimerCtx<'a>,
        reservation: &'a Reservation,
    ) -> BoxFuture<'a, Result<Batch, HandlerError>> {
        Box::pin(
            self.0
                .effects("reservation.abandon", reservation_record(reservation)),
        )
    }
}

#[wasm_bindgen]
impl ObjectCore {
    /// Of `{ outcome, reservation }`.
    #[wasm_bindgen(js_name = reservationReserve)]
    #[allow(
        clippy::too_many_arguments,
        reason = "an object would cost a call for each of its parts"
    )]
    pub fn reservation_reserve(
        &self,
        id: String,
        commit_within: f64,
        skew: Option<f64>,
        keep_for: Option<f64>,
        outbox: Option<String>,
        detail: Vec<u8>,
        effects: Option<f64>,
    ) -> Promise {
        let mut terms = Terms::commit_within_ms(time_of(commit_within)).detail(detail);
        if let Some(skew) = skew {
            terms = terms.skew_ms(time_of(skew));
        }
        if let Some(keep_for) = keep_for {
            terms = terms.kept_for_ms(time_of(keep_for));
        }
        self.verb(move |scheduling| {
            committed(
                scheduling,
                effects,
                move |Scheduling { timers, partition }| {
                    let (id, terms, outbox) = (id.clone(), terms.clone(), outbox.clone());
                    Box::pin(async move {
                        let id = ReservationId::new(id)?;
                        let terms = match outbox {
                            Some(outbox) => terms.outbox(OutboxName::new(outbox)?),
                            None => terms,
                        };
                        let reservations = Reservations::new(timers);
                        // Read first, so that effects are kept from one that is there already.
                        if let Some(other) = reservations.read(&partition, &id).await? {
                            return Ok((Batch::new(), of_reservation("exists", Some(&other))));
                        }
                        let planned = reservations.plan_reserve(&id, &terms)?;
                        Ok(change(planned, |made| of_reservation("made", Some(made))))
                    })
                },
            )
        })
    }

    /// Of `{ outcome, reservation }`.
    #[wasm_bindgen(js_name = reservationCommit)]
    pub fn reservation_commit(&self, id: String, serial: String, effects: Option<f64>) -> Promise {
        self.step(id, serial, Step::Commit, effects)
    }

    /// Of `{ outcome, reservation }`.
    #[wasm_bindgen(js_name = reservationAbort)]
    pub fn reservation_abort(
        &self,
        id: String,
        serial: String,
        reason: String,
        effects: Option<f64>,
    ) -> Promise {
        self.step(id, serial, Step::Abort(reason), effects)
    }

    /// Of `{ outcome, reservation }`.
    #[wasm_bindgen(js_name = reservationExtend)]
    pub fn reservation_extend(
        &self,
        id: String,
        serial: String,
        detail: Vec<u8>,
        commit_within: f64,
        effects: Option<f64>,
    ) -> Promise {
        let step = Step::Extend {
            detail: Bytes::from(detail),
            commit_within_ms: time_of(commit_within),
        };
        self.step(id, serial, step, effects)
    }

    /// Of `{ outcome, reservation }`.
    #[wasm_bindgen(js_name = reservationForget)]
    pub fn reservation_forget(&self, id: String, serial: String) -> Promise {
        self.step(id, serial, Step::Forget, None)
    }

    /// Of a reservation, or `undefined`.
    #[wasm_bindgen(js_name = reservationGet)]
    pub fn reservation_get(&self, id: String) -> Promise {
        self.verb(move |Scheduling { timers, partition }| {
            Box::pin(async move {
                let id = ReservationId::new(id)?;
                let found = Reservations::new(timers).read(&partition, &id).await?;
                Ok(found.map_or(JsValue::UNDEFINED, |found| reservation_record(&found)))
            })
        })
    }
}

/// What is done to a reservation that is there. One for all, so that it is one piece of code.
#[derive(Clone)]
enum Step {
    Commit,
    Abort(String),
    Extend {
        detail: Bytes,
        commit_within_ms: u64,
    },
    Forget,
}

impl ObjectCore {
    fn step(&self, id: String, serial: String, step: Step, effects: Option<f64>) -> Promise {
        self.verb(move |scheduling| {
            committed(scheduling, effects, move |scheduling| {
                let (id, serial) = (id.clone(), serial.clone());
                Box::pin(planned(scheduling, id, serial, step.clone()))
            })
        })
    }
}

async fn planned(
    Scheduling { timers, partition }: Scheduling,
    id: String,
    serial: String,
    step: Step,
) -> Result<Change, TimerError> {
    let id = ReservationId::new(id)?;
    let serial = serial
        .parse()
        .map_err(|_| TimerError::Invalid("this is not the serial of a reservation".into()))?;
    let store = timers.store().clone();
    let (reads, on) = (&*store, &partition);
    let reservations = Reservations::new(timers);
    let planned = match step {
        Step::Commit => reservations.plan_commit(reads, on, &id, serial).await?,
        Step::Abort(reason) => {
            reservations
                .plan_abort(reads, on, &id, serial, reason)
                .await?
        }
        Step::Extend {
            detail,
            commit_within_ms,
        } => {
            reservations
                .plan_extend(reads, on, &id, serial, detail, commit_within_ms)
                .await?
        }
        Step::Forget => {
            let planned = reservations.plan_forget(reads, on, &id, serial).await?;
            return Ok(change(planned, forgotten));
        }
    };
    Ok(change(planned, settled))
}

fn forgotten(forgotten: &Forgotten) -> JsValue {
    match forgotten {
        Forgotten::Done => of_reservation("forgotten", None),
        Forgotten::StillPending(pending) => of_reservation("still_pending", Some(pending)),
        Forgotten::Missing => of_reservation("missing", None),
    }
}

fn settled(settlement: &Settlement) -> JsValue {
    match settlement {
        Settlement::Settled(now) => of_reservation("settled", Some(now)),
        Settlement::EndedBefore(ended) => of_reservation("ended_before", Some(ended)),
        Settlement::TooLate(pending) => of_reservation("too_late", Some(pending)),
        Settlement::Missing => of_reservation("missing", None),
    }
}

fn of_reservation(outcome: &'static str, reservation: Option<&Reservation>) -> JsValue {
    let record = Record::new().word("outcome", outcome);
    match reservation {
        Some(reservation) => record.with("reservation", reservation_record(reservation)),
        None => record,
    }
    .done()
}

fn reservation_record(reservation: &Reservation) -> JsValue {
    let mut record = Record::new()
        .bytes("id", reservation.id.as_bytes())
        .with("serial", reservation.serial.to_string())
        .number("reservedAt", reservation.reserved_at_ms)
        .number("commitBy", reservation.commit_by_ms)
        .number("deadline", reservation.deadline_ms)
        .bytes("detail", &reservation.detail);
    record = match &reservation.state {
        ReservationState::Pending => record.word("state", "pending"),
        ReservationState::Ended { end, ended_at_ms } => {
            let record = record
                .word("state", end.name())
                .number("endedAt", *ended_at_ms);
            match end {
                End::Aborted(reason) => record.with("reason", reason.as_str()),
                End::Committed | End::Abandoned => record,
            }
        }
    };
    match reservation.kept_until_ms {
        Some(kept_until_ms) => record.number("keptUntil", kept_until_ms),
        None => record,
    }
    .done()
}
