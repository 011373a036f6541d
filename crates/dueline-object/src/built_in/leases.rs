//! Leases: `dueline::kinds::lease_sweep`.

use std::sync::Arc;

use dueline::BoxFuture;
use dueline::kinds::lease_sweep::{
    Drain, Fence, Grant, Lease, LeaseName, LeaseOwner, LeaseSource, LeaseState, LeaseSweep, Leases,
    NothingToDrain, Release, Renewal,
};
use dueline::store::{Batch, NamespaceStore, Partition};
use dueline::timers::{HandlerError, Registration, TimerKind, Timers};
use js_sys::Promise;
use wasm_bindgen::prelude::*;

use super::change::{change, committed};
use super::hooks::Hooks;
use crate::object::ObjectCore;
use crate::outcome::{Scheduling, marked, time_of};
use crate::records::Record;

#[wasm_bindgen]
extern "C" {
    /// How leases are swept.
    pub type LeaseSettings;

    /// Whether the application is asked whether a holder's work has drained.
    #[wasm_bindgen(method, getter, js_name = hasDrain)]
    fn has_drain(this: &LeaseSettings) -> bool;

    #[wasm_bindgen(method, getter, js_name = recheckMs)]
    fn recheck_ms(this: &LeaseSettings) -> Option<f64>;
}

pub(super) fn entry(settings: &LeaseSettings, hooks: &Hooks) -> (TimerKind, Registration) {
    let sweep = if settings.has_drain() {
        LeaseSweep::new(Source(hooks.clone()))
    } else {
        LeaseSweep::new(NothingToDrain)
    };
    match settings.recheck_ms() {
        Some(recheck_ms) => sweep.recheck_ms(time_of(recheck_ms)),
        None => sweep,
    }
    .entry()
}

/// The application's `drain`: `"drained"`, `"missing"`, or a watermark.
struct Source(Hooks);

impl LeaseSource for Source {
    fn drain<'a>(
        &'a self,
        _: &'a Partition,
        lease: &'a Lease,
    ) -> BoxFuture<'a, Result<Drain, HandlerError>> {
        Box::pin(async move {
            let answer = self.0.ask("lease.drain", lease_record(lease)).await?;
            Ok(match answer.as_f64() {
                Some(watermark) => Drain::Working {
                    watermark: time_of(watermark),
                },
                None if answer == "missing" => Drain::Missing,
                None => Drain::Drained,
            })
        })
    }
}

#[wasm_bindgen]
impl ObjectCore {
    /// Of `{ outcome, lease }`.
    #[wasm_bindgen(js_name = leaseGrant)]
    pub fn lease_grant(
        &self,
        name: String,
        owner: String,
        term: f64,
        effects: Option<f64>,
    ) -> Promise {
        self.verb(move |scheduling| {
            committed(
                scheduling,
                effects,
                move |Scheduling { timers, partition }| {
                    let (name, owner) = (name.clone(), owner.clone());
                    Box::pin(async move {
                        let (name, owner) = (LeaseName::new(name)?, LeaseOwner::new(owner)?);
                        let (leases, reads) = leases_of(timers);
                        let planned = leases
                            .plan_grant(&*reads, &partition, &name, &owner, time_of(term))
                            .await?;
                        Ok(change(planned, |grant| match grant {
                            Grant::Granted(lease) => of_lease("granted", Some(lease)),
                            Grant::Held(lease) => of_lease("held", Some(lease)),
                        }))
                    })
                },
            )
        })
    }

    /// Of `{ outcome, lease }`.
    #[wasm_bindgen(js_name = leaseRenew)]
    pub fn lease_renew(
        &self,
        name: String,
        epoch: f64,
        term: f64,
        effects: Option<f64>,
    ) -> Promise {
        self.verb(move |scheduling| {
            committed(
                scheduling,
                effects,
                move |Scheduling { timers, partition }| {
                    let name = name.clone();
                    Box::pin(async move {
                        let name = LeaseName::new(name)?;
                        let (leases, reads) = leases_of(timers);
                        let planned = leases
                            .plan_renew(&*reads, &partition, &name, time_of(epoch), time_of(term))
                            .await?;
                        Ok(change(planned, |renewal| match renewal {
                            Renewal::Renewed(lease) => of_lease("renewed", Some(lease)),
                            Renewal::Lost(holder) => of_lease("lost", holder.as_ref()),
                        }))
                    })
                },
            )
        })
    }

