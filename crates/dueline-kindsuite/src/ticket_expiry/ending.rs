//! Consuming, releasing, extending and cancelling.

use std::sync::Arc;

use dueline::kinds::ticket_expiry::{Changed, Counted, TICKET_EXPIRY, Ticket, Tickets};
use dueline::limits::DUE_MS_MAX;
use dueline::runtime::Runtime;
use dueline::store::{Batch, BatchOutcome, Precondition};
use dueline::timers::{Engine, Registry, TimerError, Timers};
use dueline_testkit::{ManualClock, SequenceEntropy, block_on};

use super::{Rig, TTL_MS, seat};
use crate::Make;

fn consume(rig: &Rig, ticket: &Ticket) -> Changed {
    block_on(rig.tickets.consume(&rig.world.partition, ticket.id())).unwrap()
}

fn extend(rig: &Rig, ticket: &Ticket, ttl_ms: u64) -> Changed {
    block_on(
        rig.tickets
            .extend(&rig.world.partition, ticket.id(), ttl_ms),
    )
    .unwrap()
}

pub fn a_consumed_ticket_is_gone_and_its_timer_drains(make: Make<'_>) {
    let rig = Rig::new(make);
    let ticket = rig.open(&seat());
    assert_eq!(consume(&rig, &ticket), Changed::Done(ticket.clone()));
    assert_eq!(rig.ticket_rows(), 0, "record, key and counters");
    assert_eq!(consume(&rig, &ticket), Changed::Gone);
    assert_eq!(extend(&rig, &ticket, TTL_MS), Changed::Gone);
    rig.world.advance_ms(TTL_MS);
    let report = rig.tick();
    assert_eq!(report.total.fired, 1);
    rig.assert_clean();
    assert_eq!(
        rig.ends(),
        [(ticket.id().to_string(), "consumed".to_owned())]
    );
}

pub fn a_released_ticket_frees_its_resource_at_once(make: Make<'_>) {
    let rig = Rig::new(make);
    let (one, two) = (rig.open(&seat()), rig.open(&seat().idempotency_key("2")));
    let partition = &rig.world.partition;
    let released = block_on(rig.tickets.release(partition, one.id())).unwrap();
    assert!(released.is_done());
    assert_eq!(rig.seat_count(), 1);
    assert_eq!(rig.count(&Counted::Actor("alice".into())), 1);
    assert!(consume(&rig, &two).is_done());
    assert_eq!(rig.ticket_rows(), 0, "0 is no row");
    let words: Vec<_> = rig.ends().into_iter().map(|(_, end)| end).collect();
    assert_eq!(words, ["released", "consumed"]);
}

/// A ticket can be used until the millisecond before its end, and not in that of its end.
pub fn a_ticket_is_not_used_after_its_time(make: Make<'_>) {
    let rig = Rig::new(make);
    let (used, late) = (rig.open(&seat()), rig.open(&seat().idempotency_key("2")));
    rig.world.advance_ms(TTL_MS - 1);
    assert!(consume(&rig, &used).is_done());
    rig.world.advance_ms(1);
    let partition = &rig.world.partition;
    assert_eq!(consume(&rig, &late), Changed::Expired(late.clone()));
    assert_eq!(extend(&rig, &late, TTL_MS), Changed::Expired(late.clone()));
    let released = block_on(rig.tickets.release(partition, late.id())).unwrap();
    assert_eq!(released, Changed::Expired(late.clone()));
    let cancelled = block_on(rig.tickets.cancel(partition, late.id())).unwrap();
    assert_eq!(cancelled, Changed::Expired(late.clone()));
    assert_eq!(rig.seat_count(), 1, "nothing of it has changed");
    rig.tick();
    rig.assert_clean();
}

/// A caller whose clock is behind is told by the store that the time is over.
pub fn the_stores_clock_decides_whether_there_is_time(make: Make<'_>) {
    let rig = Rig::new(make);
    let ticket = rig.open(&seat());
    rig.world.advance_ms(TTL_MS);
    let slow = ManualClock::new(i64::try_from(rig.world.now_ms() - 5_000).unwrap());
    let runtime = Runtime::new(
        Arc::new(slow.clone()),
        Arc::new(slow),
        Arc::new(SequenceEntropy::new(9)),
    );
    let tickets = Tickets::new(Timers::new(rig.world.shared(), runtime));
    let (partition, id) = (&rig.world.partition, ticket.id());
    let expired = Changed::Expired(ticket.clone());
    assert_eq!(block_on(tickets.consume(partition, id)).unwrap(), expired);
    assert_eq!(block_on(tickets.release(partition, id)).unwrap(), expired);
    assert!(matches!(
        block_on(tickets.extend(partition, id, TTL_MS)).unwrap(),
        Changed::Expired(_)
    ));
    assert!(matches!(
        block_on(tickets.cancel(partition, id)).unwrap(),
        Changed::Expired(_)
    ));
    let planned = block_on(tickets.plan_consume(partition, id)).unwrap();
    assert!(planned.outcome.is_done(), "by its own clock there is time");
    let outcome = rig.world.apply(planned.batch);
    assert!(matches!(outcome, BatchOutcome::DeadlinePassed { .. }));
    assert_eq!(rig.seat_count(), 1);
}

