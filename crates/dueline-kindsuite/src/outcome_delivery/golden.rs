//! The rows of an outbox, byte for byte, as FORMAT.md shows them.

use dueline::kinds::outcome_delivery::{Outcome, SinkError};
use dueline::store::{Key, Value};
use dueline_testkit::block_on;

use super::fixture::{Answer, Post};
use super::relay_fixture::{Ferry, message, watermark_key};
use crate::Make;

const FORMAT: &str = include_str!("../../../../FORMAT.md");

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// FORMAT.md shows this row: its lines `key ...` and `value ...`, with blanks between the fields.
#[track_caller]
fn shown(key: &Key, value: &Value) {
    let lines: Vec<String> = FORMAT
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect();
    let (key, value) = (format!("key{}", hex(key)), format!("value{}", hex(value)));
    let is_shown = lines
        .windows(2)
        .any(|pair| pair[0] == key && pair[1] == value);
    assert!(is_shown, "FORMAT.md does not show\n{key}\n{value}");
}

/// FORMAT.md shows this payload of the outbox's timer.
#[track_caller]
fn payload_shown(post: &Post) {
    let (_, timer) = post.timer();
    let payload = format!("payload{}", hex(&timer.payload));
    let is_shown = FORMAT
        .lines()
        .any(|line| line.split_whitespace().collect::<String>() == payload);
    assert!(is_shown, "FORMAT.md does not show\n{payload}");
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
    for (key, value) in post.world.kind_rows() {
        shown(&key, &value);
    }
    payload_shown(&post);
    // It fails twice, so that the outbox sleeps for two seconds.
    post.told
        .answers(|_| Answer::Fails(SinkError::failed("500")));
    post.tick();
    post.tick_when_due();
    for (key, value) in post.world.kind_rows() {
        shown(&key, &value);
    }
    payload_shown(&post);
    // It is refused, set aside and so gone.
    post.told
        .answers(|_| Answer::Fails(SinkError::refused("410")));
    post.tick_when_due();
    for (key, value) in post.world.kind_rows() {
        shown(&key, &value);
    }
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
    for (key, value) in ferry.world.kind_rows() {
        if key.starts_with(b"b\0\x08o") {
            shown(&key, &value);
        }
    }
    ferry.tick();
    let target = ferry.world.in_partition("target");
    let watermark = target.get(&watermark_key()).unwrap();
    shown(&watermark_key(), &watermark);
}
