//! Expiring within the tick: once, whatever goes wrong.

use dueline::BoxFuture;
use dueline::kinds::ticket_expiry::{Counted, End, Hold, TICKET_EXPIRY, Ticket, TicketHooks};
use dueline::store::{Batch, StoreError, StoreErrorKind};
use dueline::timers::{Timer, TimerCtx};
use dueline_testkit::{CommitFault, block_on};

use super::{Rig, TTL_MS, seat};
use crate::Make;

pub fn an_expired_ticket_is_closed_once(make: Make<'_>) {
    let rig = Rig::new(make);
    let ticket = rig.open(&seat());
    rig.world.advance_ms(TTL_MS - 1);
    assert_eq!(rig.tick().total.progressed(), 0, "a millisecond early");
    rig.world.advance_ms(1);
    assert_eq!(rig.tick().total.fired, 1);
    rig.assert_clean();
    let expired = [(ticket.id().to_string(), "expired".to_owned())];
    assert_eq!(rig.ends(), expired);
    rig.world.advance_ms(TTL_MS);
    assert_eq!(rig.tick().total.progressed(), 0);
    assert_eq!(rig.ends(), expired);
}

/// Without an outbox nothing is told; without a key and an actor there is less to remove.
pub fn a_plain_ticket_leaves_nothing(make: Make<'_>) {
    let world = crate::World::new(make);
    let rig = Rig::over(world, |tickets| tickets);
    let plain = dueline::kinds::ticket_expiry::Tickets::new(rig.world.timers.clone());
    let partition = &rig.world.partition;
    block_on(plain.open(partition, &Hold::new("seat", TTL_MS))).unwrap();
    let engine = rig.world.engine(TICKET_EXPIRY, plain.registration());
    rig.world.advance_ms(TTL_MS);
    assert_eq!(rig.world.tick(&engine).total.fired, 1);
    assert!(rig.world.kind_rows().is_empty());
    assert!(rig.world.timer_keys().is_empty());
}

/// Tickets of one resource share its counter: in a group each sees what the one before it left.
pub fn a_group_counts_down_to_no_row(make: Make<'_>) {
    let rig = Rig::new(make);
    for number in 0..10 {
        let actor = if number % 2 == 0 { "alice" } else { "bob" };
        rig.open(&Hold::new("seat", TTL_MS + number).actor(actor));
    }
    rig.world.advance_ms(TTL_MS + 4);
    let before = rig.world.costs();
    assert_eq!(rig.tick().total.fired, 5);
    assert_eq!(rig.world.costs_since(&before).calls.groups, 1);
    assert_eq!(rig.seat_count(), 5);
    assert_eq!(rig.count(&Counted::Actor("alice".into())), 2);
    rig.world.advance_ms(TTL_MS);
    assert_eq!(rig.tick().total.fired, 5);
    rig.assert_clean();
    let mut ends = rig.ends();
    assert_eq!(ends.len(), 10);
    ends.dedup();
    assert_eq!(ends.len(), 10, "each is told once");
}

/// Every commit of an expiry may fail in every way: the ticket is closed once, and told once.
pub fn a_failed_commit_never_closes_twice(make: Make<'_>) {
    let faults = [
        CommitFault::AnswerLost,
        CommitFault::NotWritten(StoreErrorKind::Unknown),
        CommitFault::NotWritten(StoreErrorKind::Unavailable),
        CommitFault::NotWritten(StoreErrorKind::Full),
        CommitFault::StoppedAfter {
            batches: 1,
            kind: StoreErrorKind::Unknown,
        },
    ];
    for fault in faults {
        for nth in 1..=3 {
            let rig = Rig::new(make);
            rig.open(&seat());
            rig.open(&seat().idempotency_key("2"));
            rig.world.advance_ms(TTL_MS);
            rig.world.store.fail_commit(nth, fault);
            rig.tick();
            rig.world.store.heal();
            rig.world.advance_ms(60_000);
            rig.world.tick_until_quiet(&rig.engine, 10);
            rig.assert_clean();
            assert_eq!(rig.ends().len(), 2, "{fault:?} at commit {nth}");
        }
    }
}

/// Every read of an expiry may fail: it is tried again, without an attempt.
pub fn a_failed_read_only_delays(make: Make<'_>) {
    for nth in 1..=6 {
        let rig = Rig::new(make);
        rig.open(&seat());
        rig.world.advance_ms(TTL_MS);
        rig.world.store.fail_read(nth, StoreErrorKind::Unavailable);
        rig.tick();
        rig.world.store.heal();
        rig.world.advance_ms(60_000);
        rig.world.tick_until_quiet(&rig.engine, 10);
        rig.assert_clean();
        assert_eq!(rig.ends().len(), 1, "read {nth}");
    }
}

/// Writes as much as a hook may.
struct Writes70;

impl TicketHooks for Writes70 {
    fn on_close<'a>(
        &'a self,
        _: &'a TimerCtx<'a>,
        _: &'a Ticket,
        _: End,
    ) -> BoxFuture<'a, Result<Batch, StoreError>> {
        let batch = (0..70).fold(Batch::new(), |batch, number| {
            batch.put(format!("own/{number}"), "x".repeat(1_024))
        });
        Box::pin(std::future::ready(Ok(batch)))
    }
}

/// Every field at its limit, hooks too, set aside before, the first of its outbox: the batches of opening
/// and closing stay within theirs.
pub fn the_largest_ticket_fits_its_batches(make: Make<'_>) {
    let rig = Rig::with(make, |tickets| tickets.with_hooks(Writes70));
    let long = |len: usize| "\u{1}".repeat(len);
    let ticket = Hold::new(long(256), TTL_MS)
        .actor(long(256))
        .idempotency_key(long(256))
        .session(long(1_024))
        .data(long(16 * 1_024));
    let id = rig.open(&ticket).id();
    assert_eq!(rig.world.largest_batch().0, 10);
    let counter = rig.kind_rows(TICKET_EXPIRY.0, b'r').remove(0);
    rig.damage(&counter.0, "junk");
    rig.world.advance_ms(TTL_MS);
    assert_eq!(rig.tick().total.rescheduled, 1);
    rig.damage(&counter.0, counter.1);
    block_on(rig.tickets.retry(&rig.world.partition, id)).unwrap();
    assert_eq!(rig.tick().total.fired, 1);
    assert_eq!(rig.ends().len(), 1);
    let (ops, bytes) = rig.world.largest_batch();
    assert_eq!(ops, 70 + 15 + 3, "the hooks', the ticket's, the engine's");
    assert!(bytes < 260_000, "{bytes}");
}

/// A timer whose reference is no id is set aside in the dead class, where somebody finds it.
pub fn a_malformed_reference_goes_to_the_dead_class(make: Make<'_>) {
    let rig = Rig::new(make);
    for reference in ["", "seat", "seventeen bytes.."] {
        let timer = Timer::new(TICKET_EXPIRY, reference).due_at(1);
        let planned = rig.world.timers.plan_new(&timer).unwrap();
        rig.world.commit(planned.batch);
    }
    rig.world.advance_ms(1);
    assert_eq!(rig.tick().total.dead, 3);
    assert!(rig.ticket_timers().is_empty());
}
