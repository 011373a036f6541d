//! Outcomes that are set aside: listed, requeued, purged.

use dueline::kinds::outcome_delivery::{DeadOutcome, DeadOutcomeReason, SinkError};
use dueline::store::Batch;
use dueline::timers::RetryPolicy;
use dueline_testkit::block_on;

use super::fixture::{Answer, Post, exact, fails, outcome, text};
use crate::Make;

fn dead(post: &Post) -> Vec<DeadOutcome> {
    let page = block_on(post.outbox.dead(None, 100)).unwrap();
    assert_eq!(page.next, None);
    page.outcomes
}

/// A post whose outcomes are set aside after three attempts.
fn three_attempts(make: Make<'_>) -> Post {
    let retry = RetryPolicy {
        attempts_max: Some(3),
        ..exact().retry
    };
    Post::with(make, exact().retry(retry))
}

pub fn after_the_last_attempt_an_outcome_is_set_aside(make: Make<'_>) {
    let post = three_attempts(make);
    post.told.answers(|_| fails());
    let [sequence] = post.append(&["1"])[..] else {
        panic!("one sequence");
    };
    assert_eq!(post.drain(), ["1", "1", "1"]);
    assert_eq!(post.backlog().rows, 0);
    assert!(post.world.timer_keys().is_empty());
    let dead = dead(&post).remove(0);
    assert_eq!(dead.sequence, sequence);
    assert_eq!(dead.reason, DeadOutcomeReason::Exhausted);
    assert_eq!(dead.attempt, 3);
    assert_eq!(dead.error, "the receiver says 500");
    assert_eq!(dead.outcome, Some(outcome("1")));
    assert!(dead.dead_at_ms <= post.world.now_ms());
}

pub fn those_behind_a_dead_outcome_go_on(make: Make<'_>) {
    let post = three_attempts(make);
    post.told.answers(|delivery| match &*delivery.id {
        b"poison" => fails(),
        _ => Answer::Taken,
    });
    post.append(&["1", "poison", "2"]);
    assert_eq!(post.drain(), ["1", "poison", "2", "poison", "poison"]);
    assert_eq!(dead(&post).len(), 1);
}

pub fn a_refused_outcome_is_set_aside_at_once_and_the_run_goes_on(make: Make<'_>) {
    let post = Post::new(make);
    post.told.answers(|delivery| match &*delivery.id {
        b"gone" => Answer::Fails(SinkError::refused("410")),
        _ => Answer::Taken,
    });
    post.append(&["1", "gone", "2"]);
    assert_eq!(post.tick(), ["1", "gone", "2"]);
    assert!(post.world.timer_keys().is_empty());
    let dead = dead(&post).remove(0);
    assert_eq!((dead.reason, dead.attempt), (DeadOutcomeReason::Refused, 1));
    assert_eq!(dead.error, "410");
}

