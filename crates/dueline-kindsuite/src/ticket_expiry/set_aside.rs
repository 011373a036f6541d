//! Rows that do not decode: the ticket is set aside, and nobody waits for it.

use bytes::Bytes;
use dueline::kinds::outcome_delivery::OUTCOME_DELIVERY;
use dueline::kinds::ticket_expiry::{
    Counted, Hold, SetAside, TICKET_EXPIRY, Ticket, TicketEvent, TicketId,
};
use dueline::store::{Batch, Key, NamespaceStore, StoreErrorKind};
use dueline::timers::{TickBudget, TimerError};
use dueline_testkit::block_on;

use super::{Rig, TTL_MS, Told, seat};
use crate::Make;

fn table(letter: u8, field: &[u8]) -> Key {
    let mut key = vec![0x62, 0, TICKET_EXPIRY.0, letter];
    key.extend_from_slice(field);
    key.into()
}

fn record(id: TicketId) -> Key {
    table(b't', id.as_bytes())
}

fn listed(rig: &Rig) -> Vec<SetAside> {
    let page = rig.tickets.set_aside(&rig.world.partition, None, 100);
    block_on(page).unwrap().tickets
}

/// A ticket that has expired beside a damaged row, after the tick that found it so.
fn damaged(make: Make<'_>, key: impl Fn(&Ticket) -> Key, told: &Told) -> (Rig, Ticket, Bytes) {
    let rig = Rig::with(make, |tickets| tickets.with_hooks(told.clone()));
    let ticket = rig.open(&seat());
    // The outbox has a state to be damaged.
    let other = rig.open(&Hold::new("stall", TTL_MS));
    block_on(rig.tickets.release(&rig.world.partition, other.id())).unwrap();
    let key = key(&ticket);
    let sound = rig.world.get(&key).unwrap();
    rig.damage(&key, "\u{2}of another version");
    rig.world.advance_ms(TTL_MS);
    let report = rig.tick();
    assert_eq!(report.total.rescheduled, 1, "{report:?}");
    (rig, ticket, sound)
}

type KeyOf = fn(&Ticket) -> Key;

const KEYS: [(KeyOf, &str); 5] = [
    (|ticket| record(ticket.id()), "a ticket: unknown version"),
    (
        |_| table(b'r', b"seat"),
        "the counter of open tickets: unknown version",
    ),
    (
        |_| table(b'a', b"alice"),
        "the counter of open tickets: unknown version",
    ),
    (
        |_| table(b'i', b"request-1"),
        "the idempotency key of a ticket: unknown version",
    ),
    (
        |_| {
            [&[0x62, 0, OUTCOME_DELIVERY.0, b's'][..], b"ends"]
                .concat()
                .into()
        },
        "the state of an outbox: unknown version",
    ),
];

/// Whichever row does not decode: the ticket is listed with the reason, nothing of it is written, it is
/// tried once a minute, and closed when the row is as it was.
pub fn a_ticket_with_a_damaged_row_is_tried_once_a_minute(make: Make<'_>) {
    for (key, reason) in KEYS {
        let told = Told::default();
        let (rig, ticket, sound) = damaged(make, key, &told);
        let since_ms = rig.world.now_ms();
        let mut expected = SetAside {
            id: ticket.id(),
            since_ms,
            next_try_ms: since_ms + 60_000,
            tries: 1,
            reason: reason.to_owned(),
        };
        assert_eq!(listed(&rig), [expected.clone()]);
        let event = TicketEvent::SetAside {
            id: ticket.id(),
            reason: reason.to_owned(),
            tries: 1,
        };
        assert_eq!(told.take(), [event]);
        rig.world.advance_ms(59_999);
        assert_eq!(rig.tick().total.progressed(), 0);
        rig.world.advance_ms(1);
        assert_eq!(rig.tick().total.rescheduled, 1);
        expected.next_try_ms += 60_000;
        expected.tries = 2;
        assert_eq!(listed(&rig), [expected]);
        rig.damage(&key(&ticket), sound);
        rig.world.advance_ms(60_000);
        assert_eq!(rig.tick().total.fired, 1, "{reason}");
        rig.assert_clean();
        assert_eq!(rig.ends().len(), 2);
    }
}

