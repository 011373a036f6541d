//! Opening: the idempotency key, the counters and their limits.

use bytes::Bytes;
use dueline::kinds::ticket_expiry::{Counted, Hold, Opened, Refusal, Tickets};
use dueline::store::{Batch, BatchOutcome, NamespaceStore, StoreErrorKind};
use dueline::timers::{TimerError, Timers};
use dueline_testkit::{CommitFault, block_on};

use super::{Rig, TTL_MS, seat};
use crate::{Make, World};

fn ask(rig: &Rig, hold: &Hold) -> Opened {
    block_on(rig.tickets.open(&rig.world.partition, hold)).unwrap()
}

pub fn a_ticket_is_opened_with_its_timer_and_counted(make: Make<'_>) {
    let rig = Rig::new(make);
    let ticket = rig.open(&seat().session("upload-9").data("row 12"));
    assert_eq!(rig.ticket_rows(), 4, "record, key, two counters");
    assert_eq!(rig.ticket_timers().len(), 1);
    assert_eq!(rig.seat_count(), 1);
    assert_eq!(rig.count(&Counted::Actor("alice".into())), 1);
    let partition = &rig.world.partition;
    let read = block_on(rig.tickets.read(partition, ticket.id())).unwrap();
    assert_eq!(read.as_ref(), Some(&ticket));
    let found = block_on(rig.tickets.find(partition, "request-1")).unwrap();
    assert_eq!(found, read);
    assert_eq!(ticket.resource(), "seat");
    assert_eq!(ticket.actor().unwrap(), "alice");
    assert_eq!(ticket.session().unwrap(), "upload-9");
    assert_eq!(ticket.data(), "row 12");
    assert_eq!(ticket.opened_at_ms(), rig.world.now_ms());
    assert_eq!(ticket.expires_at_ms(), rig.world.now_ms() + TTL_MS);
    assert_eq!(ticket.id().to_string().parse().ok(), Some(ticket.id()));
}

