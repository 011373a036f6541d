//! An outbox that sleeps after a failure, and what wakes it.

use dueline::kinds::outcome_delivery::SinkError;

use dueline_testkit::block_on;

use super::fixture::{Answer, Post, fails, timers_of};
use crate::Make;

/// An outbox whose only outcome has failed five times, so that it sleeps for 16 s.
fn asleep(make: Make<'_>) -> Post {
    let post = Post::new(make);
    post.told.answers(|delivery| match &*delivery.id {
        b"poison" => fails(),
        _ => Answer::Taken,
    });
    post.append(&["poison"]);
    for _ in 0..5 {
        post.tick_when_due();
    }
    assert_eq!(post.due_in_ms(), 16_000);
    post
}

pub fn an_append_wakes_a_sleeping_outbox_within_a_second(make: Make<'_>) {
    let post = asleep(make);
    post.append(&["one"]);
    post.append(&["two"]);
    assert_eq!(post.due_in_ms(), 1_000);
    let timers = timers_of(&post.world);
    assert_eq!(timers.len(), 2, "the one that sleeps is left to drain");
    post.world.advance_ms(1_000);
    assert_eq!(post.tick(), ["one", "two"]);
    assert_eq!(post.backlog().rows, 1);
}

pub fn the_timer_that_slept_drains_without_a_call(make: Make<'_>) {
    let post = asleep(make);
    post.append(&["one"]);
    post.world.advance_ms(1_000);
    assert_eq!(post.tick(), ["one"]);
    let [first, second] = timers_of(&post.world).try_into().unwrap();
    assert_eq!(
        first.0.due_ms, second.0.due_ms,
        "both are due when the poison may be tried again"
    );
    post.world.advance_ms(15_000);
    assert_eq!(post.tick(), ["poison"], "one of them calls");
    post.timer();
}

pub fn appends_do_not_hammer_a_sink_that_fails(make: Make<'_>) {
    let post = asleep(make);
    post.told.answers(|_| fails());
    let mut calls = 0;
    for number in 0..100 {
        post.append(&[&number.to_string()]);
        post.world.advance_ms(100);
        calls += post.tick().len();
    }
    assert!((8..=11).contains(&calls), "{calls} calls in 10 s");
}

pub fn retry_after_is_honoured_and_no_append_shortens_it(make: Make<'_>) {
    let post = Post::new(make);
    let asks = SinkError::failed("429").retry_after_ms(30_000);
    post.told.answers(move |_| Answer::Fails(asks.clone()));
    post.append(&["1"]);
    assert_eq!(post.tick(), ["1"]);
    assert_eq!(post.due_in_ms(), 30_000);
    post.append(&["2"]);
    assert_eq!(post.due_in_ms(), 30_000);
    post.timer();
    post.world.advance_ms(29_999);
    assert_eq!(post.tick(), [""; 0]);
    post.told.answers(|_| Answer::Taken);
    post.world.advance_ms(1);
    assert_eq!(post.tick(), ["2", "1"]);
}

pub fn retry_after_counts_even_if_others_were_delivered(make: Make<'_>) {
    let post = Post::new(make);
    post.told.answers(|delivery| match delivery.sequence {
        2 => Answer::Fails(SinkError::unavailable("429").retry_after_ms(20_000)),
        _ => Answer::Taken,
    });
    post.append(&["1", "2", "3"]);
    assert_eq!(post.tick(), ["1", "2"]);
    assert_eq!(post.due_in_ms(), 20_000);
    assert_eq!(post.backlog().rows, 2);
    post.told.answers(|_| Answer::Taken);
    assert_eq!(post.drain(), ["2", "3"]);
}

pub fn a_pause_of_more_than_a_day_is_not_granted(make: Make<'_>) {
    let post = Post::new(make);
    post.told
        .answers(|_| Answer::Fails(SinkError::unavailable("later").retry_after_ms(u64::MAX)));
    post.append(&["1"]);
    post.tick();
    assert_eq!(post.due_in_ms(), 24 * 60 * 60 * 1_000);
}

pub fn a_clock_that_is_set_back_keeps_the_outbox_awake(make: Make<'_>) {
    let post = asleep(make);
    post.world.clock.jump_wall_ms(-3_600_000);
    post.append(&["one"]);
    assert_eq!(post.due_in_ms(), 1_000);
    post.world.advance_ms(1_000);
    assert_eq!(post.tick(), ["one"]);
}

pub fn an_operator_wakes_an_outbox_whatever_it_waits_for(make: Make<'_>) {
    let post = Post::new(make);
    assert!(!block_on(post.outbox.wake()).unwrap(), "nothing waits");
    post.told
        .answers(|_| Answer::Fails(SinkError::unavailable("down").retry_after_ms(3_600_000)));
    post.append(&["1", "2"]);
    post.tick();
    assert_eq!(post.due_in_ms(), 3_600_000);
    post.told.answers(|_| Answer::Taken);
    assert!(block_on(post.outbox.wake()).unwrap());
    assert_eq!(post.tick(), ["1", "2"]);
    assert_eq!(post.backlog().rows, 0);
    // The timer that waited an hour drains.
    assert_eq!(post.tick_when_due(), [""; 0]);
    assert!(timers_of(&post.world).is_empty());
}
