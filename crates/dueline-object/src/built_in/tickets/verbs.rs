//! The verbs of tickets. Each returns a promise.

use dueline::kinds::ticket_expiry::{Counted, Hold, TicketId, Tickets};
use dueline::timers::TimerError;
use js_sys::{Array, Promise};
use wasm_bindgen::prelude::*;

use super::records::{aside_record, of_changed, of_opened, ticket_record, with_ticket};
use super::tickets_of;
use crate::built_in::BuiltIns;
use crate::built_in::change::{change, committed};
use crate::built_in::hooks::Hooks;
use crate::object::ObjectCore;
use crate::outcome::{Scheduling, time_of};
use crate::records::Record;
use crate::verbs::paged;

/// What is done to a ticket that is there.
#[derive(Clone, Copy)]
enum Step {
    Consume,
    Release,
    Cancel,
    Extend(u64),
}

#[wasm_bindgen]
impl ObjectCore {
    /// Of `{ outcome, ticket }`, or `{ outcome, reason, open, openMax }`, or `{ outcome, reason, id }`.
    #[wasm_bindgen(js_name = ticketOpen)]
    #[allow(
        clippy::too_many_arguments,
        reason = "an object would cost a call for each of its parts"
    )]
    pub fn ticket_open(
        &self,
        resource: String,
        ttl: f64,
        data: Vec<u8>,
        actor: Option<String>,
        key: Option<String>,
        session: Option<String>,
        resource_max: Option<f64>,
        actor_max: Option<f64>,
        effects: Option<f64>,
    ) -> Promise {
        let tickets = self.tickets(effects);
        let mut hold = Hold::new(resource, time_of(ttl)).data(data);
        if let Some(actor) = actor {
            hold = hold.actor(actor);
        }
        if let Some(key) = key {
            hold = hold.idempotency_key(key);
        }
        if let Some(session) = session {
            hold = hold.session(session);
        }
        if let Some(open_max) = resource_max {
            hold = hold.resource_max(time_of(open_max));
        }
        if let Some(open_max) = actor_max {
            hold = hold.actor_max(time_of(open_max));
        }
        self.verb(move |scheduling| {
            committed(
                scheduling,
                effects,
                move |Scheduling { partition, .. }| {
                    let (tickets, hold) = (tickets.clone(), hold.clone());
                    Box::pin(async move {
                        let planned = tickets?.plan_open(&partition, &hold).await?;
                        Ok(change(planned, of_opened))
                    })
                },
            )
        })
    }

    /// Of `{ outcome, ticket }`.
    #[wasm_bindgen(js_name = ticketConsume)]
    pub fn ticket_consume(&self, id: String, effects: Option<f64>) -> Promise {
        self.ticket_change(id, Step::Consume, effects)
    }

    /// Of `{ outcome, ticket }`.
    #[wasm_bindgen(js_name = ticketRelease)]
    pub fn ticket_release(&self, id: String, effects: Option<f64>) -> Promise {
        self.ticket_change(id, Step::Release, effects)
    }

    /// Of `{ outcome, ticket }`.
    #[wasm_bindgen(js_name = ticketCancel)]
    pub fn ticket_cancel(&self, id: String, effects: Option<f64>) -> Promise {
        self.ticket_change(id, Step::Cancel, effects)
    }

    /// Of `{ outcome, ticket }`.
    #[wasm_bindgen(js_name = ticketExtend)]
    pub fn ticket_extend(&self, id: String, ttl: f64, effects: Option<f64>) -> Promise {
        self.ticket_change(id, Step::Extend(time_of(ttl)), effects)
    }

    /// Of a ticket, or `undefined`.
    #[wasm_bindgen(js_name = ticketGet)]
    pub fn ticket_get(&self, id: String) -> Promise {
        let tickets = self.tickets(None);
        self.verb(|Scheduling { partition, .. }| {
            Box::pin(async move {
                let found = tickets?.read(&partition, id.parse()?).await?;
                Ok(found.as_ref().map_or(JsValue::UNDEFINED, ticket_record))
            })
        })
    }

    /// Of the ticket of an idempotency key, or `undefined`.
    #[wasm_bindgen(js_name = ticketFind)]
    pub fn ticket_find(&self, key: String) -> Promise {
        let tickets = self.tickets(None);
        self.verb(|Scheduling { partition, .. }| {
            Box::pin(async move {
                let found = tickets?.find(&partition, key).await?;
                Ok(found.as_ref().map_or(JsValue::UNDEFINED, ticket_record))
            })
        })
    }

    /// Of how many tickets of an actor, or else of a resource, are open.
    #[wasm_bindgen(js_name = ticketOpenCount)]
    pub fn ticket_open_count(&self, name: String, is_actor: bool) -> Promise {
        let tickets = self.tickets(None);
        self.verb(move |Scheduling { partition, .. }| {
            Box::pin(async move {
                let counted = counted(name, is_actor);
                let open = tickets?.open_count(&partition, &counted).await?;
                Ok(JsValue::from_f64(open as f64))
            })
        })
    }

    /// Of `{ tickets, unreadable, next }`.
    #[wasm_bindgen(js_name = ticketList)]
    pub fn ticket_list(&self, after: Option<String>, limit: u32) -> Promise {
        let tickets = self.tickets(None);
        self.verb(move |Scheduling { partition, .. }| {
            Box::pin(async move {
                let after = place(after)?;
                let page = tickets?.list(&partition, after, limit as usize).await?;
                let shown: Array = page.tickets.iter().map(ticket_record).collect();
                let unreadable = page
                    .unreadable
                    .iter()
                    .map(|id| JsValue::from(id.to_string()));
                let next = page.next.map(|next| next.to_string());
                Ok(paged("tickets", shown, next)
                    .with("unreadable", unreadable.collect::<Array>())
                    .done())
            })
        })
    }

    /// Of `{ tickets, next }`: those that could not be closed.
    #[wasm_bindgen(js_name = ticketSetAside)]
    pub fn ticket_set_aside(&self, after: Option<String>, limit: u32) -> Promise {
        let tickets = self.tickets(None);
        self.verb(move |Scheduling { partition, .. }| {
            Box::pin(async move {
                let after = place(after)?;
                let page = tickets?
                    .set_aside(&partition, after, limit as usize)
                    .await?;
                let shown: Array = page.tickets.iter().map(aside_record).collect();
                let next = page.next.map(|next| next.to_string());
                Ok(paged("tickets", shown, next).done())
            })
        })
    }

    /// Of whether there was such a ticket.
    #[wasm_bindgen(js_name = ticketRetry)]
    pub fn ticket_retry(&self, id: String) -> Promise {
        let tickets = self.tickets(None);
        self.verb(move |scheduling| {
            committed(scheduling, None, move |Scheduling { partition, .. }| {
                let (tickets, id) = (tickets.clone(), id.clone());
                Box::pin(async move {
                    let planned = tickets?.plan_retry(&partition, id.parse()?).await?;
                    Ok(change(planned, |is_there| JsValue::from_bool(*is_there)))
                })
            })
        })
    }

    /// Of `{ ticket, row }`, or `undefined`.
    #[wasm_bindgen(js_name = ticketDiscard)]
    pub fn ticket_discard(&self, id: String, effects: Option<f64>) -> Promise {
        let tickets = self.tickets(effects);
        self.verb(move |scheduling| {
            committed(
                scheduling,
                effects,
                move |Scheduling { partition, .. }| {
                    let (tickets, id) = (tickets.clone(), id.clone());
                    Box::pin(async move {
                        let planned = tickets?.plan_discard(&partition, id.parse()?).await?;
                        Ok(change(planned, |discarded| {
                            discarded.as_ref().map_or(JsValue::UNDEFINED, |discarded| {
                                let record = Record::new().bytes("row", &discarded.row);
                                with_ticket(record, discarded.ticket.as_ref()).done()
                            })
                        }))
                    })
                },
            )
        })
    }

    /// Of how many tickets of an actor, or else of a resource, there are.
    #[wasm_bindgen(js_name = ticketRecount)]
    pub fn ticket_recount(&self, name: String, is_actor: bool) -> Promise {
        let tickets = self.tickets(None);
        self.verb(move |Scheduling { partition, .. }| {
            Box::pin(async move {
                let counted = counted(name, is_actor);
                let open = tickets?.recount(&partition, &counted).await?;
                Ok(JsValue::from_f64(open as f64))
            })
        })
    }
}

