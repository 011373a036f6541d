//! Walking the partitions.

use std::collections::BTreeSet;

use dueline::store::{Batch, Partition, StoreErrorKind};

use super::subject::{KIND, NOW_MS, delete_timer, home, put_timer};
use super::{Make, Subject};
use crate::block_on;

#[track_caller]
pub(super) fn walk(subject: &Subject, limit: usize) -> Vec<Partition> {
    let mut found = Vec::new();
    let mut after = None;
    loop {
        let page =
            block_on(subject.wake_store().partitions(after.as_ref(), limit)).expect("a page");
        assert!(page.partitions.len() <= limit);
        found.extend(page.partitions);
        if page.next.is_none() {
            return found;
        }
        assert_ne!(page.next, after, "a page moves its cursor on");
        let met: BTreeSet<_> = found.iter().collect();
        assert_eq!(met.len(), found.len(), "no partition is met twice");
        after = page.next;
    }
}

/// Every partition that holds a row is met once, whatever the size of the pages.
pub fn a_walk_meets_every_partition_once(make: Make<'_>) {
    let subject = Subject::make(make);
    let mut held = BTreeSet::new();
    for name in ["a", "aa", "a\0", "b", "\0", "\u{ff}", "zz"] {
        let partition = Partition::new(name).expect("a name");
        subject.commit(&partition, Batch::new().put("k", "v"));
        held.insert(partition);
    }
    let timers = Partition::new("timers").expect("a name");
    subject.commit(&timers, put_timer(KIND, NOW_MS));
    held.insert(timers);
    for limit in [1, 2, 3, 7, 8, 9, usize::MAX] {
        let found = walk(&subject, limit);
        assert_eq!(found.len(), held.len(), "pages of {limit}");
        assert_eq!(
            found.into_iter().collect::<BTreeSet<_>>(),
            held,
            "pages of {limit}"
        );
    }
}

/// An empty store has no partitions; one that was only asked about is none either.
pub fn an_empty_store_has_no_partitions(make: Make<'_>) {
    let subject = Subject::make(make);
    assert_eq!(walk(&subject, 10), []);
    assert_eq!(subject.get(&home(), "k"), None);
    subject.commit(&home(), Batch::new().require_absent("k").delete("k"));
    assert!(
        !subject
            .apply(&home(), Batch::new().require_present("k").put("k", "v"))
            .is_committed()
    );
    assert_eq!(walk(&subject, 10), []);
}

/// A partition is met while it holds a row or a wake, and no longer.
pub fn a_partition_without_rows_and_wakes_is_not_met(make: Make<'_>) {
    let subject = Subject::make(make);
    let p = home();
    subject.commit(&p, put_timer(KIND, NOW_MS));
    subject.commit(&p, delete_timer(KIND, NOW_MS));
    assert_eq!(
        walk(&subject, 10),
        std::slice::from_ref(&p),
        "its wake is left"
    );
    assert_eq!(subject.settle(&p, KIND, &[NOW_MS]), None);
    assert_eq!(walk(&subject, 10), []);
    subject.commit(&p, Batch::new().put("k", "v"));
    assert_eq!(walk(&subject, 10), [p]);
}

/// A walk goes on behind its place when partitions come and go.
pub fn a_walk_goes_on_when_its_place_is_gone(make: Make<'_>) {
    let subject = Subject::make(make);
    for name in ["a", "b", "c"] {
        subject.commit(&crate::partition(name), Batch::new().put("k", "v"));
    }
    let store = subject.wake_store();
    let page = block_on(store.partitions(None, 1)).expect("a page");
    let first = page.next.expect("there are two more");
    subject.commit(&first, Batch::new().delete("k"));
    let mut rest = Vec::new();
    let mut after = Some(first.clone());
    while let Some(place) = after {
        let page = block_on(store.partitions(Some(&place), 1)).expect("a page");
        rest.extend(page.partitions);
        assert!(
            rest.len() <= 2,
            "two partitions are left behind {first}: {rest:?}"
        );
        after = page.next;
    }
    assert_eq!(rest.len(), 2);
    assert!(!rest.contains(&first));
}

/// A limit of 0 is `Invalid`.
pub fn a_limit_of_zero_partitions_is_invalid(make: Make<'_>) {
    let subject = Subject::make(make);
    let answer = block_on(subject.wake_store().partitions(None, 0));
    assert_eq!(
        answer.expect_err("a limit of 0").kind(),
        StoreErrorKind::Invalid
    );
}
