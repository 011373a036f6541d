//! Delivering what goes well.

use dueline::kinds::outcome_delivery::{
    Backlog, OUTCOME_DELIVERY, Outbox, OutboxName, OutcomeDelivery, ROWS_PER_RUN_MAX,
};
use dueline_testkit::block_on;

use super::fixture::{Answer, Post, Told, exact, outcome};
use crate::{Make, World};

pub fn all_delivered_ends_the_timer(make: Make<'_>) {
    let post = Post::new(make);
    post.append(&["one", "two", "three"]);
    assert_eq!(post.tick(), ["one", "two", "three"]);
    assert!(post.world.timer_keys().is_empty());
    assert_eq!(post.backlog(), Backlog::default());
    assert_eq!(
        post.world.kind_rows().len(),
        2,
        "what was put in and what has left"
    );
    post.append(&["four"]);
    assert_eq!(post.tick(), ["four"]);
    assert!(post.world.timer_keys().is_empty());
}

pub fn a_sink_is_told_everything_about_an_outcome(make: Make<'_>) {
    let post = Post::new(make);
    let written_at_ms = post.world.now_ms();
    post.append(&["zero"]);
    post.world.advance_ms(7);
    post.append(&["one"]);
    post.world.tick(&post.engine);
    let told = post.told.take();
    let last = &told[1];
    assert_eq!(last.partition, post.world.partition);
    assert_eq!(last.outbox, OutboxName::new("mail").unwrap());
    assert_eq!((last.sequence, last.attempt), (2, 1));
    assert_eq!((&*last.id, &*last.body), (&b"one"[..], &b"body of one"[..]));
    assert_eq!(last.written_at_ms, written_at_ms + 7);
}

pub fn what_a_sink_does_not_want_leaves_without_a_call(make: Make<'_>) {
    let post = Post::new(make);
    post.append(&["unwanted-1", "one", "unwanted-2"]);
    assert_eq!(post.tick(), ["one"]);
    assert_eq!(post.backlog(), Backlog::default());
    assert!(post.world.timer_keys().is_empty());
}

pub fn rows_max_bounds_a_run_and_the_cursor_moves_on(make: Make<'_>) {
    let post = Post::with(make, exact().rows_max(2));
    post.append(&["1", "2", "3", "4", "5"]);
    assert_eq!(post.tick(), ["1", "2"]);
    assert_eq!(post.due_in_ms(), 1, "at once, at another due");
    assert_eq!(post.backlog().rows, 3);
    assert_eq!(post.tick_when_due(), ["3", "4"]);
    assert_eq!(post.tick_when_due(), ["5"]);
    assert!(post.world.timer_keys().is_empty());
}

pub fn rows_max_is_clamped_and_the_outbox_drains(make: Make<'_>) {
    for rows_max in [0, ROWS_PER_RUN_MAX, ROWS_PER_RUN_MAX + 1, 10_000] {
        let post = Post::with(make, exact().rows_max(rows_max));
        let ids: Vec<String> = (0..90).map(|n| n.to_string()).collect();
        post.append(&ids.iter().map(String::as_str).collect::<Vec<_>>());
        assert_eq!(post.tick().len(), rows_max.clamp(1, 80));
        assert_eq!(post.drain().len(), 90 - rows_max.clamp(1, 80));
        let (ops, bytes) = post.world.largest_batch();
        assert!(ops <= 100 && bytes <= 1_024 * 1_024, "{ops} {bytes}");
    }
}

pub fn a_slow_sink_is_cut_at_the_budget_and_goes_on_at_once(make: Make<'_>) {
    let post = Post::with(make, exact().run_budget_ms(10_000));
    post.told.answers(|_| Answer::Slow(4_000));
    post.append(&["1", "2", "3", "4", "5"]);
    assert_eq!(post.tick(), ["1", "2", "3"], "the third began within 10 s");
    assert!(post.due_in_ms() <= 1);
    assert_eq!(post.failures_in_a_row(), 0);
    assert_eq!(post.tick_when_due(), ["4", "5"]);
    assert!(post.world.timer_keys().is_empty());
}

pub fn outboxes_of_a_partition_do_not_know_each_other(make: Make<'_>) {
    let world = World::new(make);
    let (mail, audit) = (Told::new(&world.clock), Told::new(&world.clock));
    mail.answers(|_| super::fixture::fails());
    let of = |name: &'static str| OutboxName::new(name).unwrap();
    let delivery = OutcomeDelivery::new(world.runtime.clone())
        .sink(of("mail"), mail.clone())
        .otherwise(audit.clone());
    let engine = world.engine(OUTCOME_DELIVERY, delivery.registration());
    let outbox = |name| Outbox::new(world.timers.clone(), world.partition.clone(), of(name));
    // A name that begins like another one is not mistaken for it.
    for name in ["mail", "mai", "mails"] {
        block_on(outbox(name).append(&[outcome(name)])).unwrap();
    }
    world.tick(&engine);
    assert_eq!(mail.take_ids(), ["mail"]);
    let mut others = audit.take_ids();
    others.sort();
    assert_eq!(others, ["mai", "mails"]);
    assert_eq!(block_on(outbox("mail").backlog()).unwrap().rows, 1);
    assert_eq!(block_on(outbox("mails").backlog()).unwrap().rows, 0);
}

pub fn an_outbox_without_a_sink_waits_for_one(make: Make<'_>) {
    let post = Post::new(make);
    post.append(&["one"]);
    let nobody = OutcomeDelivery::new(post.world.runtime.clone());
    let nobody = post.world.engine(OUTCOME_DELIVERY, nobody.registration());
    for _ in 0..30 {
        post.world.tick(&nobody);
        post.world.advance_ms(post.due_in_ms());
    }
    assert_eq!(post.backlog().rows, 1);
    assert_eq!(post.tick(), ["one"]);
    assert!(post.world.timer_keys().is_empty());
}

pub fn a_meter_is_told_of_every_run(make: Make<'_>) {
    let post = Post::with(make, exact().rows_max(2));
    post.append(&["1", "2", "3"]);
    post.world.advance_ms(5);
    post.tick();
    let summary = post.meter.take().remove(0);
    assert_eq!(summary.backlog.rows, 3);
    assert_eq!((summary.delivered, summary.failed), (2, 0));
    assert_eq!(summary.lag_ms, 5);
    post.told.answers(|_| super::fixture::fails());
    post.tick_when_due();
    let summary = post.meter.take().remove(0);
    assert_eq!(summary.backlog.rows, 1);
    assert_eq!((summary.delivered, summary.failed), (0, 1));
}
