//! What tickets ask the application.

use dueline::BoxFuture;
use dueline::kinds::ticket_expiry::{End, SessionAbort, Ticket, TicketEvent, TicketHooks};
use dueline::store::{Batch, Partition, StoreError};
use dueline::timers::{HandlerError, TimerCtx};

use super::records::ticket_record;
use crate::built_in::hooks::Hooks;
use crate::records::Record;

/// The application's `onClose` and `onEvent`.
pub(super) struct Asked {
    pub(super) hooks: Hooks,
    pub(super) has_on_close: bool,
    pub(super) has_on_event: bool,
}

impl TicketHooks for Asked {
    fn on_close<'a>(
        &'a self,
        _: &'a TimerCtx<'a>,
        ticket: &'a Ticket,
        end: End,
    ) -> BoxFuture<'a, Result<Batch, StoreError>> {
        Box::pin(async move {
            if !self.has_on_close {
                return Ok(Batch::new());
            }
            let closed = Record::new()
                .with("ticket", ticket_record(ticket))
                .word("end", end.as_str())
                .done();
            let effects = self.hooks.effects("ticket.close", closed).await;
            effects
                .map_err(|error| StoreError::invalid(format!("`onClose` failed: {}", error.text())))
        })
    }

    fn on_event(&self, _: &Partition, event: &TicketEvent) {
        if !self.has_on_event {
            return;
        }
        let told = match event {
            TicketEvent::AbortFailed { id, error } => Record::new()
                .word("what", "abort_failed")
                .with("id", id.to_string())
                .with("error", error.as_str()),
            TicketEvent::SetAside { id, reason, tries } => Record::new()
                .word("what", "set_aside")
                .with("id", id.to_string())
                .with("reason", reason.as_str())
                .number("tries", (*tries).into()),
            _ => return,
        };
        self.hooks.tell("ticket.event", &told.done());
    }
}

/// The application's `abort`.
pub(super) struct Sessions(pub(super) Hooks);

impl SessionAbort for Sessions {
    fn abort<'a>(
        &'a self,
        _: &'a Partition,
        ticket: &'a Ticket,
    ) -> BoxFuture<'a, Result<(), HandlerError>> {
        Box::pin(async move {
            let asked = self.0.ask("ticket.abort", ticket_record(ticket));
            asked.await.map(drop)
        })
    }
}