pub fn open_tickets_are_listed_in_the_order_of_their_opening(make: Make<'_>) {
    let rig = Rig::new(make);
    let opened: Vec<_> = (0..5)
        .map(|_| rig.open(&Hold::new("seat", TTL_MS)))
        .collect();
    let mut listed = Vec::new();
    let mut after = None;
    loop {
        let page = block_on(rig.tickets.list(&rig.world.partition, after, 2)).unwrap();
        listed.extend(page.tickets);
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(listed, opened);
}

/// Junk behind a ticket's key, where a page ends or as all of a page.
pub fn a_key_of_no_ticket_ends_no_list(make: Make<'_>) {
    let rig = Rig::new(make);
    let opened: Vec<_> = (0..3)
        .map(|_| rig.open(&Hold::new("seat", TTL_MS)))
        .collect();
    for junk in [&b"x"[..], b"y"] {
        let key = [b"b\0\x02t", &opened[0].id().as_bytes()[..], junk].concat();
        rig.damage(&Bytes::from(key), "junk");
    }
    for limit in 1..=5 {
        let mut listed = Vec::new();
        let mut after = None;
        loop {
            let page = block_on(rig.tickets.list(&rig.world.partition, after, limit)).unwrap();
            assert!(page.tickets.len() <= limit);
            listed.extend(page.tickets);
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        assert_eq!(listed, opened, "{limit} at a time");
    }
}

pub fn the_same_request_gets_the_same_ticket(make: Make<'_>) {
    let rig = Rig::new(make);
    let ticket = rig.open(&seat().session("one"));
    rig.world.advance_ms(1_000);
    let again = seat().session("two").resource_max(1).actor_max(1);
    assert_eq!(ask(&rig, &again), Opened::Existing(ticket));
    assert_eq!(rig.seat_count(), 1);
    assert_eq!(rig.ticket_timers().len(), 1);
}

pub fn another_request_under_the_key_is_refused(make: Make<'_>) {
    let rig = Rig::new(make);
    let id = rig.open(&seat()).id();
    let other = |hold: Hold| hold.idempotency_key("request-1");
    for hold in [
        other(Hold::new("stall", TTL_MS).actor("alice")),
        other(Hold::new("seat", TTL_MS).actor("bob")),
        other(Hold::new("seat", TTL_MS)),
        other(Hold::new("seat", TTL_MS + 1).actor("alice")),
        other(Hold::new("seat", TTL_MS).actor("alice").data("more")),
    ] {
        let refused = Opened::Refused(Refusal::KeyTaken { id });
        assert_eq!(ask(&rig, &hold), refused, "{hold:?}");
    }
    assert_eq!(rig.ticket_rows(), 4, "nothing is written");
}

pub fn a_key_is_free_when_its_ticket_has_ended(make: Make<'_>) {
    let rig = Rig::new(make);
    let first = rig.open(&seat());
    block_on(rig.tickets.consume(&rig.world.partition, first.id())).unwrap();
    let second = rig.open(&seat());
    rig.world.advance_ms(TTL_MS);
    let closing = Refusal::KeyClosing { id: second.id() };
    assert_eq!(ask(&rig, &seat()), Opened::Refused(closing));
    rig.tick();
    assert_ne!(rig.open(&seat()).id(), second.id());
}

pub fn a_limit_refuses_with_its_figures(make: Make<'_>) {
    let rig = Rig::new(make);
    let of = |resource: &'static str, actor: &'static str| {
        let hold = Hold::new(resource, TTL_MS).actor(actor);
        hold.resource_max(2).actor_max(3)
    };
    rig.open(&of("seat", "alice"));
    rig.open(&of("seat", "alice"));
    let full = Refusal::ResourceFull {
        open: 2,
        open_max: 2,
    };
    assert_eq!(ask(&rig, &of("seat", "bob")), Opened::Refused(full));
    rig.open(&of("stall", "alice"));
    let full = Refusal::ActorFull {
        open: 3,
        open_max: 3,
    };
    assert_eq!(ask(&rig, &of("stall", "alice")), Opened::Refused(full));
    let told = full.to_string();
    assert_eq!(told, "3 tickets of the actor are open, and 3 are allowed");
    // A limit of 0 closes a resource, and others' tickets count for nobody else.
    let none = Hold::new("box", TTL_MS).resource_max(0);
    assert!(matches!(ask(&rig, &none), Opened::Refused(_)));
    rig.open(&of("stall", "bob"));
    assert_eq!(rig.seat_count(), 2);
}

/// Of two that take the last unit one gets it, wherever the other falls in between.
pub fn the_last_unit_is_given_once(make: Make<'_>) {
    let rig = Rig::new(make);
    let hold = Hold::new("seat", TTL_MS).resource_max(1);
    let other = Tickets::new(Timers::new(
        std::sync::Arc::clone(rig.world.store.inner()) as std::sync::Arc<dyn NamespaceStore>,
        rig.world.runtime.clone(),
    ));
    let (race, partition) = (hold.clone(), rig.world.partition.clone());
    rig.world.store.before_commit(1, move |_, _, _| {
        let opened = block_on(other.open(&partition, &race)).unwrap();
        assert!(matches!(opened, Opened::New(_)));
    });
    let full = Refusal::ResourceFull {
        open: 1,
        open_max: 1,
    };
    assert_eq!(ask(&rig, &hold), Opened::Refused(full));
    assert_eq!(rig.seat_count(), 1);
}

pub fn eight_lost_races_are_contended(make: Make<'_>) {
    let rig = Rig::new(make);
    let hold = Hold::new("seat", TTL_MS);
    for nth in 1..=8 {
        let (hold, partition) = (hold.clone(), rig.world.partition.clone());
        let runtime = rig.world.runtime.clone();
        let inner = std::sync::Arc::clone(rig.world.store.inner());
        rig.world.store.before_commit(nth, move |_, _, _| {
            let store = std::sync::Arc::clone(&inner) as std::sync::Arc<dyn NamespaceStore>;
            let other = Tickets::new(Timers::new(store, runtime.clone()));
            block_on(other.open(&partition, &hold)).unwrap();
        });
    }
    let error = block_on(rig.tickets.open(&rig.world.partition, &hold)).unwrap_err();
    assert!(matches!(error, TimerError::Contended), "{error}");
    assert_eq!(rig.seat_count(), 8, "the others all have theirs");
}

pub fn fields_over_their_limits_are_refused_with_the_figure(make: Make<'_>) {
    let rig = Rig::new(make);
    let long = |len: usize| "x".repeat(len);
    let week_ms = 7 * 24 * 3_600_000;
    for (hold, figure) in [
        (Hold::new("", TTL_MS), "1 to 256 bytes, this one has 0"),
        (Hold::new(long(257), TTL_MS), "has 257"),
        (seat().actor(long(257)), "has 257"),
        (seat().actor(""), "has 0"),
        (seat().idempotency_key(long(257)), "has 257"),
        (seat().session(long(1_025)), "has 1025"),
        (seat().data(long(16_385)), "has 16385"),
        (Hold::new("seat", 0), "not for 0 ms"),
        (Hold::new("seat", week_ms), "less than 604800000 ms"),
    ] {
        let error = block_on(rig.tickets.open(&rig.world.partition, &hold)).unwrap_err();
        assert!(matches!(error, TimerError::Invalid(_)), "{error}");
        assert!(error.to_string().contains(figure), "{error} lacks {figure}");
    }
    rig.open(&Hold::new("seat", week_ms - 1));
    let short = Rig::with(make, |tickets| tickets.with_ttl_max_ms(1_001));
    short.open(&Hold::new("seat", 1_000));
    let long = Hold::new("seat", 1_001);
    assert!(block_on(short.tickets.open(&short.world.partition, &long)).is_err());
}

/// Whether the commit came about or not: asked again under the key there is one ticket.
pub fn an_unknown_outcome_is_settled_by_asking_again(make: Make<'_>) {
    for fault in [
        CommitFault::AnswerLost,
        CommitFault::NotWritten(StoreErrorKind::Unknown),
    ] {
        let rig = Rig::new(make);
        rig.world.store.fail_commit(1, fault);
        let asked = block_on(rig.tickets.open(&rig.world.partition, &seat()));
        assert!(matches!(asked, Err(TimerError::Store(_))), "{asked:?}");
        let ticket = ask(&rig, &seat()).ticket().cloned().unwrap();
        assert_eq!(rig.seat_count(), 1);
        assert_eq!(rig.ticket_timers().len(), 1);
        let found = block_on(rig.tickets.find(&rig.world.partition, "request-1")).unwrap();
        assert_eq!(found, Some(ticket));
    }
}

/// A plan commits with the caller's writes or not at all, and says whose guard was lost.
pub fn a_plan_commits_with_the_callers_writes(make: Make<'_>) {
    let rig = Rig::new(make);
    let plan = |world: &World| block_on(rig.tickets.plan_open(&world.partition, &seat())).unwrap();
    let (first, second) = (plan(&rig.world), plan(&rig.world));
    let own = || Batch::new().require_absent("order").put("order", "1");
    rig.world.commit(own().append(first.batch));
    let lost = rig.world.apply(
        Batch::new()
            .require_present("order")
            .put("order", "2")
            .append(second.batch.clone()),
    );
    let BatchOutcome::PreconditionFailed { index, .. } = lost else {
        panic!("the counters have changed: {lost:?}");
    };
    assert!(second.owns_guard(1, index));
    assert!(!second.owns_guard(1, 0));
    assert_eq!(rig.world.get(&"order".into()).unwrap(), "1");
    assert_eq!(rig.seat_count(), 1);
    let existing = plan(&rig.world);
    assert!(matches!(existing.outcome, Opened::Existing(_)));
    assert!(existing.batch.writes.is_empty());
    rig.world
        .commit(Batch::new().put("order", "3").append(existing.batch));
}
