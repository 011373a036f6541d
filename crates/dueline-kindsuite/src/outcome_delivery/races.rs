//! What happens between a delivery's reads and its commit, and crashes.

use dueline::store::{Batch, StoreErrorKind};
use dueline::timers::{TickBudget, run_due};
use dueline_testkit::block_on;

use super::fixture::{Answer, Post, append_inside, fails, outcome, timers_of};
use crate::Make;

/// The commit of a tick's settle: the one before it claims.
const SETTLE: u64 = 2;

/// Appends an outcome just before the n-th commit from now.
fn append_before_commit(post: &Post, nth: u64, id: &'static str) {
    let timers = post.world.timers.clone();
    post.world
        .store
        .before_commit(nth, move |store, partition, _| {
            append_inside(store, partition, &timers, outcome(id));
        });
}

pub fn an_append_while_acking_keeps_one_timer_due_at_once(make: Make<'_>) {
    let post = Post::new(make);
    post.append(&["1"]);
    append_before_commit(&post, SETTLE, "2");
    assert_eq!(post.tick(), ["1"], "planned again, and not called again");
    let (key, _) = post.timer();
    assert!(key.due_ms <= post.world.now_ms() + 1);
    assert_eq!(post.backlog().rows, 1);
    assert_eq!(post.tick_when_due(), ["2"]);
    assert!(post.world.timer_keys().is_empty());
}

pub fn appends_before_every_commit_do_not_stop_the_acks(make: Make<'_>) {
    let post = Post::new(make);
    post.append(&["1", "2"]);
    for nth in SETTLE..SETTLE + 4 {
        append_before_commit(&post, nth, "more");
    }
    assert_eq!(post.tick(), ["1", "2"]);
    assert!(post.due_in_ms() <= 1);
    let rows = post.backlog().rows;
    assert!(rows <= 2, "two losses at most, {rows} wait");
    let (_, timer) = post.timer();
    assert_eq!(timer.header.attempt, 0, "nothing failed");
}

pub fn an_append_just_before_a_sleep_is_not_slept_over(make: Make<'_>) {
    let post = Post::new(make);
    post.told.answers(|delivery| match &*delivery.id {
        b"poison" => fails(),
        _ => Answer::Taken,
    });
    post.append(&["poison"]);
    for _ in 0..5 {
        post.tick_when_due();
    }
    // The outbox is due now and will fail again, for 32 s.
    post.world.advance_ms(post.due_in_ms());
    append_before_commit(&post, SETTLE, "2");
    assert_eq!(post.tick(), ["poison"]);
    assert!(post.due_in_ms() <= 1_000);
    assert_eq!(post.tick_when_due(), ["2"]);
}

pub fn a_row_set_aside_by_hand_while_it_is_delivered_is_counted_once(make: Make<'_>) {
    let post = Post::new(make);
    post.append(&["1", "2"]);
    let outbox = post.outbox.clone();
    let mut tick = block_on(run_due(
        &post.engine,
        &post.world.partition,
        TickBudget::default(),
    ));
    let call = block_on(tick.calls.remove(0).run());
    assert!(block_on(outbox.set_aside(1, "by hand")).unwrap());
    block_on(post.engine.settle(call));
    assert_eq!(post.told.take_ids(), ["1", "2"]);
    assert_eq!(post.backlog().rows, 1, "the run is not taken");
    assert_eq!(post.drain(), ["2"], "at least once");
    assert_eq!(post.backlog().rows, 0);
    assert_eq!(block_on(outbox.dead(None, 9)).unwrap().outcomes.len(), 1);
}

pub fn a_crash_between_call_and_commit_delivers_again(make: Make<'_>) {
    let post = Post::new(make);
    post.append(&["1", "2"]);
    let mut tick = block_on(run_due(
        &post.engine,
        &post.world.partition,
        TickBudget::default(),
    ));
    let finished = block_on(tick.calls.remove(0).run());
    drop(finished);
    assert_eq!(post.told.take_ids(), ["1", "2"]);
    assert_eq!(post.backlog().rows, 2);
    assert_eq!(post.tick(), [""; 0], "its claim holds");
    post.world.advance_ms(post.due_in_ms());
    post.world.tick(&post.engine);
    let again = post.told.take();
    assert_eq!(again.len(), 2);
    assert_eq!((again[0].sequence, again[0].attempt), (1, 1));
    assert!(post.world.timer_keys().is_empty());
}

pub fn a_store_that_fails_the_reads_of_a_run_costs_nothing(make: Make<'_>) {
    let post = Post::new(make);
    post.append(&["1"]);
    let partition = &post.world.partition;
    let mut tick = block_on(run_due(&post.engine, partition, TickBudget::default()));
    let call = tick.calls.remove(0);
    post.world.store.fail_read(1, StoreErrorKind::Unavailable);
    block_on(post.engine.settle(block_on(call.run())));
    assert_eq!(post.told.take_ids(), [""; 0]);
    let (_, row) = post.timer();
    assert_eq!(row.header.attempt, 0);
    assert_eq!(post.tick_when_due(), ["1"]);
}

pub fn an_outbox_emptied_by_another_timer_lets_this_one_drain(make: Make<'_>) {
    let post = Post::new(make);
    post.append(&["1"]);
    // A copy of the timer, as a backup that was restored over a part of the rows might leave one.
    let key = post.world.timer_keys().remove(0);
    let row = post.world.get(&key).unwrap();
    let mut copy = key.to_vec();
    copy[18] ^= 1;
    post.world.commit(Batch::new().put(copy, row));
    assert_eq!(timers_of(&post.world).len(), 2);
    let calls = post.tick();
    assert!(calls.iter().all(|id| id == "1"), "{calls:?}");
    assert!(timers_of(&post.world).len() <= 1);
    post.world.advance_ms(1);
    post.tick();
    assert_eq!(post.backlog().rows, 0);
    assert!(post.world.timer_keys().is_empty());
}

/// One tick in a process that dies when it delivers the killer, before anything is committed.
fn tick_or_die(post: &Post) -> Vec<String> {
    let partition = &post.world.partition;
    let mut tick = block_on(run_due(&post.engine, partition, TickBudget::default()));
    let mut told = Vec::new();
    for call in tick.calls.drain(..) {
        let finished = block_on(call.run());
        told.extend(post.told.take_ids());
        if !told.contains(&"killer".to_owned()) {
            block_on(post.engine.settle(finished));
        }
    }
    told
}

pub fn an_outcome_that_kills_the_process_ends_among_the_dead(make: Make<'_>) {
    let post = Post::new(make);
    post.append(&["1", "2", "killer", "3", "4"]);
    let mut told = Vec::new();
    let mut deaths = 0;
    while post.backlog().rows > 1 {
        post.world.advance_ms(post.due_in_ms());
        let calls = tick_or_die(&post);
        deaths += u32::from(calls.contains(&"killer".to_owned()));
        told.extend(calls);
        assert!(deaths <= 5, "{told:?}");
    }
    assert!(told.contains(&"4".to_owned()), "the others go on");
    while !post.world.timer_keys().is_empty() {
        post.world.advance_ms(post.due_in_ms());
        deaths += u32::from(!tick_or_die(&post).is_empty());
        assert!(deaths <= 40, "it has 20 attempts");
    }
    let dead = block_on(post.outbox.dead(None, 9)).unwrap().outcomes;
    assert_eq!(dead.len(), 1);
    assert!(dead[0].error.contains("runs were cut"), "{}", dead[0].error);
    assert_eq!(post.backlog().rows, 0);
}
