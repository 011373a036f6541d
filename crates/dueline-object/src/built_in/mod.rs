//! The built-in kinds of the engine, for the build of the module that has them (feature `kinds`).
//!
//! Each file is a kind: its verbs, its registration, and what it asks the host. Which kinds an object has is
//! said when it is opened ([`BuiltIns`]); a kind that is left out waits, as every kind without a handler.
//!
//! A verb may carry effects of the host's: they are done in the transaction that commits the change, and not
//! at all if there is nothing to change ([`change`]).

mod change;
mod gated;
mod hooks;
mod leases;
mod outboxes;
mod quotas;
mod reservations;
mod tickets;

use dueline::timers::{Registry, TimerError, Timers};
use js_sys::Array;
use wasm_bindgen::prelude::*;

use crate::platform::{Host, ObjectSettings};
use hooks::Hooks;
use leases::LeaseSettings;
pub(crate) use outboxes::told_with;
use reservations::ReservationSettings;
use tickets::TicketSettings;

#[wasm_bindgen]
extern "C" {
    /// The built-in kinds of an object, each with its settings.
    #[derive(Clone, Debug)]
    pub type BuiltIns;

    #[wasm_bindgen(method, getter, js_name = builtIns)]
    pub(crate) fn built_ins(this: &ObjectSettings) -> Option<BuiltIns>;

    #[wasm_bindgen(method, getter)]
    fn leases(this: &BuiltIns) -> Option<LeaseSettings>;

    /// Whether there are gated records.
    #[wasm_bindgen(method, getter)]
    fn gated(this: &BuiltIns) -> Option<js_sys::Object>;

    /// [`OutboxSettings`](outboxes::OutboxSettings), one for each outbox.
    #[wasm_bindgen(method, getter)]
    fn outboxes(this: &BuiltIns) -> Option<Array>;

    #[wasm_bindgen(method, getter)]
    fn reservations(this: &BuiltIns) -> Option<ReservationSettings>;

    /// Whether there are quotas; which ones is said with each verb.
    #[wasm_bindgen(method, getter, js_name = hasQuotas)]
    fn has_quotas(this: &BuiltIns) -> Option<bool>;

    #[wasm_bindgen(method, getter)]
    fn tickets(this: &BuiltIns) -> Option<TicketSettings>;
}

/// Registers the built-in kinds that the settings name.
pub(crate) fn register(
    registry: Registry,
    settings: &ObjectSettings,
    timers: &Timers,
    host: &Host,
) -> Result<Registry, TimerError> {
    let Some(wanted) = settings.built_ins() else {
        return Ok(registry);
    };
    let hooks = Hooks::new(host.clone());
    let entries = [
        wanted
            .leases()
            .map(|settings| Ok(leases::entry(&settings, &hooks))),
        wanted
            .reservations()
            .map(|settings| Ok(reservations::entry(&settings, timers, &hooks))),
        wanted
            .has_quotas()
            .unwrap_or(false)
            .then(|| Ok(quotas::entry())),
        wanted
            .outboxes()
            .map(|settings| outboxes::entry(&settings, &hooks, timers)),
        wanted.gated().map(|_| Ok(gated::entry(&hooks, timers))),
        wanted
            .tickets()
            .map(|settings| tickets::entry(&settings, timers, &hooks)),
    ];
    entries
        .into_iter()
        .flatten()
        .try_fold(registry, |registry, entry| {
            let (kind, registration) = entry?;
            registry
                .with(kind, registration)
                .map_err(|error| TimerError::Invalid(error.to_string().into()))
        })
}
