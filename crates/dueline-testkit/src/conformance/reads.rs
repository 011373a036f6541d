//! Point reads, alone and together.

use dueline::store::{Batch, Key, StoreErrorKind};

use super::subject::home;
use super::{Make, Subject};
use crate::block_on;

/// Values come in the order of the keys, gaps and repetitions included.
pub fn get_many_answers_in_the_order_of_the_keys(make: Make<'_>) {
    let subject = Subject::make(make);
    let p = home();
    subject.commit(&p, Batch::new().put("a", "1").put("b", "").put("c", "3"));
    let keys: Vec<Key> = ["c", "gone", "a", "c", "b", "", "a"].map(Key::from).into();
    let values = block_on(subject.store().get_many(&p, &keys)).expect("the values");
    let wanted = [
        Some("3"),
        None,
        Some("1"),
        Some("3"),
        Some(""),
        None,
        Some("1"),
    ];
    assert_eq!(values, wanted.map(|value| value.map(Into::into)));
    let none = block_on(subject.store().get_many(&p, &[])).expect("no values");
    assert_eq!(none, []);
}

/// Any number of keys may be asked for at once.
pub fn get_many_takes_more_keys_than_a_batch_may_hold(make: Make<'_>) {
    let subject = Subject::make(make);
    let p = home();
    for hundred in 0..3 {
        let batch = (0..100).fold(Batch::new(), |batch, one| {
            batch.put(format!("{hundred}{one:02}"), format!("{one}"))
        });
        subject.commit(&p, batch);
    }
    let keys: Vec<Key> = (0..600)
        .rev()
        .map(|index| format!("{index:03}").into())
        .collect();
    let values = block_on(subject.store().get_many(&p, &keys)).expect("the values");
    assert_eq!(values.len(), 600);
    for (index, value) in (0..600).rev().zip(values) {
        let wanted = (index < 300).then(|| format!("{}", index % 100).into());
        assert_eq!(value, wanted, "key {index}");
    }
}

/// A partition nobody has written is empty, not an error.
pub fn a_partition_nobody_has_written_is_empty(make: Make<'_>) {
    let subject = Subject::make(make);
    let p = home();
    assert_eq!(subject.get(&p, "k"), None);
    assert_eq!(subject.rows(&p), []);
    let range = dueline::store::ScanRange::new("a", "b", 0);
    let error = block_on(subject.store().scan(&p, &range)).expect_err("a limit of 0");
    assert_eq!(error.kind(), StoreErrorKind::Invalid);
}

/// A read that follows a commit sees it, whichever call reads.
pub fn reads_see_every_commit_before_them(make: Make<'_>) {
    let subject = Subject::make(make);
    let p = home();
    for round in 0..20 {
        let value = round.to_string();
        subject.commit(&p, Batch::new().put("k", value.clone()));
        assert_eq!(subject.get(&p, "k"), Some(value.clone().into()));
        assert_eq!(subject.rows(&p), [("k".into(), value.into())]);
    }
}
