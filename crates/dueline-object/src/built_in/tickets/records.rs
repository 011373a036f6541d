//! Tickets as plain objects.

use dueline::kinds::ticket_expiry::{Changed, Opened, Refusal, SetAside, Ticket};
use wasm_bindgen::prelude::*;

use crate::records::Record;

pub(super) fn of_opened(opened: &Opened) -> JsValue {
    let record = Record::new();
    match opened {
        Opened::New(ticket) => with_ticket(record.word("outcome", "new"), Some(ticket)),
        Opened::Existing(ticket) => with_ticket(record.word("outcome", "existing"), Some(ticket)),
        Opened::Refused(refusal) => refused(record.word("outcome", "refused"), *refusal),
    }
    .done()
}

fn refused(record: Record, refusal: Refusal) -> Record {
    let (reason, open, open_max) = match refusal {
        Refusal::ResourceFull { open, open_max } => ("resource_full", open, open_max),
        Refusal::ActorFull { open, open_max } => ("actor_full", open, open_max),
        Refusal::KeyTaken { id } => {
            return record
                .word("reason", "key_taken")
                .with("id", id.to_string());
        }
        Refusal::KeyClosing { id } => {
            return record
                .word("reason", "key_closing")
                .with("id", id.to_string());
        }
        _ => return record,
    };
    record
        .word("reason", reason)
        .number("open", open)
        .number("openMax", open_max)
}

pub(super) fn of_changed(changed: &Changed) -> JsValue {
    let (outcome, ticket) = match changed {
        Changed::Done(ticket) => ("done", Some(ticket)),
        Changed::Gone => ("gone", None),
        Changed::Expired(ticket) => ("expired", Some(ticket)),
    };
    with_ticket(Record::new().word("outcome", outcome), ticket).done()
}

pub(super) fn with_ticket(record: Record, ticket: Option<&Ticket>) -> Record {
    match ticket {
        Some(ticket) => record.with("ticket", ticket_record(ticket)),
        None => record,
    }
}

pub(super) fn ticket_record(ticket: &Ticket) -> JsValue {
    let mut record = Record::new()
        .with("id", ticket.id().to_string())
        .bytes("resource", ticket.resource())
        .bytes("data", ticket.data())
        .number("openedAt", ticket.opened_at_ms())
        .number("expiresAt", ticket.expires_at_ms())
        .with("isCancelled", ticket.is_cancelled());
    let names = [
        ("actor", ticket.actor()),
        ("key", ticket.idempotency_key()),
        ("session", ticket.session()),
    ];
    for (name, bytes) in names {
        if let Some(bytes) = bytes {
            record = record.bytes(name, bytes);
        }
    }
    record.done()
}

pub(super) fn aside_record(aside: &SetAside) -> JsValue {
    Record::new()
        .with("id", aside.id.to_string())
        .number("since", aside.since_ms)
        .number("nextTryAt", aside.next_try_ms)
        .number("tries", aside.tries.into())
        .with("reason", aside.reason.as_str())
        .done()
}