pub fn many_refused_outcomes_stay_within_the_batch(make: Make<'_>) {
    let post = Post::with(make, exact().rows_max(80));
    post.told
        .answers(|_| Answer::Fails(SinkError::refused("no ".repeat(200))));
    let ids: Vec<String> = (0..90).map(|n| n.to_string()).collect();
    post.append(&ids.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(post.drain(), ids);
    let page = block_on(post.outbox.dead(None, 60)).unwrap();
    assert_eq!(page.outcomes.len(), 60);
    assert_eq!(page.outcomes[0].error.len(), 255, "cut");
    let rest = block_on(post.outbox.dead(page.next, 60)).unwrap();
    assert_eq!((rest.outcomes.len(), rest.next), (30, None));
    assert!(post.world.largest_batch().0 <= 100);
}

pub fn large_refused_outcomes_stay_within_the_batch(make: Make<'_>) {
    let post = Post::new(make);
    post.told
        .answers(|_| Answer::Fails(SinkError::refused("no")));
    for number in 0..7 {
        let large = dueline::kinds::outcome_delivery::Outcome {
            id: format!("{number}").into(),
            body: vec![7; 256 * 1_024].into(),
        };
        block_on(post.outbox.append(&[large])).unwrap();
    }
    assert_eq!(post.drain().len(), 7);
    assert_eq!(dead(&post).len(), 7);
    assert!(post.world.largest_batch().1 <= 1_024 * 1_024);
}

pub fn a_requeued_outcome_has_its_attempts_back_behind_all_others(make: Make<'_>) {
    let post = three_attempts(make);
    post.told.answers(|_| fails());
    post.append(&["1"]);
    post.drain();
    post.told.answers(|_| Answer::Taken);
    post.append(&["2"]);
    assert_eq!(block_on(post.outbox.requeue(1)).unwrap(), Some(3));
    assert_eq!(block_on(post.outbox.requeue(1)).unwrap(), None);
    assert_eq!(post.backlog().rows, 2);
    post.world.tick(&post.engine);
    let calls = post.told.take();
    let told: Vec<_> = calls
        .iter()
        .map(|call| (text(&call.id), call.sequence, call.attempt))
        .collect();
    assert_eq!(told, [("2".into(), 2, 1), ("1".into(), 3, 1)]);
    assert_eq!(&*calls[1].body, b"body of 1");
    assert!(dead(&post).is_empty());
    assert_eq!(post.backlog().rows, 0);
}

pub fn a_requeue_wakes_an_outbox_that_is_empty(make: Make<'_>) {
    let post = three_attempts(make);
    post.told.answers(|_| fails());
    post.append(&["1"]);
    post.drain();
    block_on(post.outbox.requeue(1)).unwrap();
    assert_eq!(post.due_in_ms(), 0);
    post.told.answers(|_| Answer::Taken);
    assert_eq!(post.tick(), ["1"]);
}

pub fn a_purged_outcome_is_gone(make: Make<'_>) {
    let post = three_attempts(make);
    post.told.answers(|_| fails());
    post.append(&["1", "2"]);
    post.drain();
    assert!(block_on(post.outbox.purge(1)).unwrap());
    assert!(!block_on(post.outbox.purge(1)).unwrap());
    assert!(!block_on(post.outbox.purge(77)).unwrap());
    let left: Vec<u64> = dead(&post).iter().map(|dead| dead.sequence).collect();
    assert_eq!(left, [2]);
    assert_eq!(block_on(post.outbox.requeue(1)).unwrap(), None);
}

pub fn an_outcome_can_be_set_aside_by_hand(make: Make<'_>) {
    let post = Post::new(make);
    post.append(&["1", "2"]);
    assert!(block_on(post.outbox.set_aside(1, "not any more")).unwrap());
    assert!(!block_on(post.outbox.set_aside(1, "not any more")).unwrap());
    assert_eq!(post.backlog().rows, 1);
    assert_eq!(post.tick(), ["2"]);
    let dead = dead(&post).remove(0);
    assert_eq!(dead.reason, DeadOutcomeReason::ByHand);
    assert_eq!(dead.error, "not any more");
    assert!(post.world.timer_keys().is_empty());
    assert_eq!(post.backlog().rows, 0);
}

pub fn what_an_operator_does_commits_with_more_or_not_at_all(make: Make<'_>) {
    let post = Post::new(make);
    post.append(&["1", "2"]);
    let noted = |batch: Batch| Batch::new().require_absent("note").append(batch);
    let aside = block_on(post.outbox.plan_set_aside(1, "not any more")).unwrap();
    assert!(aside.outcome);
    let lost = Batch::new().require_present("note");
    assert!(
        !post
            .world
            .apply(lost.append(aside.batch.clone()))
            .is_committed()
    );
    assert!(dead(&post).is_empty());
    post.world.commit(noted(aside.batch.clone()));
    assert!(
        !post.world.apply(aside.batch).is_committed(),
        "it waits no more"
    );
    assert_eq!(dead(&post).len(), 1);
    assert!(
        block_on(post.outbox.plan_set_aside(1, ""))
            .unwrap()
            .batch
            .is_empty()
    );

    let requeued = block_on(post.outbox.plan_requeue(1)).unwrap();
    let purged = block_on(post.outbox.plan_purge(1)).unwrap();
    assert_eq!((requeued.outcome, purged.outcome), (Some(3), true));
    post.world.commit(noted(requeued.batch));
    assert!(
        !post.world.apply(purged.batch).is_committed(),
        "it is dead no more"
    );
    assert!(
        block_on(post.outbox.plan_purge(1))
            .unwrap()
            .batch
            .is_empty()
    );
    assert_eq!(block_on(post.outbox.plan_requeue(1)).unwrap().outcome, None);

    let woken = block_on(post.outbox.plan_wake()).unwrap();
    assert!(woken.outcome);
    post.world.commit(noted(woken.batch));
    assert_eq!(post.tick(), ["2", "1"]);
    assert!(block_on(post.outbox.plan_wake()).unwrap().batch.is_empty());
}