/// After a repair it need not wait for its minute; the timer it had drains.
pub fn a_repaired_ticket_is_tried_at_once(make: Make<'_>) {
    for (key, _) in KEYS {
        let (rig, ticket, sound) = damaged(make, key, &Told::default());
        let partition = &rig.world.partition;
        rig.world.advance_ms(1_000);
        assert!(block_on(rig.tickets.retry(partition, ticket.id())).unwrap());
        assert_eq!(rig.tick().total.rescheduled, 1, "still damaged");
        rig.damage(&key(&ticket), sound);
        rig.world.advance_ms(1_000);
        assert!(block_on(rig.tickets.retry(partition, ticket.id())).unwrap());
        assert_eq!(rig.tick().total.fired, 1);
        assert!(listed(&rig).is_empty());
        assert!(!block_on(rig.tickets.retry(partition, ticket.id())).unwrap());
        rig.world.advance_ms(60_000);
        assert_eq!(rig.tick().total.fired, 2, "the timers before drain");
        rig.assert_clean();
        assert_eq!(rig.ends().len(), 2);
    }
}

/// Forty damaged tickets in front of forty healthy ones: those are closed by the second tick of 32, and
/// the damaged ones cost one run a minute each.
pub fn damaged_tickets_starve_nobody(make: Make<'_>) {
    let rig = Rig::new(make);
    for number in 0..80_u64 {
        let ticket = rig.open(&Hold::new("seat", TTL_MS + number));
        if number < 40 {
            rig.damage(&record(ticket.id()), "junk");
        }
    }
    rig.world.advance_ms(TTL_MS + 100);
    let mut closed = 0;
    for _ in 0..3 {
        closed += rig.tick().total.fired;
    }
    assert_eq!(closed, 40);
    assert_eq!(listed(&rig).len(), 40);
    let quiet = rig.tick();
    assert_eq!(quiet.total.progressed(), 0, "a minute is a minute");
    rig.world.advance_ms(60_000);
    rig.open(&Hold::new("stall", 1));
    rig.world.advance_ms(1);
    let small = TickBudget {
        max_fired: 50,
        max_per_kind: 50,
        ..TickBudget::default()
    };
    let report = rig.world.tick_within(&rig.engine, small);
    assert_eq!((report.total.fired, report.total.rescheduled), (1, 40));
}

/// The verbs say `Corrupt` and write nothing.
pub fn the_verbs_refuse_a_damaged_row(make: Make<'_>) {
    for (number, (key, _)) in KEYS.into_iter().enumerate() {
        let rig = Rig::new(make);
        let ticket = rig.open(&seat());
        let other = rig.open(&Hold::new("stall", TTL_MS));
        let partition = &rig.world.partition;
        block_on(rig.tickets.release(partition, other.id())).unwrap();
        rig.damage(&key(&ticket), "\u{2}");
        let rows = rig.world.kind_rows();
        let mut said = vec![
            block_on(rig.tickets.consume(partition, ticket.id())).map(drop),
            block_on(rig.tickets.release(partition, ticket.id())).map(drop),
        ];
        if number < 4 {
            said.push(block_on(rig.tickets.open(partition, &seat())).map(drop));
        }
        for answer in said {
            let Err(TimerError::Store(error)) = answer else {
                panic!("row {number}: {answer:?}");
            };
            assert_eq!(error.kind(), StoreErrorKind::Corrupt);
        }
        assert_eq!(rig.world.kind_rows(), rows);
        let listed = block_on(rig.tickets.list(partition, None, 10)).unwrap();
        assert_eq!(listed.unreadable.len(), usize::from(number == 0));
        assert_eq!(listed.tickets.len(), usize::from(number != 0));
    }
}