    /// Of `{ outcome, lease }`.
    #[wasm_bindgen(js_name = leaseRelease)]
    pub fn lease_release(&self, name: String, epoch: f64, effects: Option<f64>) -> Promise {
        self.verb(move |scheduling| {
            committed(
                scheduling,
                effects,
                move |Scheduling { timers, partition }| {
                    let name = name.clone();
                    Box::pin(async move {
                        let name = LeaseName::new(name)?;
                        let (leases, reads) = leases_of(timers);
                        let planned = leases
                            .plan_release(&*reads, &partition, &name, time_of(epoch))
                            .await?;
                        Ok(change(planned, |release| match release {
                            Release::Released => of_lease("released", None),
                            Release::Lost(holder) => of_lease("lost", holder.as_ref()),
                        }))
                    })
                },
            )
        })
    }

    /// Of whether nobody held it.
    #[wasm_bindgen(js_name = leaseForget)]
    pub fn lease_forget(&self, name: String) -> Promise {
        self.verb(move |scheduling| {
            committed(scheduling, None, move |Scheduling { timers, partition }| {
                let name = name.clone();
                Box::pin(async move {
                    let name = LeaseName::new(name)?;
                    let (leases, reads) = leases_of(timers);
                    let planned = leases.plan_forget(&*reads, &partition, &name).await?;
                    Ok(change(planned, |is_forgotten| {
                        JsValue::from_bool(*is_forgotten)
                    }))
                })
            })
        })
    }

    /// Does effects if the lease is held in this epoch, up to this time if there is one. Of whether it is.
    #[wasm_bindgen(js_name = leaseFenced)]
    pub fn lease_fenced(
        &self,
        name: String,
        epoch: f64,
        until: Option<f64>,
        effects: f64,
    ) -> Promise {
        self.verb(move |Scheduling { timers, partition }| {
            Box::pin(async move {
                let fence = Fence::new(&LeaseName::new(name)?, time_of(epoch));
                let fence = match until {
                    Some(until) => fence.until(time_of(until)),
                    None => fence,
                };
                let batch = fence.guard(Batch::new()).append(marked(Some(effects)));
                let done = timers.store().apply(&partition, batch).await?;
                Ok(JsValue::from_bool(done.is_committed()))
            })
        })
    }

    /// Of `{ outcome, lease }`, or `{ outcome, lastEpoch, watermark }`.
    #[wasm_bindgen(js_name = leaseGet)]
    pub fn lease_get(&self, name: String) -> Promise {
        self.verb(move |Scheduling { timers, partition }| {
            Box::pin(async move {
                let name = LeaseName::new(name)?;
                Ok(match Leases::new(timers).read(&partition, &name).await? {
                    LeaseState::Held(lease) => of_lease("held", Some(&lease)),
                    LeaseState::Vacant {
                        last_epoch,
                        watermark,
                    } => Record::new()
                        .word("outcome", "vacant")
                        .number("lastEpoch", last_epoch)
                        .number("watermark", watermark)
                        .done(),
                })
            })
        })
    }
}

/// The verbs, and what their plans read.
fn leases_of(timers: Timers) -> (Leases, Arc<dyn NamespaceStore>) {
    let reads = Arc::clone(timers.store());
    (Leases::new(timers), reads)
}

fn of_lease(outcome: &'static str, lease: Option<&Lease>) -> JsValue {
    let record = Record::new().word("outcome", outcome);
    match lease {
        Some(lease) => record.with("lease", lease_record(lease)),
        None => record,
    }
    .done()
}

fn lease_record(lease: &Lease) -> JsValue {
    Record::new()
        .bytes("name", lease.name.as_bytes())
        .bytes("owner", lease.owner.as_bytes())
        .number("epoch", lease.epoch)
        .number("expiresAt", lease.expires_at_ms)
        .number("watermark", lease.watermark)
        .done()
}
