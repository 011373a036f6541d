use std::sync::Arc;
use std::time::Duration;

use super::found::Found;
use super::rows::Aside;
use super::{End, SessionAbort, Ticket, TicketEvent, TicketId, Tickets};
use crate::future::{BoxFuture, catch_panic, or_deadline};
use crate::kinds::owner::{Turn, drained, later, later_due_ms};
use crate::mutants::{Mutant, planted};
use crate::store::{StoreError, StoreErrorKind};
use crate::timers::{
    DetachedHandler, DueTimer, Fired, HandlerError, Registration, RetryPolicy, TimerCtx,
    TimerHandler,
};

/// How long a ticket that is set aside waits for its next try, in milliseconds.
pub const TICKET_SET_ASIDE_MS: u64 = 60_000;
/// How many tickets expire in one commit, if no session is to be aborted.
const GROUP_MAX: u16 = 64;
/// What a call has beside the abort, for its reads, in milliseconds.
const CALL_SLACK_MS: u64 = 5_000;

impl Tickets {
    /// The handler of [`TICKET_EXPIRY`](super::TICKET_EXPIRY), to be registered under it.
    ///
    /// Without sessions it is `Inline`, up to 64 tickets in a commit. With
    /// [`with_sessions`](Self::with_sessions) it is `Detached`: the call aborts the session, the settling
    /// closes the ticket, and a tick starts at most [`with_calls_per_tick`](Self::with_calls_per_tick) of
    /// them. Either retries for ever, as a ticket that is never closed would hold its resource for ever.
    pub fn registration(&self) -> Registration {
        let expiry = Expiry {
            tickets: self.clone(),
        };
        let for_ever = RetryPolicy {
            attempts_max: None,
            ..RetryPolicy::default()
        };
        let registration = match &self.sessions {
            None => Registration::inline(expiry).group_max(GROUP_MAX),
            Some(sessions) => {
                let calls = AbortAndExpire {
                    expiry,
                    sessions: Arc::clone(sessions),
                };
                Registration::detached(calls)
                    .concurrency(self.calls_per_tick)
                    .per_tick_max(self.calls_per_tick)
                    .deadline_ms(self.abort_ms.saturating_add(CALL_SLACK_MS))
            }
        };
        registration.retry(for_ever)
    }
}

/// Closes tickets within the tick.
struct Expiry {
    tickets: Tickets,
}

/// Goes out to abort the session, then closes the ticket.
struct AbortAndExpire {
    expiry: Expiry,
    sessions: Arc<dyn SessionAbort>,
}

impl TimerHandler for Expiry {
    fn fire<'a>(
        &'a self,
        ctx: &'a TimerCtx<'a>,
        timer: &'a DueTimer,
    ) -> BoxFuture<'a, Result<Fired, HandlerError>> {
        Box::pin(self.plan(ctx, timer, true))
    }
}

impl DetachedHandler for AbortAndExpire {
    /// Whether the ticket decoded, so that its session is known to be aborted as far as it can be.
    type Output = bool;

    fn call<'a>(
        &'a self,
        ctx: &'a TimerCtx<'a>,
        timer: &'a DueTimer,
    ) -> BoxFuture<'a, Result<bool, HandlerError>> {
        Box::pin(async move {
            let found = Found::read(ctx.reads(), ctx.partition(), id_of(timer)?).await?;
            // A ticket that does not decode has no session to go by; settling sets it aside.
            let Ok(ticket) = found.ticket() else {
                return Ok(false);
            };
            if let Some(ticket) = ticket
                && ticket.session().is_some()
                && found.turn(timer) == Turn::Due
            {
                self.abort(ctx, &ticket).await;
            }
            Ok(true)
        })
    }

    fn settle<'a>(
        &'a self,
        ctx: &'a TimerCtx<'a>,
        timer: &'a DueTimer,
        was_readable: &'a bool,
    ) -> BoxFuture<'a, Result<Fired, HandlerError>> {
        Box::pin(self.expiry.plan(ctx, timer, *was_readable))
    }
}

