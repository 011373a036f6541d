//! What appending and delivering cost, counted: the figures that the kind's documentation states.

use dueline::kinds::outcome_delivery::{DeliveryOptions, Outcome, RelayMessage};
use dueline_testkit::block_on;

use super::fixture::{Post, outcome};
use super::relay_fixture::{Ferry, message};
use crate::world::Costs;
use crate::{Make, World};

const ROWS: u64 = 10_000;

/// Reads, transactions, puts and deletes.
type Figures = (u64, u64, u64, u64);

fn figures(world: &World, before: &Costs) -> Figures {
    let costs = world.costs_since(before);
    (
        costs.calls.row_reads(),
        costs.calls.commits(),
        costs.puts,
        costs.deletes,
    )
}

fn post(make: Make<'_>) -> Post {
    Post::with(make, DeliveryOptions::default())
}

pub fn ten_thousand_outcomes_are_appended_at_the_stated_cost(make: Make<'_>) {
    // One by one, each in a batch of the caller's.
    let one_by_one = post(make);
    let before = one_by_one.world.costs();
    for _ in 0..ROWS {
        one_by_one.append(&["id"]);
    }
    let counted = figures(&one_by_one.world, &before);
    assert_eq!(counted, (ROWS, ROWS, 2 * ROWS + 1, 0));
    // Fifty to a batch.
    let fifty = post(make);
    let outcomes: Vec<Outcome> = (0..50).map(|_| outcome("id")).collect();
    let before = fifty.world.costs();
    for _ in 0..ROWS / 50 {
        block_on(fifty.outbox.append(&outcomes)).unwrap();
    }
    let counted = figures(&fifty.world, &before);
    assert_eq!(counted, (200, 200, ROWS + 200 + 1, 0));
}

pub fn ten_thousand_outcomes_are_delivered_at_the_stated_cost(make: Make<'_>) {
    let post = post(make);
    let outcomes: Vec<Outcome> = (0..50).map(|_| outcome("id")).collect();
    for _ in 0..ROWS / 50 {
        block_on(post.outbox.append(&outcomes)).unwrap();
    }
    let before = post.world.costs();
    assert_eq!(post.drain().len() as u64, ROWS);
    let counted = figures(&post.world, &before);
    assert_eq!(counted, (1_409, 314, 471, 10_314), "157 runs");
}

pub fn one_outcome_is_delivered_at_the_stated_cost(make: Make<'_>) {
    let post = post(make);
    post.append(&["id"]);
    let before = post.world.costs();
    post.tick();
    let counted = figures(&post.world, &before);
    assert_eq!(counted, (5, 2, 3, 3));
}

pub fn ten_thousand_messages_are_relayed_at_the_stated_cost(make: Make<'_>) {
    for (rows, targets, expected) in [
        (ROWS, 1, (1_567, 471, 10_628, 10_314)),
        (ROWS, 10, (2_980, 1_884, 12_041, 10_314)),
        (1_600, 1_600, (2_200, 1_800, 3_500, 1_800)),
    ] {
        let ferry = Ferry::with(make, DeliveryOptions::default());
        let target = |number: u64| format!("t{}", number % targets);
        let messages = (0..rows).map(|number| message(&target(number), "k", "v"));
        let messages: Vec<RelayMessage> = messages.collect();
        ferry.send(&messages);
        let before = ferry.world.costs();
        ferry.drain();
        let counted = figures(&ferry.world, &before);
        assert_eq!(counted, expected, "{rows} messages, {targets} targets");
    }
}