/// What a ticket is used for commits with its use, or neither does.
pub fn a_use_commits_with_what_it_is_for(make: Make<'_>) {
    let rig = Rig::new(make);
    let ticket = rig.open(&seat());
    let plan = || {
        let planned = rig.tickets.plan_consume(&rig.world.partition, ticket.id());
        block_on(planned).unwrap()
    };
    let (first, second) = (plan(), plan());
    rig.world
        .commit(Batch::new().put("sold", "to alice").append(first.batch));
    let lost = rig
        .world
        .apply(Batch::new().put("sold", "twice").append(second.batch));
    assert!(!lost.is_committed());
    assert_eq!(rig.world.get(&"sold".into()).unwrap(), "to alice");
    assert_eq!(rig.ends().len(), 1);
}

/// A use that was planned in time and commits while the ticket expires (its bound taken off: a clock that
/// was set back): one of the two ends is committed, and its outcome stays.
pub fn a_use_and_an_expiry_cannot_both_commit(make: Make<'_>) {
    for use_first in [true, false] {
        let rig = Rig::new(make);
        let ticket = rig.open(&seat());
        let planned = rig.tickets.plan_consume(&rig.world.partition, ticket.id());
        let mut batch = block_on(planned).unwrap().batch;
        batch
            .preconditions
            .retain(|guard| !matches!(guard, Precondition::NotAfter(_)));
        rig.world.advance_ms(TTL_MS);
        if use_first {
            let partition = rig.world.partition.clone();
            rig.world.store.before_commit(1, move |store, _, _| {
                let done = block_on(store.apply(&partition, batch)).unwrap();
                assert!(done.is_committed());
            });
            rig.tick();
        } else {
            rig.tick();
            assert!(!rig.world.apply(batch).is_committed());
        }
        let end = if use_first { "consumed" } else { "expired" };
        assert_eq!(rig.ends(), [(ticket.id().to_string(), end.to_owned())]);
        rig.assert_clean();
    }
}

pub fn an_extended_ticket_expires_at_its_later_time(make: Make<'_>) {
    let rig = Rig::new(make);
    let ticket = rig.open(&seat());
    rig.world.advance_ms(TTL_MS - 1_000);
    let Changed::Done(extended) = extend(&rig, &ticket, TTL_MS) else {
        panic!("there was a second left");
    };
    let until_ms = rig.world.now_ms() + TTL_MS;
    assert_eq!(extended.expires_at_ms(), until_ms);
    assert_eq!(rig.ticket_timers().len(), 1, "it keeps its timer");
    rig.world.advance_ms(1_000);
    let report = rig.tick();
    assert_eq!(report.total.rescheduled, 1);
    assert_eq!(report.next_wake_ms, Some(until_ms));
    rig.world.advance_ms(TTL_MS - 1_001);
    assert_eq!(rig.tick().total.progressed(), 0, "a millisecond early");
    assert!(rig.ends().is_empty());
    rig.world.advance_ms(1);
    assert_eq!(rig.tick().total.fired, 1);
    rig.assert_clean();
    assert_eq!(rig.ends().len(), 1);
}

/// A driver whose clock is ahead must not close an extended ticket before its time by the store's clock.
pub fn an_extended_ticket_is_not_closed_by_a_clock_that_is_ahead(make: Make<'_>) {
    let rig = Rig::new(make);
    let ticket = rig.open(&seat());
    assert!(extend(&rig, &ticket, TTL_MS + 60_000).is_done());
    rig.world.advance_ms(TTL_MS);
    let ahead = ManualClock::new(i64::try_from(rig.world.now_ms() + 90_000).unwrap());
    let runtime = Runtime::new(
        Arc::new(ahead.clone()),
        Arc::new(ahead),
        Arc::new(SequenceEntropy::new(9)),
    );
    let mut registry = Registry::new();
    registry
        .register(TICKET_EXPIRY, rig.tickets.registration())
        .unwrap();
    let engine = Engine::new(rig.world.shared(), runtime, registry);
    for _ in 0..3 {
        rig.world.tick(&engine);
    }
    assert!(rig.ends().is_empty());
    assert!(consume(&rig, &ticket).is_done());
}

pub fn an_extension_never_shortens(make: Make<'_>) {
    let rig = Rig::new(make);
    let ticket = rig.open(&seat());
    assert_eq!(
        extend(&rig, &ticket, TTL_MS - 1),
        Changed::Done(ticket.clone())
    );
    assert_eq!(extend(&rig, &ticket, TTL_MS), Changed::Done(ticket.clone()));
    let week_ms = 7 * 24 * 3_600_000;
    let too_long = rig
        .tickets
        .extend(&rig.world.partition, ticket.id(), week_ms);
    assert!(block_on(too_long).is_err());
    let id = ticket.id();
    let read = block_on(rig.tickets.read(&rig.world.partition, id)).unwrap();
    assert_eq!(read, Some(ticket));
}