impl AbortAndExpire {
    /// Best effort: whatever comes of it, the ticket is closed.
    async fn abort(&self, ctx: &TimerCtx<'_>, ticket: &Ticket) {
        let tickets = &self.expiry.tickets;
        let limit = Duration::from_millis(tickets.abort_ms);
        let call = catch_panic(|| self.sessions.abort(ctx.partition(), ticket));
        let sleep = || tickets.timers.runtime().sleep(limit);
        if let Err(error) = or_deadline(call, sleep, limit).await {
            let event = TicketEvent::AbortFailed {
                id: ticket.id(),
                error: error.text().to_owned(),
            };
            tickets.tell(ctx.partition(), &event);
        }
    }
}

impl Expiry {
    async fn plan(
        &self,
        ctx: &TimerCtx<'_>,
        timer: &DueTimer,
        was_readable: bool,
    ) -> Result<Fired, HandlerError> {
        let found = Found::read(ctx.reads(), ctx.partition(), id_of(timer)?).await?;
        if found.is_gone() {
            return Ok(if found.is_set_aside() {
                Fired::Done(found.remove())
            } else {
                drained()
            });
        }
        match found.turn(timer) {
            Turn::Stale => Ok(drained()),
            Turn::Early if !planted(Mutant::TicketExtensionLost) => Ok(postponed(timer, &found)?),
            Turn::Early | Turn::Due => match self.close(ctx, &found, was_readable).await {
                Ok(fired) => Ok(fired),
                Err(error) if error.kind() == StoreErrorKind::Corrupt => {
                    Ok(self.set_aside(ctx, timer, &found, &error))
                }
                Err(error) => Err(error.into()),
            },
        }
    }

    async fn close(
        &self,
        ctx: &TimerCtx<'_>,
        found: &Found,
        was_readable: bool,
    ) -> Result<Fired, StoreError> {
        let Some(ticket) = found.ticket()? else {
            return Ok(drained());
        };
        if !was_readable {
            return Err(StoreError::corrupt(
                "it did not decode when its session was to be aborted",
            ));
        }
        let end = if ticket.is_cancelled() {
            End::Cancelled
        } else {
            End::Expired
        };
        let batch = self.tickets.closing(ctx, found, &ticket, end).await?;
        Ok(Fired::Done(batch))
    }

    /// The ticket waits a minute, and is listed for repair.
    fn set_aside(
        &self,
        ctx: &TimerCtx<'_>,
        timer: &DueTimer,
        found: &Found,
        error: &StoreError,
    ) -> Fired {
        let earlier = found.aside();
        let due_at_ms = later_due_ms(timer, ctx.now_ms().saturating_add(TICKET_SET_ASIDE_MS));
        let aside = Aside {
            since_ms: earlier.as_ref().map_or(ctx.now_ms(), |row| row.since_ms),
            timer_due_ms: due_at_ms,
            tries: earlier.map_or(0, |row| row.tries).saturating_add(1),
            reason: error.detail().to_owned(),
        };
        let event = TicketEvent::SetAside {
            id: found.id,
            reason: aside.reason.clone(),
            tries: aside.tries,
        };
        self.tickets.tell(ctx.partition(), &event);
        later(timer, due_at_ms, found.set_aside(&aside))
    }
}

/// The ticket was extended: the timer goes on to its real end.
fn postponed(timer: &DueTimer, found: &Found) -> Result<Fired, StoreError> {
    let Some(ticket) = found.ticket()? else {
        return Ok(drained());
    };
    let mut record = ticket.record().clone();
    record.timer_due_ms = later_due_ms(timer, record.expires_at_ms);
    let due_at_ms = record.timer_due_ms;
    Ok(later(timer, due_at_ms, found.put_back(&record)))
}

fn id_of(timer: &DueTimer) -> Result<TicketId, HandlerError> {
    TicketId::read(timer.reference())
        .ok_or_else(|| HandlerError::undecodable("the reference is not the id of a ticket"))
}
