//! Puts and deletes: in list order, atomic, in one partition, of any bytes.

use std::task::{Context, Waker};

use dueline::store::{Batch, Key, Partition};

use super::subject::home;
use super::{Make, Subject};
use crate::block_on;

/// Of several writes to one key the last in the list stays.
pub fn a_later_write_to_a_key_wins(make: Make<'_>) {
    let subject = Subject::make(make);
    let p = home();
    let batch = Batch::new()
        .put("put-put", "1")
        .put("put-put", "2")
        .put("put-delete", "1")
        .delete("put-delete")
        .delete("delete-put")
        .put("delete-put", "1");
    subject.commit(&p, batch);
    assert_eq!(
        subject.rows(&p),
        [
            ("delete-put".into(), "1".into()),
            ("put-put".into(), "2".into())
        ]
    );
    let batch = Batch::new()
        .delete("put-put")
        .put("put-put", "3")
        .delete("delete-put");
    subject.commit(&p, batch.delete("delete-put"));
    assert_eq!(subject.rows(&p), [("put-put".into(), "3".into())]);
}

/// Deleting a key that is not there is no error, in a partition that is not there either.
pub fn deleting_an_absent_key_is_no_error(make: Make<'_>) {
    let subject = Subject::make(make);
    subject.commit(&home(), Batch::new().delete("gone").delete("gone"));
    assert_eq!(subject.rows(&home()), []);
}

/// A put replaces the value as a whole, by a shorter or an empty one too.
pub fn a_put_replaces_the_whole_value(make: Make<'_>) {
    let subject = Subject::make(make);
    let p = home();
    for value in ["a longer value", "short", "", "again"] {
        subject.commit(&p, Batch::new().put("k", value));
        assert_eq!(subject.get(&p, "k"), Some(value.into()));
        assert_eq!(subject.rows(&p).len(), 1);
    }
}

/// Keys and values may be any bytes, and no two keys are taken for one.
pub fn keys_and_values_may_be_any_bytes(make: Make<'_>) {
    let subject = Subject::make(make);
    let p = home();
    let keys: Vec<Key> = [
        &b""[..],
        b"\0",
        b"\0\0",
        b"\0\xff",
        b"%",
        b"'; --",
        b"A",
        b"a",
        b"a\0",
        b"a\0b",
        b"a ",
        b"\xc3\x28",
        b"\xff",
        b"\xff\xff",
    ]
    .map(Key::copy_from_slice)
    .into();
    for key in &keys {
        subject.commit(
            &p,
            Batch::new()
                .require_absent(key.clone())
                .put(key.clone(), key.clone()),
        );
    }
    for key in &keys {
        assert_eq!(subject.get(&p, key.clone()).as_ref(), Some(key));
        subject.commit(&p, Batch::new().require_equals(key.clone(), key.clone()));
    }
    assert_eq!(subject.rows(&p).len(), keys.len());
    for key in &keys {
        subject.commit(
            &p,
            Batch::new()
                .require_present(key.clone())
                .delete(key.clone()),
        );
    }
    assert_eq!(subject.rows(&p), []);
}

/// The same key in two partitions is two rows, however alike the names are.
pub fn partitions_know_nothing_of_each_other(make: Make<'_>) {
    let subject = Subject::make(make);
    let names: [&[u8]; 7] = [b"a", b"a\0", b"aa", b"A", b"b", b"\0", b"\xff"];
    let partitions = names.map(|name| Partition::new(name.to_vec()).expect("a name"));
    for partition in &partitions {
        let value = partition.to_bytes();
        subject.commit(partition, Batch::new().require_absent("k").put("k", value));
    }
    for partition in &partitions {
        assert_eq!(subject.get(partition, "k"), Some(partition.to_bytes()));
        assert_eq!(subject.rows(partition).len(), 1);
    }
    subject.commit(&partitions[0], Batch::new().delete("k"));
    assert_eq!(subject.rows(&partitions[0]), []);
    for partition in &partitions[1..] {
        assert_eq!(subject.get(partition, "k"), Some(partition.to_bytes()));
    }
}

/// A future dropped at any point leaves all of its batch or nothing, and what has once been seen
/// as written stays.
pub fn a_dropped_future_leaves_all_or_nothing(make: Make<'_>) {
    let subject = Subject::make(make);
    let p = home();
    let batch = || Batch::new().put("a", "1").put("b", "1").delete("old");
    for polls in 0..2 {
        subject.commit(&p, Batch::new().put("old", "1").delete("a").delete("b"));
        let mut future = subject.store().apply(&p, batch());
        for _ in 0..polls {
            let _ready = future
                .as_mut()
                .poll(&mut Context::from_waker(Waker::noop()));
        }
        drop(future);
        let (before, after) = (vec![Key::from("old")], vec![Key::from("a"), Key::from("b")]);
        let first = subject.keys(&p);
        assert!(first == before || first == after, "{first:?}");
        subject.commit(&p, Batch::new().put("zz", "1").delete("zz"));
        let second = subject.keys(&p);
        assert!(
            second == after || (second == before && first == before),
            "{first:?} {second:?}"
        );
    }
}

/// The statistics of a partition count its rows, at most a minute late.
pub fn statistics_count_rows(make: Make<'_>) {
    let subject = Subject::make(make);
    let p = home();
    let later = || {
        subject.clock().advance_ms(60_001);
        block_on(subject.store().stats(&p)).expect("statistics")
    };
    assert_eq!(later().rows, 0);
    subject.commit(
        &p,
        Batch::new()
            .put("a", vec![0; 100_000])
            .put("b", "")
            .put("c", "3"),
    );
    let stats = later();
    assert_eq!(stats.rows, 3);
    assert!((50_000..=1_000_000).contains(&stats.bytes), "{stats:?}");
    subject.commit(&p, Batch::new().delete("a").delete("b").put("c", "4"));
    assert_eq!(later().rows, 1);
    subject.commit(&p, Batch::new().delete("c"));
    assert_eq!(later().rows, 0);
}