impl ObjectCore {
    /// The tickets of this object; their hooks are asked by the verb of this number.
    fn tickets(&self, verb: Option<f64>) -> Result<Tickets, TimerError> {
        let settings = self.built_ins.as_ref().and_then(BuiltIns::tickets);
        let settings =
            settings.ok_or_else(|| TimerError::Invalid("this object has no tickets".into()))?;
        let hooks = Hooks::of_verb(self.host.clone(), verb);
        tickets_of(&settings, &self.scheduling.timers, &hooks)
    }

    fn ticket_change(&self, id: String, step: Step, effects: Option<f64>) -> Promise {
        let tickets = self.tickets(effects);
        self.verb(move |scheduling| {
            committed(
                scheduling,
                effects,
                move |Scheduling { partition, .. }| {
                    let (tickets, id) = (tickets.clone(), id.clone());
                    Box::pin(async move {
                        let (tickets, id) = (tickets?, id.parse()?);
                        let planned = match step {
                            Step::Consume => tickets.plan_consume(&partition, id).await?,
                            Step::Release => tickets.plan_release(&partition, id).await?,
                            Step::Cancel => tickets.plan_cancel(&partition, id).await?,
                            Step::Extend(ttl_ms) => {
                                tickets.plan_extend(&partition, id, ttl_ms).await?
                            }
                        };
                        Ok(change(planned, of_changed))
                    })
                },
            )
        })
    }
}

fn counted(name: String, is_actor: bool) -> Counted {
    if is_actor {
        Counted::Actor(name.into())
    } else {
        Counted::Resource(name.into())
    }
}

fn place(after: Option<String>) -> Result<Option<TicketId>, TimerError> {
    after.map(|text| text.parse()).transpose()
}
