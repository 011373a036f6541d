//! What tickets cost, counted: the figures of the documentation.

use std::sync::Arc;

use dueline::BoxFuture;
use dueline::kinds::outcome_delivery::OutboxName;
use dueline::kinds::ticket_expiry::{Hold, SessionAbort, TICKET_EXPIRY, Ticket, Tickets};
use dueline::store::{Group, NamespaceStore, Partition};
use dueline::timers::{Engine, HandlerError, TickBudget, Timers};
use dueline_testkit::block_on;

use super::TTL_MS;
use crate::world::Costs;
use crate::{Make, World};

const TICKETS: u64 = 10_000;

struct Aborts;

impl SessionAbort for Aborts {
    fn abort<'a>(
        &'a self,
        _: &'a Partition,
        _: &'a Ticket,
    ) -> BoxFuture<'a, Result<(), HandlerError>> {
        Box::pin(std::future::ready(Ok(())))
    }
}

fn hold(number: u64) -> Hold {
    Hold::new(format!("seat {number}"), TTL_MS)
        .actor(format!("actor {number}"))
        .idempotency_key(format!("request {number}"))
        .session("upload")
}

/// Opens as many tickets as are to be expired, each of a resource and an actor of its own; not counted.
fn opened(make: Make<'_>) -> (World, Tickets) {
    let world = World::new(make);
    let inner = Arc::clone(world.store.inner());
    let store = Arc::clone(&inner) as Arc<dyn NamespaceStore>;
    let uncounted = Tickets::new(Timers::new(store, world.runtime.clone()));
    for first in (0..TICKETS).step_by(500) {
        let batches = (first..first + 500).map(|number| {
            let hold = hold(number);
            let planned = uncounted.plan_open(&world.partition, &hold);
            block_on(planned).unwrap().batch
        });
        let group = Group {
            batches: batches.collect(),
            settles: Vec::new(),
        };
        let done = block_on(inner.apply_all(&world.partition, group));
        assert_eq!(done.committed(), 500);
    }
    world.advance_ms(TTL_MS);
    let tickets = Tickets::new(world.timers.clone());
    (world, tickets)
}

/// Ticks until every ticket has ended; what it cost, and in how many ticks.
fn expired(world: &World, engine: &Engine) -> (Costs, u64) {
    let before = world.costs();
    let (mut fired, mut ticks) = (0, 0);
    while fired < TICKETS {
        let report = world.tick_within(engine, TickBudget::native());
        assert!(report.total.fired > 0, "{report:?}");
        fired += report.total.fired;
        ticks += 1;
    }
    assert_eq!(fired, TICKETS);
    assert!(
        world
            .timer_keys()
            .iter()
            .all(|key| key[2] != TICKET_EXPIRY.0)
    );
    (world.costs_since(&before), ticks)
}

fn outbox() -> OutboxName {
    OutboxName::new("ends").unwrap()
}

/// In groups of 64: two reads and five deletes a ticket, and a commit for 64 of them.
pub fn ten_thousand_expire_in_groups(make: Make<'_>) {
    let (world, tickets) = opened(make);
    let engine = world.engine(TICKET_EXPIRY, tickets.registration());
    let (costs, ticks) = expired(&world, &engine);
    assert_eq!(costs.calls.get_manys, 2 * TICKETS);
    assert_eq!((costs.puts, costs.deletes), (0, 5 * TICKETS));
    assert_eq!((ticks, costs.calls.commits()), (10, TICKETS.div_ceil(64)));
    let pages = costs.calls.row_reads() - 2 * TICKETS;
    assert!(pages < TICKETS / 50, "{pages} pages of timers");
}

/// One by one: the same reads and writes, and a commit for each.
pub fn ten_thousand_expire_one_by_one(make: Make<'_>) {
    let (world, tickets) = opened(make);
    let alone = tickets.registration().group_max(1);
    let engine = world.engine(TICKET_EXPIRY, alone);
    let (costs, _) = expired(&world, &engine);
    assert_eq!(costs.calls.get_manys, 2 * TICKETS);
    assert_eq!((costs.puts, costs.deletes), (0, 5 * TICKETS));
    assert_eq!(costs.calls.commits(), TICKETS);
}

/// With an outbox: two puts more for each, a read for each group, and the outbox's timer.
pub fn ten_thousand_expire_with_outcomes(make: Make<'_>) {
    let (world, tickets) = opened(make);
    let tickets = tickets.with_outbox(outbox());
    let engine = world.engine(TICKET_EXPIRY, tickets.registration());
    let (costs, _) = expired(&world, &engine);
    assert_eq!(costs.calls.get_manys, 2 * TICKETS);
    assert_eq!(costs.calls.gets, TICKETS.div_ceil(64));
    assert_eq!((costs.puts, costs.deletes), (2 * TICKETS + 1, 5 * TICKETS));
    assert_eq!(costs.calls.commits(), TICKETS.div_ceil(64));
}

/// With sessions: a claim, a call and a settling each. Eight claims share a commit.
pub fn ten_thousand_expire_with_sessions(make: Make<'_>) {
    let (world, tickets) = opened(make);
    let tickets = tickets.with_sessions(Aborts);
    let engine = world.engine(TICKET_EXPIRY, tickets.registration());
    let (costs, ticks) = expired(&world, &engine);
    assert_eq!(ticks, TICKETS / 8);
    assert_eq!(costs.calls.get_manys, 3 * TICKETS);
    assert_eq!((costs.puts, costs.deletes), (TICKETS, 6 * TICKETS));
    assert_eq!(costs.calls.commits(), TICKETS + TICKETS / 8);
}

/// Each verb by itself, with a key and an actor.
pub fn the_verbs_cost_what_they_say(make: Make<'_>) {
    let world = World::new(make);
    let tickets = Tickets::new(world.timers.clone());
    let told = tickets.clone().with_outbox(outbox());
    let partition = world.partition.clone();
    let cost = |what: &str, run: &dyn Fn(), expected: (u64, u64, u64, u64)| {
        let before = world.costs();
        run();
        let costs = world.costs_since(&before);
        let found = (
            costs.calls.row_reads(),
            costs.calls.commits(),
            costs.puts,
            costs.deletes,
        );
        assert_eq!(found, expected, "{what}: reads, commits, puts, deletes");
    };
    let open = |number| block_on(tickets.open(&partition, &hold(number))).unwrap();
    let id = |number| open(number).ticket().unwrap().id();
    cost("open", &|| drop(open(1)), (1, 1, 5, 0));
    cost("open again", &|| drop(open(1)), (2, 0, 0, 0));
    let full = hold(2).idempotency_key("other").resource_max(0);
    let refused = || drop(block_on(tickets.open(&partition, &full)).unwrap());
    cost("open over a limit", &refused, (1, 0, 0, 0));
    let (one, two, three) = (id(1), id(2), id(3));
    let extend = || drop(block_on(tickets.extend(&partition, one, 2 * TTL_MS)).unwrap());
    cost("extend", &extend, (1, 1, 1, 0));
    let consume = || drop(block_on(tickets.consume(&partition, one)).unwrap());
    cost("consume", &consume, (2, 1, 0, 4));
    let released = || drop(block_on(told.release(&partition, two)).unwrap());
    cost("release, first outcome", &released, (3, 1, 3, 4));
    let cancel = || drop(block_on(tickets.cancel(&partition, three)).unwrap());
    cost("cancel", &cancel, (1, 1, 2, 0));
}