/// A ticket that is given up goes with everything that decodes; what does not is counted anew.
pub fn a_discarded_ticket_is_counted_out(make: Make<'_>) {
    for (number, (key, _)) in KEYS.into_iter().enumerate().take(4) {
        let (rig, ticket, _) = damaged(make, key, &Told::default());
        let partition = &rig.world.partition;
        let row = rig.world.get(&record(ticket.id())).unwrap();
        let discarded = block_on(rig.tickets.discard(partition, ticket.id())).unwrap();
        let discarded = discarded.unwrap();
        assert_eq!(discarded.row, row);
        assert_eq!(discarded.ticket.is_some(), number > 0);
        assert!(listed(&rig).is_empty());
        for counted in ticket_counters() {
            assert_eq!(
                block_on(rig.tickets.recount(partition, &counted)).unwrap(),
                0
            );
            assert_eq!(rig.count(&counted), 0);
        }
        // The key of a ticket that did not decode names nothing now, and is free.
        let again = rig.open(&seat());
        block_on(rig.tickets.consume(partition, again.id())).unwrap();
        rig.world.advance_ms(TTL_MS);
        rig.world.tick_until_quiet(&rig.engine, 5);
        rig.assert_clean();
        let words: Vec<_> = rig.ends().into_iter().map(|(_, end)| end).collect();
        let expected: &[&str] = if number > 0 {
            &["released", "discarded", "consumed"]
        } else {
            &["released", "consumed"]
        };
        assert_eq!(words, expected);
        let none = block_on(rig.tickets.discard(partition, ticket.id())).unwrap();
        assert_eq!(none, None);
    }
}

/// Both repairs commit with writes of the application's, or are not there; a plan that was overtaken loses its
/// guard.
pub fn repairs_commit_with_other_writes(make: Make<'_>) {
    let (rig, ticket, _) = damaged(make, KEYS[1].0, &Told::default());
    let (world, tickets) = (&rig.world, &rig.tickets);
    let (partition, id) = (&world.partition, ticket.id());
    let noted = |note: &'static str, planned: Batch| {
        let batch = Batch::new().require_absent(note).put(note, "x");
        let outcome = world.store.apply(partition, batch.append(planned));
        block_on(outcome).unwrap().is_committed()
    };
    let retry = block_on(tickets.plan_retry(partition, id)).unwrap();
    let discard = block_on(tickets.plan_discard(partition, id)).unwrap();
    assert!(retry.outcome);
    assert_eq!(discard.outcome.as_ref().unwrap().ticket, Some(ticket));
    assert!(noted("retried", retry.batch.clone()));
    assert!(!noted("discarded", discard.batch), "it is tried meanwhile");
    assert!(!noted("retried again", retry.batch), "it is tried already");
    let discard = block_on(tickets.plan_discard(partition, id)).unwrap();
    let batch = &discard.batch;
    assert!(batch.preconditions.len() <= 7 && batch.writes.len() <= 8);
    assert!(noted("discarded", discard.batch));
    assert!(world.get(&"discarded".into()).is_some());
    let retry = block_on(tickets.plan_retry(partition, id)).unwrap();
    let discard = block_on(tickets.plan_discard(partition, id)).unwrap();
    assert_eq!((retry.outcome, discard.outcome), (false, None));
    assert!(retry.batch.is_empty() && discard.batch.is_empty());
}

fn ticket_counters() -> [Counted; 2] {
    [
        Counted::Resource("seat".into()),
        Counted::Actor("alice".into()),
    ]
}

