//! Tickets: `dueline::kinds::ticket_expiry`.

mod asked;
mod records;
mod verbs;

use dueline::kinds::outcome_delivery::OutboxName;
use dueline::kinds::ticket_expiry::{TICKET_EXPIRY, Tickets};
use dueline::timers::{Registration, TimerError, TimerKind, Timers};
use wasm_bindgen::prelude::*;

use super::hooks::Hooks;
use crate::outcome::time_of;
use asked::{Asked, Sessions};

#[wasm_bindgen]
extern "C" {
    /// How tickets are held, and what is asked when they end.
    pub type TicketSettings;

    /// Whether the application adds effects to the end of each ticket.
    #[wasm_bindgen(method, getter, js_name = hasOnClose)]
    fn has_on_close(this: &TicketSettings) -> bool;

    /// Whether the application aborts external sessions.
    #[wasm_bindgen(method, getter, js_name = hasAbort)]
    fn has_abort(this: &TicketSettings) -> bool;

    /// Whether the application hears of events.
    #[wasm_bindgen(method, getter, js_name = hasOnEvent)]
    fn has_on_event(this: &TicketSettings) -> bool;

    #[wasm_bindgen(method, getter, js_name = ttlMaxMs)]
    fn ttl_max_ms(this: &TicketSettings) -> Option<f64>;

    #[wasm_bindgen(method, getter, js_name = callsPerTick)]
    fn calls_per_tick(this: &TicketSettings) -> Option<u32>;

    #[wasm_bindgen(method, getter, js_name = abortMs)]
    fn abort_ms(this: &TicketSettings) -> Option<f64>;

    /// The outbox that outcomes are appended to.
    #[wasm_bindgen(method, getter)]
    fn outbox(this: &TicketSettings) -> Option<String>;
}

pub(super) fn entry(
    settings: &TicketSettings,
    timers: &Timers,
    hooks: &Hooks,
) -> Result<(TimerKind, Registration), TimerError> {
    let tickets = tickets_of(settings, timers, hooks)?;
    Ok((TICKET_EXPIRY, tickets.registration()))
}

fn tickets_of(
    settings: &TicketSettings,
    timers: &Timers,
    hooks: &Hooks,
) -> Result<Tickets, TimerError> {
    let mut tickets = Tickets::new(timers.clone());
    if let Some(name) = settings.outbox() {
        tickets = tickets.with_outbox(OutboxName::new(name)?);
    }
    let asked = Asked {
        hooks: hooks.clone(),
        has_on_close: settings.has_on_close(),
        has_on_event: settings.has_on_event(),
    };
    if asked.has_on_close || asked.has_on_event {
        tickets = tickets.with_hooks(asked);
    }
    if settings.has_abort() {
        tickets = tickets.with_sessions(Sessions(hooks.clone()));
    }
    if let Some(ttl_max_ms) = settings.ttl_max_ms() {
        tickets = tickets.with_ttl_max_ms(time_of(ttl_max_ms));
    }
    if let Some(calls_per_tick) = settings.calls_per_tick() {
        tickets = tickets.with_calls_per_tick(calls_per_tick);
    }
    if let Some(abort_ms) = settings.abort_ms() {
        tickets = tickets.with_abort_ms(time_of(abort_ms));
    }
    Ok(tickets)
}
