//! The rows of an outbox, byte for byte, as FORMAT.md shows them.

use dueline::kinds::outcome_delivery::{Outcome, SinkError};
use dueline_testkit::block_on;

use super::fixture::{Answer, Post};
use super::relay_fixture::{Ferry, message, watermark_key};
use crate::Make;
use crate::format::assert_shown;

const FORMAT: &str = include_str!("../../../../FORMAT.md");

/// FORMAT.md shows this payload of the outbox's timer.
#[track_caller]
fn payload_shown(post: &Post) {
    let (_, timer) = post.timer();
    let bytes = timer.payload.iter();
    let payload: String = bytes.map(|byte| format!("{byte:02x}")).collect();
    let is_shown = FORMAT
        .lines()
        .filter_map(|line| line.strip_prefix("payload "))
        .any(|line| line.split_whitespace().collect::<String>() == payload);
    assert!(is_shown, "FORMAT.md does not show\npayload {payload}");
}

fn one() -> Outcome {
    Outcome {
        id: "order-42".into(),
        body: "paid".into(),
    }
}

pub fn the_rows_of_an_outbox_are_as_documented(make: Make<'_>) {
    let post = Post::new(make);
    post.world.advance_ms(100_000_000_000);
    block_on(post.outbox.append(&[one()])).unwrap();
    assert_shown(&post.world.kind_rows());
    payload_shown(&post);
    // It fails twice, so that the outbox sleeps for two seconds.
    post.told
        .answers(|_| Answer::Fails(SinkError::failed("500")));
    post.tick();
    post.tick_when_due();
    assert_shown(&post.world.kind_rows());
    payload_shown(&post);
    // It is refused, set aside and so gone.
    post.told
        .answers(|_| Answer::Fails(SinkError::refused("410")));
    post.tick_when_due();
    assert_shown(&post.world.kind_rows());
}

pub fn the_rows_of_a_relay_are_as_documented(make: Make<'_>) {
    let ferry = Ferry::new(make);
    ferry.world.advance_ms(100_000_000_000);
    ferry.fail_targets("bad");
    let messages = [
        message("bad", "key", "value"),
        message("target", "key", "value").delete("other"),
    ];
    let rows = messages.map(|message| message.outcome("id").unwrap());
    block_on(ferry.outbox.append(&rows)).unwrap();
    let mut rows = ferry.world.kind_rows();
    rows.retain(|(key, _)| key.starts_with(b"b\0\x08o"));
    assert_shown(&rows);
    ferry.tick();
    let target = ferry.world.in_partition("target");
    let watermark = target.get(&watermark_key()).unwrap();
    assert_shown(&[(watermark_key(), watermark)]);
}