/// However long tickets may be held: no ticket is held behind the latest due that a timer can have.
pub fn an_extension_ends_by_the_latest_due(make: Make<'_>) {
    let rig = Rig::with(make, |tickets| tickets.with_ttl_max_ms(u64::MAX));
    let ticket = rig.open(&seat());
    let (partition, id) = (&rig.world.partition, ticket.id());
    let longest_ms = DUE_MS_MAX - rig.world.now_ms();
    for ttl_ms in [longest_ms + 1, u64::MAX - 1] {
        let refused = block_on(rig.tickets.extend(partition, id, ttl_ms)).unwrap_err();
        assert!(matches!(refused, TimerError::Invalid(_)), "{refused}");
    }
    assert!(extend(&rig, &ticket, longest_ms).is_done());
    rig.world.advance_ms(TTL_MS);
    let report = rig.tick();
    assert_eq!((report.total.rescheduled, report.total.failed), (1, 0));
    assert!(consume(&rig, &ticket).is_done());
}

/// An extension that commits between the plan of the expiry and its commit wins.
pub fn an_expiry_loses_against_an_extension(make: Make<'_>) {
    let rig = Rig::new(make);
    let ticket = rig.open(&seat());
    let planned = rig
        .tickets
        .plan_extend(&rig.world.partition, ticket.id(), TTL_MS + 1_000);
    let mut batch = block_on(planned).unwrap().batch;
    batch
        .preconditions
        .retain(|guard| !matches!(guard, Precondition::NotAfter(_)));
    rig.world.advance_ms(TTL_MS);
    let partition = rig.world.partition.clone();
    rig.world.store.before_commit(1, move |store, _, _| {
        let done = block_on(store.apply(&partition, batch)).unwrap();
        assert!(done.is_committed());
    });
    let report = rig.tick();
    assert_eq!((report.total.fired, report.total.rescheduled), (0, 1));
    assert_eq!(rig.seat_count(), 1);
    rig.world.advance_ms(1_000);
    assert_eq!(rig.tick().total.fired, 1);
    rig.assert_clean();
}

pub fn a_cancelled_ticket_is_closed_by_its_timer_at_once(make: Make<'_>) {
    let rig = Rig::new(make);
    let ticket = rig.open(&seat());
    rig.world.advance_ms(1_000);
    let partition = &rig.world.partition;
    let cancelled = block_on(rig.tickets.cancel(partition, ticket.id())).unwrap();
    assert!(cancelled.is_done());
    assert!(matches!(consume(&rig, &ticket), Changed::Expired(_)));
    assert_eq!(rig.seat_count(), 1, "until its timer has run");
    assert_eq!(rig.tick().total.fired, 1);
    assert_eq!(rig.ticket_rows(), 0);
    assert_eq!(
        rig.ends(),
        [(ticket.id().to_string(), "cancelled".to_owned())]
    );
    rig.world.advance_ms(TTL_MS);
    assert_eq!(rig.tick().total.fired, 1, "its first timer drains");
    rig.assert_clean();
    assert_eq!(rig.ends().len(), 1);
}

/// A caller whose clock is ahead cancels: the ticket can no longer be used, though by the store's clock its
/// time is not over yet.
pub fn a_ticket_cancelled_by_a_clock_that_is_ahead_is_not_used(make: Make<'_>) {
    let rig = Rig::new(make);
    let ticket = rig.open(&seat());
    let ahead = ManualClock::new(i64::try_from(rig.world.now_ms() + 60_000).unwrap());
    let runtime = Runtime::new(
        Arc::new(ahead.clone()),
        Arc::new(ahead),
        Arc::new(SequenceEntropy::new(9)),
    );
    let tickets = Tickets::new(Timers::new(rig.world.shared(), runtime));
    let cancelled = tickets.cancel(&rig.world.partition, ticket.id());
    assert!(block_on(cancelled).unwrap().is_done());
    assert!(matches!(consume(&rig, &ticket), Changed::Expired(_)));
    rig.world.advance_ms(60_000);
    rig.tick();
    assert_eq!(rig.ends()[0].1, "cancelled");
}

/// A timer that is not the ticket's (requeued by hand, say) does nothing to it.
pub fn a_timer_that_is_not_the_tickets_drains(make: Make<'_>) {
    let rig = Rig::new(make);
    let ticket = rig.open(&seat());
    let stray = dueline::timers::Timer::new(TICKET_EXPIRY, ticket.id().as_bytes().to_vec());
    let stray = rig.world.timers.plan_new(&stray.due_at(5)).unwrap();
    rig.world.commit(stray.batch);
    rig.world.advance_ms(1);
    assert_eq!(rig.tick().total.fired, 1);
    assert_eq!(rig.ticket_timers().len(), 1);
    assert_eq!(rig.seat_count(), 1);
}