/// A counter is counted anew whatever it was: damaged, wrong, or gone. Then the tickets close.
pub fn a_counter_is_counted_anew(make: Make<'_>) {
    for lost in [false, true] {
        let rig = Rig::new(make);
        for key in ["1", "2", "3"] {
            rig.open(&seat().idempotency_key(key));
        }
        let partition = &rig.world.partition;
        let resource = table(b'r', b"seat");
        if lost {
            let gone = Batch::new().delete(resource);
            rig.world.commit(gone);
        } else {
            rig.damage(&resource, "");
        }
        rig.world.advance_ms(TTL_MS);
        assert_eq!(rig.tick().total.rescheduled, 3);
        let [seat, _] = ticket_counters();
        assert_eq!(block_on(rig.tickets.recount(partition, &seat)).unwrap(), 3);
        assert_eq!(rig.seat_count(), 3);
        rig.world.advance_ms(60_000);
        assert_eq!(rig.tick().total.fired, 3);
        rig.assert_clean();
        assert_eq!(rig.ends().len(), 3);
    }
}

/// A ticket that is opened or ended while a recount walks makes the recount start over.
pub fn a_recount_holds_against_openings(make: Make<'_>) {
    let rig = Rig::new(make);
    let first = rig.open(&seat());
    let partition = rig.world.partition.clone();
    let tickets = dueline::kinds::ticket_expiry::Tickets::new(dueline::timers::Timers::new(
        std::sync::Arc::clone(rig.world.store.inner()) as std::sync::Arc<dyn NamespaceStore>,
        rig.world.runtime.clone(),
    ));
    let of = partition.clone();
    rig.world.store.before_commit(1, move |_, _, _| {
        // One more and one less: the count is as it was, the counter is not.
        let hold = Hold::new("seat", TTL_MS).actor("bob");
        let opened = block_on(tickets.open(&of, &hold)).unwrap();
        assert!(opened.ticket().is_some());
        block_on(tickets.consume(&of, first.id())).unwrap();
    });
    let before = rig.world.costs();
    let [seat, _] = ticket_counters();
    assert_eq!(block_on(rig.tickets.recount(&partition, &seat)).unwrap(), 1);
    assert_eq!(rig.world.costs_since(&before).calls.applies, 2);
    assert_eq!(rig.seat_count(), 1);
}

/// The row that sets a ticket aside is damaged itself: the ticket is still tried and closed.
pub fn a_damaged_row_of_a_ticket_set_aside_loses_nothing(make: Make<'_>) {
    let (key, _) = KEYS[1];
    let (rig, ticket, sound) = damaged(make, key, &Told::default());
    rig.damage(&table(b'x', ticket.id().as_bytes()), "junk");
    assert!(listed(&rig)[0].reason.contains("does not decode"));
    rig.world.advance_ms(60_000);
    assert_eq!(rig.tick().total.rescheduled, 1);
    assert_eq!(listed(&rig)[0].tries, 1, "set aside anew");
    rig.damage(&table(b'x', ticket.id().as_bytes()), "junk");
    rig.damage(&key(&ticket), sound);
    rig.world.advance_ms(60_000);
    assert_eq!(rig.tick().total.fired, 1);
    rig.assert_clean();
}

/// An extension of a ticket that is set aside holds: it goes on to its later time as a sound one.
pub fn a_ticket_set_aside_can_be_mended_with_a_later_time(make: Make<'_>) {
    let (key, _) = KEYS[0];
    let (rig, ticket, sound) = damaged(make, key, &Told::default());
    let mut later = sound.to_vec();
    // expires_at_ms lies behind version, flags and opened_at_ms.
    let until_ms = rig.world.now_ms() + 300_000;
    later[10..18].copy_from_slice(&until_ms.to_be_bytes());
    rig.damage(&key(&ticket), later);
    rig.world.advance_ms(60_000);
    let report = rig.tick();
    assert_eq!(report.total.rescheduled, 1);
    assert_eq!(report.next_wake_ms, Some(until_ms));
    assert!(listed(&rig).is_empty());
    let partition = &rig.world.partition;
    assert!(
        block_on(rig.tickets.consume(partition, ticket.id()))
            .unwrap()
            .is_done()
    );
    rig.world.advance_ms(300_000);
    rig.tick();
    rig.assert_clean();
}
