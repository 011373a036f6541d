//! Appending to an outbox.

use dueline::kinds::outcome_delivery::{
    Backlog, OUTCOME_BODY_BYTES_MAX, OUTCOME_DELIVERY, OUTCOME_ID_BYTES_MAX, OutboxName, Outcome,
};
use dueline::store::Batch;
use dueline::timers::TimerError;
use dueline_testkit::block_on;

use super::fixture::{Post, append_batch, outcome};
use crate::Make;

pub fn appending_wakes_an_empty_outbox_once(make: Make<'_>) {
    let post = Post::new(make);
    assert_eq!(post.append(&["one", "two"]), [1, 2]);
    assert_eq!(post.world.timer_keys().len(), 1, "one timer for both");
    assert_eq!(post.append(&["three"]), [3]);
    let (key, _) = post.timer();
    assert_eq!(key.kind, OUTCOME_DELIVERY);
    assert_eq!(key.due_ms, post.world.now_ms());
    assert_eq!(
        post.world.kind_rows().len(),
        4,
        "three outcomes and the state"
    );
}

pub fn appending_from_the_same_reading_loses(make: Make<'_>) {
    let world = Post::new(make).world;
    let read = |id| append_batch(&*world.store, &world.partition, &world.timers, outcome(id));
    let (first, second) = (read("one"), read("two"));
    world.commit(first);
    assert!(!world.apply(second).is_committed());
}

pub fn an_outcome_commits_with_the_state_or_not_at_all(make: Make<'_>) {
    let post = Post::new(make);
    let planned = block_on(post.outbox.plan(&[outcome("paid")])).unwrap();
    let mine = Batch::new()
        .require_absent("order")
        .put("order", "paid")
        .append(planned.batch.clone());
    post.world.commit(Batch::new().put("order", "cancelled"));
    assert!(!post.world.apply(mine).is_committed());
    assert_eq!(post.backlog(), Backlog::default());
    assert!(post.world.timer_keys().is_empty());
    let over = Batch::new()
        .require_equals("order", "cancelled")
        .put("order", "paid")
        .append(planned.batch);
    post.world.commit(over);
    assert_eq!(post.tick(), ["paid"]);
}

pub fn backlog_counts_rows_and_bytes(make: Make<'_>) {
    let post = Post::new(make);
    assert_eq!(post.backlog(), Backlog::default());
    post.append(&["one", "three"]);
    let bytes = ["one", "body of one", "three", "body of three"].map(str::len);
    let expected = Backlog {
        rows: 2,
        bytes: bytes.iter().sum::<usize>() as u64,
    };
    assert_eq!(post.backlog(), expected);
    post.tick();
    assert_eq!(post.backlog(), Backlog::default());
}

pub fn what_waits_can_be_listed(make: Make<'_>) {
    let post = Post::new(make);
    post.append(&["one", "two", "three"]);
    let page = block_on(post.outbox.waiting(None, 2)).unwrap();
    let ids = |page: &[dueline::kinds::outcome_delivery::WaitingOutcome]| -> Vec<String> {
        let ids = page.iter().map(|waiting| waiting.outcome.as_ref().unwrap());
        ids.map(|outcome| super::fixture::text(&outcome.id))
            .collect()
    };
    assert_eq!(ids(&page.outcomes), ["one", "two"]);
    assert_eq!(page.outcomes[0].written_at_ms, post.world.now_ms());
    let rest = block_on(post.outbox.waiting(page.next, 2)).unwrap();
    assert_eq!(ids(&rest.outcomes), ["three"]);
    assert_eq!(rest.next, None);
    assert!(block_on(post.outbox.waiting(None, 0)).is_err());
}

pub fn what_is_over_a_limit_is_refused(make: Make<'_>) {
    let post = Post::new(make);
    let refused = |outcome: Outcome| {
        let error = block_on(post.outbox.append(&[outcome])).unwrap_err();
        assert!(matches!(error, TimerError::Invalid(_)), "{error}");
    };
    refused(Outcome {
        id: vec![0; OUTCOME_ID_BYTES_MAX + 1].into(),
        body: "".into(),
    });
    refused(Outcome {
        id: "".into(),
        body: vec![0; OUTCOME_BODY_BYTES_MAX + 1].into(),
    });
    assert!(OutboxName::new("").is_err());
    assert!(OutboxName::new(vec![b'n'; 65]).is_err());
    let largest = Outcome {
        id: vec![1; OUTCOME_ID_BYTES_MAX].into(),
        body: vec![2; OUTCOME_BODY_BYTES_MAX].into(),
    };
    block_on(post.outbox.append(std::slice::from_ref(&largest))).unwrap();
    post.world.tick(&post.engine);
    assert_eq!(post.told.take()[0].body, largest.body);
}

pub fn a_batch_takes_96_outcomes(make: Make<'_>) {
    let post = Post::new(make);
    let ids: Vec<String> = (0..97).map(|n| format!("n{n}")).collect();
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    assert_eq!(post.append(&ids[..96]).len(), 96);
    let more: Vec<Outcome> = (0..99).map(|_| outcome("more")).collect();
    assert!(block_on(post.outbox.append(&more)).is_err());
    assert_eq!(post.drain(), ids[..96]);
}
