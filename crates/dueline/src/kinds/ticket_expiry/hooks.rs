use super::{End, Ticket, TicketId};
use crate::future::{BoxFuture, MaybeSendSync};
use crate::store::{Batch, Partition, StoreError};
use crate::timers::{HandlerError, TimerCtx};

/// Aborts the external session of a ticket that has ended unused: an upload, an authorization of a
/// card, a reservation elsewhere.
pub trait SessionAbort: MaybeSendSync + 'static {
    /// Aborts the session of this ticket, which has one.
    ///
    /// It is called before the ticket is closed, at least once for a ticket that expires or is
    /// cancelled, and may be called again: after a crash, or while the closing is tried again. Make it
    /// idempotent. An error, a panic or a call over its time limit is logged and told to
    /// [`TicketHooks::on_event`], and the ticket is closed nevertheless.
    fn abort<'a>(
        &'a self,
        partition: &'a Partition,
        ticket: &'a Ticket,
    ) -> BoxFuture<'a, Result<(), HandlerError>>;
}

/// What an application adds to its tickets. Every method has a default that does nothing.
pub trait TicketHooks: MaybeSendSync + 'static {
    /// Writes of the application's own that commit together with the end of a ticket, whatever end it
    /// is, at most 70 preconditions and writes.
    ///
    /// Read through the context alone, and guard what you read: if the batch loses a guard, the end is
    /// planned again, and this called again. An error keeps the ticket open, and it is tried again; one
    /// of kind `Corrupt` sets it aside. The batch must not append to the outbox of the tickets. A hook
    /// that hangs is dropped: in a tick after 5 s, as a run that failed; in a verb after
    /// [`Tickets::with_close_ms`](super::Tickets::with_close_ms), which is then
    /// [`TimerError::Deadline`](crate::timers::TimerError::Deadline) and has changed nothing.
    fn on_close<'a>(
        &'a self,
        ctx: &'a TimerCtx<'a>,
        ticket: &'a Ticket,
        end: End,
    ) -> BoxFuture<'a, Result<Batch, StoreError>> {
        let _ = (ctx, ticket, end);
        Box::pin(std::future::ready(Ok(Batch::new())))
    }

    /// Something that is worth a meter happened. It may be told more than once for one event, as the
    /// commit that follows may have to be planned again.
    fn on_event(&self, partition: &Partition, event: &TicketEvent) {
        let _ = (partition, event);
    }
}

/// What an application may want to count.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TicketEvent {
    /// An external session could not be aborted. The ticket is closed nevertheless.
    AbortFailed {
        /// The ticket.
        id: TicketId,
        /// The error, panic or time limit.
        error: String,
    },
    /// A ticket could not be closed, because a row of it or of its counters does not decode. It is tried
    /// again every minute, beside the healthy ones.
    SetAside {
        /// The ticket.
        id: TicketId,
        /// What does not decode.
        reason: String,
        /// How often it was tried.
        tries: u32,
    },
}

/// Hooks that add nothing.
pub(super) struct NoHooks;

impl TicketHooks for NoHooks {}
