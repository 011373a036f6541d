//! Plans in one batch: those that share no row of a kind commit together, those that do are refused.

use dueline::kinds::lease_sweep::{LeaseName, LeaseOwner, Leases};
use dueline::kinds::outcome_delivery::{Outbox, OutboxName, Outcome};
use dueline::kinds::reservation_reconcile::{ReservationId, Reservations, Terms};
use dueline::kinds::ticket_expiry::{Counted, Hold, Opened, Ticket, Tickets};
use dueline::store::{Batch, NamespaceStore, StoreErrorKind};
use dueline_testkit::block_on;

use crate::{Make, World};

/// Commits nothing: the batch is refused, and says which kind of fault it is.
#[track_caller]
fn assert_refused(world: &World, batch: Batch) {
    let rows = world.kind_rows();
    let timers = world.timer_keys();
    let error = block_on(world.store.apply(&world.partition, batch)).unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Invalid, "{error}");
    assert!(error.to_string().contains("two plans"), "{error}");
    assert_eq!(world.kind_rows(), rows);
    assert_eq!(world.timer_keys(), timers);
}

fn seat(seat: &'static str, actor: &'static str) -> Hold {
    Hold::new(seat, 60_000).actor(actor)
}

#[track_caller]
fn open(world: &World, tickets: &Tickets, hold: &Hold) -> Ticket {
    match block_on(tickets.open(&world.partition, hold)).unwrap() {
        Opened::New(ticket) => ticket,
        other => panic!("a new ticket was expected: {other:?}"),
    }
}

fn ends() -> OutboxName {
    OutboxName::new("ends").unwrap()
}

pub fn two_tickets_of_one_actor_are_not_opened_in_one_batch(make: Make<'_>) {
    let world = World::new(make);
    let tickets = Tickets::new(world.timers.clone());
    let plan = |hold: &Hold| block_on(tickets.plan_open(&world.partition, hold)).unwrap();
    let first = plan(&seat("12A", "ann"));
    let second = plan(&seat("12B", "ann"));
    assert_refused(&world, first.batch.clone().append(second.batch));
    let others = plan(&seat("12C", "bob"));
    world.commit(first.batch.append(others.batch));
    open(&world, &tickets, &seat("12B", "ann"));
    for (actor, count) in [("ann", 2), ("bob", 1)] {
        let counted = Counted::Actor(actor.into());
        let open = block_on(tickets.open_count(&world.partition, &counted)).unwrap();
        assert_eq!(open, count, "{actor}");
    }
}

pub fn two_tickets_of_one_resource_do_not_end_in_one_batch(make: Make<'_>) {
    let world = World::new(make);
    let tickets = Tickets::new(world.timers.clone());
    let hold = |actor| Hold::new("hall", 60_000).actor(actor);
    let (anns, bobs) = (
        open(&world, &tickets, &hold("ann")),
        open(&world, &tickets, &hold("bob")),
    );
    open(&world, &tickets, &hold("cy"));
    let plan = |of: &Ticket| block_on(tickets.plan_consume(&world.partition, of.id())).unwrap();
    let both = plan(&anns).batch.append(plan(&bobs).batch);
    assert_refused(&world, both);
    world.commit(plan(&anns).batch);
    world.commit(plan(&bobs).batch);
    let counted = Counted::Resource("hall".into());
    let open = block_on(tickets.open_count(&world.partition, &counted)).unwrap();
    assert_eq!(open, 1);
}

/// A ticket and a reservation that end in one batch would be told under one sequence.
pub fn two_ends_are_not_told_to_one_outbox_in_one_batch(make: Make<'_>) {
    let world = World::new(make);
    let tickets = Tickets::new(world.timers.clone());
    let told = tickets.clone().with_outbox(ends());
    let reservations = Reservations::new(world.timers.clone());
    let ticket = open(&world, &tickets, &seat("12A", "ann"));
    let id = ReservationId::new("order-1").unwrap();
    let reserve = |terms| reservations.plan_reserve(&id, &terms).unwrap();
    let made = reserve(Terms::commit_within_ms(60_000).outbox(ends()));
    let serial = made.outcome.serial;
    world.commit(made.batch);

    let store = world.shared();
    let commit = reservations.plan_commit(&*store, &world.partition, &id, serial);
    let commit = block_on(commit).unwrap().batch;
    let consume = |tickets: &Tickets| {
        block_on(tickets.plan_consume(&world.partition, ticket.id()))
            .unwrap()
            .batch
    };
    assert_refused(&world, commit.clone().append(consume(&told)));
    let outbox = Outbox::new(world.timers.clone(), world.partition.clone(), ends());
    let outcome = Outcome {
        id: "mine".into(),
        body: "done".into(),
    };
    let mine = block_on(outbox.plan(&[outcome])).unwrap().batch;
    assert_refused(&world, commit.clone().append(mine));
    // Told of one of the two, they are one commit.
    world.commit(commit.append(consume(&tickets)));
    assert_eq!(block_on(outbox.backlog()).unwrap().rows, 1);
}

pub fn a_lease_is_not_granted_twice_in_one_batch(make: Make<'_>) {
    let world = World::new(make);
    let leases = Leases::new(world.timers.clone());
    let store = world.shared();
    let plan = |name: &'static str, owner: &'static str| {
        let (name, owner) = (
            LeaseName::new(name).unwrap(),
            LeaseOwner::new(owner).unwrap(),
        );
        let grant = leases.plan_grant(&*store, &world.partition, &name, &owner, 30_000);
        block_on(grant).unwrap().batch
    };
    assert_refused(&world, plan("left", "ann").append(plan("left", "bob")));
    world.commit(plan("left", "ann").append(plan("right", "ann")));
}
