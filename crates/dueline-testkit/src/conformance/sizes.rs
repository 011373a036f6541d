//! Limits: the largest sound request passes, one more is `Invalid`, and nothing is written.

use dueline::limits::{BATCH_BYTES_MAX, BATCH_OPS_MAX, KEY_BYTES_MAX, VALUE_BYTES_MAX};
use dueline::store::{Batch, BatchOutcome, Key, Partition, Precondition, StoreErrorKind, Value};

use super::subject::{NOW_MS, home};
use super::{Make, Subject};
use crate::block_on;

fn key(len: usize) -> Key {
    vec![b'k'; len].into()
}

fn value(len: usize) -> Value {
    vec![b'v'; len].into()
}

fn puts(count: usize) -> Batch {
    (0..count).fold(Batch::new(), |batch, index| {
        batch.put(format!("{index:03}"), "v")
    })
}

/// A key of 1,024 bytes goes everywhere; one of 1,025 goes nowhere.
pub fn keys_end_at_1024_bytes(make: Make<'_>) {
    let subject = Subject::make(make);
    let p = home();
    let (longest, over) = (key(KEY_BYTES_MAX), key(KEY_BYTES_MAX + 1));
    subject.commit(
        &p,
        Batch::new()
            .require_absent(longest.clone())
            .put(longest.clone(), "v"),
    );
    assert_eq!(subject.get(&p, longest.clone()), Some("v".into()));
    subject.commit(
        &p,
        Batch::new()
            .require_present(longest.clone())
            .delete(longest),
    );
    for batch in [
        Batch::new().put(over.clone(), "v"),
        Batch::new().delete(over.clone()),
        Batch::new().require_absent(over.clone()),
        Batch::new().require_present(over.clone()),
        Batch::new().require_equals(over.clone(), "v"),
        Batch::new().put("sound", "v").delete(over.clone()),
    ] {
        assert_eq!(subject.refusal(&p, batch), StoreErrorKind::Invalid);
    }
    let error = block_on(subject.store().get(&p, &over)).expect_err("an oversized key");
    assert_eq!(error.kind(), StoreErrorKind::Invalid);
    let keys = ["sound".into(), over];
    let error = block_on(subject.store().get_many(&p, &keys)).expect_err("an oversized key");
    assert_eq!(error.kind(), StoreErrorKind::Invalid);
    assert_eq!(subject.rows(&p), []);
}

/// A value of 512 KiB can be put and compared; one byte more is refused in both places.
pub fn values_end_at_512_kib(make: Make<'_>) {
    let subject = Subject::make(make);
    let p = home();
    let (largest, over) = (value(VALUE_BYTES_MAX), value(VALUE_BYTES_MAX + 1));
    subject.commit(&p, Batch::new().put("k", largest.clone()));
    subject.commit(&p, Batch::new().require_equals("k", largest.clone()));
    for batch in [
        Batch::new().put("k", over.clone()),
        Batch::new().require_equals("k", over.clone()),
    ] {
        assert_eq!(subject.refusal(&p, batch), StoreErrorKind::Invalid);
    }
    assert_eq!(subject.get(&p, "k"), Some(largest));
}

/// A batch holds 100 operations, time bounds counted.
pub fn batches_end_at_100_operations(make: Make<'_>) {
    let subject = Subject::make(make);
    let p = home();
    subject.commit(&p, puts(BATCH_OPS_MAX));
    assert_eq!(subject.rows(&p).len(), BATCH_OPS_MAX);
    assert_eq!(
        subject.refusal(&p, puts(BATCH_OPS_MAX + 1)),
        StoreErrorKind::Invalid
    );
    let bounded = puts(BATCH_OPS_MAX).require(Precondition::NotAfter(NOW_MS));
    assert_eq!(subject.refusal(&p, bounded), StoreErrorKind::Invalid);
    let guards = (0..BATCH_OPS_MAX).fold(Batch::new(), |batch, index| {
        batch.require_present(format!("{index:03}"))
    });
    subject.commit(&p, guards.clone());
    assert_eq!(
        subject.refusal(&p, guards.delete("000")),
        StoreErrorKind::Invalid
    );
}

/// A batch holds 1 MiB of keys and values, preconditions included and time bounds free of charge.
pub fn batches_end_at_1_mib(make: Make<'_>) {
    let subject = Subject::make(make);
    let p = home();
    let last = BATCH_BYTES_MAX - VALUE_BYTES_MAX - 3;
    let full = |last: usize| {
        let batch = Batch::new()
            .put("a", value(VALUE_BYTES_MAX))
            .put("b", value(last));
        batch
            .require_absent("c")
            .require(Precondition::NotAfter(NOW_MS))
    };
    assert_eq!(full(last).bytes(), BATCH_BYTES_MAX);
    assert_eq!(subject.refusal(&p, full(last + 1)), StoreErrorKind::Invalid);
    assert_eq!(subject.rows(&p), []);
    subject.commit(&p, full(last));
    assert_eq!(subject.get(&p, "b"), Some(value(last)));
}

/// Sizes are checked before anything is read: an oversized batch is `Invalid` even where a guard
/// would have been lost.
pub fn sizes_are_checked_before_anything_is_read(make: Make<'_>) {
    let subject = Subject::make(make);
    let p = home();
    let batch = Batch::new()
        .require_present("gone")
        .put(key(KEY_BYTES_MAX + 1), "v");
    assert_eq!(subject.refusal(&p, batch), StoreErrorKind::Invalid);
    let batch = Batch::new()
        .require(Precondition::NotAfter(0))
        .put("k", value(VALUE_BYTES_MAX + 1));
    assert_eq!(subject.refusal(&p, batch), StoreErrorKind::Invalid);
}

/// An oversized batch stops its group: what is in front is written, what is behind is not, and a
/// guard lost in front of it stops the group without an error.
pub fn an_oversized_batch_stops_its_group_at_its_place(make: Make<'_>) {
    let subject = Subject::make(make);
    let p = home();
    let over = Batch::new().put(key(KEY_BYTES_MAX + 1), "v");
    let put = |key: &'static str| Batch::new().put(key, "v");
    let done = subject.group(&p, vec![put("a"), over.clone(), put("b")]);
    assert_eq!(done.outcomes, [BatchOutcome::Committed]);
    assert_eq!(
        done.stopped_by.map(|error| error.kind()),
        Some(StoreErrorKind::Invalid)
    );
    assert_eq!(subject.keys(&p), ["a"]);
    let loser = put("c").require_absent("a");
    let done = subject.group(&p, vec![loser, over.clone()]);
    assert!(done.stopped_by.is_none(), "{done:?}");
    assert_eq!((done.outcomes.len(), done.committed()), (1, 0));
    let done = subject.group(&p, vec![over, put("d")]);
    assert_eq!(done.outcomes, []);
    assert_eq!(
        done.stopped_by.map(|error| error.kind()),
        Some(StoreErrorKind::Invalid)
    );
    assert_eq!(subject.keys(&p), ["a"]);
}

/// A partition name of 256 bytes is as good as one of a single byte.
pub fn partition_names_may_have_256_bytes(make: Make<'_>) {
    let subject = Subject::make(make);
    let longest = Partition::new(vec![0xff; 256]).expect("the longest name");
    let shorter = Partition::new(vec![0xff; 255]).expect("a long name");
    let shortest = Partition::new(vec![0]).expect("the shortest name");
    for partition in [&longest, &shorter, &shortest] {
        subject.commit(partition, Batch::new().require_absent("k").put("k", "v"));
        assert_eq!(subject.keys(partition), ["k"]);
    }
}
