//! Deliveries that fail: order, back-off, and who waits for whom.

use std::collections::BTreeSet;

use dueline::kinds::outcome_delivery::{DeliveryOptions, Outbox, SinkError};
use dueline_testkit::block_on;

use super::fixture::{Answer, Post, exact, fails, name, only_timer, outcome};
use crate::Make;

pub fn the_first_failure_ends_the_run_and_a_healthy_sink_gets_all(make: Make<'_>) {
    let post = Post::new(make);
    post.told.answers(|_| fails());
    post.append(&["1", "2", "3"]);
    assert_eq!(post.tick(), ["1"]);
    assert_eq!(post.due_in_ms(), 1_000);
    assert_eq!(post.backlog().rows, 3);
    post.told.answers(|_| Answer::Taken);
    assert_eq!(post.drain(), ["2", "3", "1"]);
    assert_eq!(post.backlog().rows, 0);
}

pub fn a_failed_outcome_is_sent_again_with_the_same_body(make: Make<'_>) {
    let post = Post::new(make);
    post.told.answers(|_| fails());
    post.append(&["1"]);
    let mut last_due = 0;
    for attempt in 1..=5 {
        post.world.advance_ms(last_due);
        post.world.tick(&post.engine);
        let call = post.told.take().remove(0);
        assert_eq!((call.sequence, call.attempt), (1, attempt));
        assert_eq!(&*call.body, b"body of 1");
        last_due = 1_000 << (attempt - 1);
        assert_eq!(post.due_in_ms(), last_due);
        post.world.advance_ms(last_due - 1);
        assert_eq!(post.tick(), [""; 0], "not a millisecond early");
        last_due = 1;
    }
}

pub fn nothing_acked_writes_no_backlog(make: Make<'_>) {
    let post = Post::new(make);
    post.told
        .answers(|_| Answer::Fails(SinkError::unavailable("down")));
    post.append(&["1", "2"]);
    let before = post.world.kind_rows();
    post.tick();
    let after = post.world.kind_rows();
    assert_eq!(before, after);
    assert_eq!(post.backlog().rows, 2);
}

pub fn an_outcome_that_always_fails_does_not_starve_the_others(make: Make<'_>) {
    let post = Post::new(make);
    post.told.answers(|delivery| match &*delivery.id {
        b"poison" => fails(),
        _ => Answer::Taken,
    });
    post.append(&["poison", "1", "2"]);
    assert_eq!(post.tick(), ["poison"]);
    assert_eq!(post.tick_when_due(), ["1", "2", "poison"]);
    assert_eq!(post.backlog().rows, 1);
    for round in 0..4 {
        let id = format!("more-{round}");
        post.append(&[&id]);
        let mut told = Vec::new();
        while !told.contains(&id) {
            assert!(
                post.due_in_ms() <= 1_000,
                "the poison delays nobody for long"
            );
            told.extend(post.tick_when_due());
        }
    }
    assert_eq!(post.backlog().rows, 1, "the poison is kept");
}

pub fn many_that_always_fail_do_not_starve_the_others(make: Make<'_>) {
    let post = Post::new(make);
    post.told.answers(|delivery| match &*delivery.id {
        id if id.starts_with(b"poison") => fails(),
        _ => Answer::Taken,
    });
    let poison: Vec<String> = (0..90).map(|n| format!("poison-{n}")).collect();
    let poison: Vec<&str> = poison.iter().map(String::as_str).collect();
    for _ in 0..4 {
        post.append(&poison);
    }
    post.append(&["healthy"]);
    let start_ms = post.world.now_ms();
    while !post.tick_when_due().contains(&"healthy".to_owned()) {
        let waited_ms = post.world.now_ms() - start_ms;
        assert!(waited_ms <= 361 * 60_000, "a minute each, at most");
    }
    assert_eq!(post.backlog().rows, 360);
}

pub fn a_page_of_those_that_wait_does_not_raise_the_back_off(make: Make<'_>) {
    let post = Post::new(make);
    post.told.answers(|delivery| match &*delivery.id {
        b"poison" => fails(),
        _ => Answer::Taken,
    });
    post.append(&["poison"]);
    for _ in 0..3 {
        post.tick_when_due();
    }
    assert_eq!(post.failures_in_a_row(), 3);
    post.append(&["healthy"]);
    post.world.advance_ms(1_000);
    assert_eq!(post.tick(), ["healthy"]);
    let wait_ms = post.due_in_ms();
    assert_eq!(wait_ms, 3_000, "when the poison may be tried");
    assert_eq!(post.tick_when_due(), ["poison"]);
    assert_eq!(post.due_in_ms(), 1_000, "the first failure in a row");
    assert_eq!(post.tick_when_due(), [""; 0], "it is not due for 8 s");
    assert_eq!(post.failures_in_a_row(), 1, "nothing failed");
    assert_eq!(post.due_in_ms(), 7_000);
}

pub fn a_hanging_sink_is_cut_at_its_deadline(make: Make<'_>) {
    let post = Post::with(make, exact().call_deadline_ms(5_000));
    post.told.answers(|_| Answer::Hangs(5_000));
    post.append(&["1", "2"]);
    let before_ms = post.world.now_ms();
    assert_eq!(post.tick(), ["1"], "one call");
    assert_eq!(post.world.now_ms() - before_ms, 5_000);
    assert_eq!(post.due_in_ms(), 1_000);
    assert_eq!(post.failures_in_a_row(), 1);
    post.told.answers(|_| Answer::Taken);
    assert_eq!(post.drain(), ["2", "1"]);
}

pub fn a_panic_of_the_sink_is_a_failure_of_the_outcome(make: Make<'_>) {
    let post = Post::new(make);
    post.told.answers(|delivery| match &*delivery.id {
        b"1" => Answer::Panics,
        _ => Answer::Taken,
    });
    post.append(&["1", "2"]);
    assert_eq!(post.tick(), ["1"]);
    assert_eq!(post.tick_when_due(), ["2", "1"]);
    assert_eq!(post.backlog().rows, 1);
    let (_, row) = post.timer();
    assert_eq!(row.header.attempt, 0, "no attempt of the timer is charged");
}

pub fn a_sink_that_takes_nothing_costs_no_attempt_and_keeps_the_order(make: Make<'_>) {
    let post = Post::new(make);
    post.told
        .answers(|_| Answer::Fails(SinkError::unavailable("503")));
    post.append(&["1", "2", "3"]);
    for _ in 0..30 {
        post.world.advance_ms(post.due_in_ms());
        post.world.tick(&post.engine);
        let calls = post.told.take();
        assert_eq!(calls.len(), 1);
        assert_eq!((calls[0].sequence, calls[0].attempt), (1, 1));
    }
    assert_eq!(post.due_in_ms(), 900_000, "the longest delay");
    post.told.answers(|_| Answer::Taken);
    assert_eq!(post.drain(), ["1", "2", "3"], "in order");
}

pub fn jitter_spreads_a_failing_burst(make: Make<'_>) {
    let post = Post::with(make, DeliveryOptions::new());
    post.told.answers(|_| fails());
    let mut dues = BTreeSet::new();
    for number in 0..20 {
        let world = post.world.in_partition(format!("tenant-{number}"));
        let outbox = Outbox::new(world.timers.clone(), world.partition.clone(), name());
        block_on(outbox.append(&[outcome("1")])).unwrap();
        world.tick(&post.engine);
        let due_ms = only_timer(&world).0.due_ms - world.now_ms();
        assert!((1_000..=1_200).contains(&due_ms), "{due_ms}");
        dues.insert(due_ms);
    }
    assert!(dues.len() > 10, "{dues:?}");
}
