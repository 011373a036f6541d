//! Reading wakes: by kind and time, in pages.

use dueline::store::{Partition, StoreErrorKind};
use dueline::timers::{KindSet, TimerKind};

use super::subject::{KIND, NOW_MS, OTHER, delete_timer, home, put_timer};
use super::{Make, Subject};
use crate::block_on;

fn numbered(index: u64) -> Partition {
    Partition::new(format!("partition-{index:03}")).expect("a name")
}

/// Wakes come earliest first, up to the time asked for and including it.
pub fn wakes_come_in_the_order_of_their_time(make: Make<'_>) {
    let subject = Subject::make(make);
    for (index, due_ms) in [70, 10, 50, 30, 90].into_iter().enumerate() {
        let kind = if index % 2 == 0 { KIND } else { OTHER };
        subject.commit(&numbered(index as u64), put_timer(kind, NOW_MS + due_ms));
    }
    let times = |until_ms| -> Vec<u64> {
        let wakes = subject.wakes_of(&KindSet::all(), until_ms, 100);
        wakes.into_iter().map(|wake| wake.at_ms - NOW_MS).collect()
    };
    assert_eq!(times(NOW_MS + 9), [0u64; 0]);
    assert_eq!(times(NOW_MS + 10), [10]);
    assert_eq!(times(NOW_MS + 69), [10, 30, 50]);
    assert_eq!(times(u64::MAX), [10, 30, 50, 70, 90]);
    assert_eq!(times(i64::MAX as u64), [10, 30, 50, 70, 90]);
}

/// Only wakes of the kinds asked for are returned; the others stay where they are.
pub fn wakes_of_other_kinds_stay(make: Make<'_>) {
    let subject = Subject::make(make);
    let p = home();
    let kinds = [
        TimerKind::INVALID,
        TimerKind(1),
        KIND,
        TimerKind(63),
        TimerKind(64),
        OTHER,
    ];
    for kind in kinds {
        subject.commit(&p, put_timer(kind, NOW_MS));
    }
    let asked = |kinds: &[TimerKind]| -> Vec<TimerKind> {
        let wakes = subject.wakes_of(&kinds.iter().copied().collect(), u64::MAX, 100);
        let mut found: Vec<_> = wakes.into_iter().map(|wake| wake.kind).collect();
        found.sort_unstable();
        found
    };
    assert_eq!(asked(&[]), []);
    assert_eq!(asked(&[KIND]), [KIND]);
    assert_eq!(
        asked(&[OTHER, TimerKind(1), TimerKind(200)]),
        [TimerKind(1), OTHER]
    );
    assert_eq!(asked(&kinds), kinds);
    subject.commit(&p, delete_timer(KIND, NOW_MS));
    assert_eq!(subject.settle(&p, KIND, &[NOW_MS]), None);
    assert_eq!(subject.wakes().len(), kinds.len() - 1);
}

/// Pages of any size add up, over wakes of one time and lanes of one partition too.
pub fn pages_of_wakes_add_up(make: Make<'_>) {
    let subject = Subject::make(make);
    for index in 0..12 {
        let batch = put_timer(KIND, NOW_MS + index / 6);
        subject.commit(
            &numbered(index),
            batch.append(put_timer(OTHER, NOW_MS + index / 6)),
        );
    }
    subject.commit(&numbered(50), put_timer(TimerKind(5), NOW_MS));
    let mut everything = subject.wakes_of(&KindSet::all(), NOW_MS + 1, 1_000);
    assert!(everything.is_sorted_by_key(|wake| wake.at_ms));
    everything.sort_unstable();
    assert_eq!(everything.len(), 25);
    for limit in 1..=26 {
        let mut wakes = subject.wakes_of(&KindSet::all(), NOW_MS + 1, limit);
        assert!(
            wakes.is_sorted_by_key(|wake| wake.at_ms),
            "pages of {limit}"
        );
        wakes.sort_unstable();
        assert_eq!(wakes, everything, "pages of {limit}");
        let of_two = KindSet::from_iter([KIND, TimerKind(5)]);
        assert_eq!(
            subject.wakes_of(&of_two, NOW_MS, limit).len(),
            7,
            "pages of {limit}"
        );
    }
}

/// A page that holds all that is left carries no cursor.
pub fn the_last_page_of_wakes_carries_no_cursor(make: Make<'_>) {
    let subject = Subject::make(make);
    for index in 0..3 {
        subject.commit(&numbered(index), put_timer(KIND, NOW_MS));
    }
    subject.commit(&numbered(9), put_timer(KIND, NOW_MS + 1));
    let kinds = KindSet::all();
    let mut after = None;
    let mut seen = 0;
    while seen < 3 {
        let store = subject.wake_store();
        let page = block_on(store.due_wakes(&kinds, NOW_MS, after.as_ref(), 3)).expect("a page");
        seen += page.wakes.len();
        assert_eq!(page.next.is_none(), seen == 3, "{page:?}");
        after = page.next;
    }
}

/// A cursor stays good when its wake is served between two pages.
pub fn a_cursor_outlives_its_wake(make: Make<'_>) {
    let subject = Subject::make(make);
    for index in 0..4 {
        subject.commit(&numbered(index), put_timer(KIND, NOW_MS + index));
    }
    let kinds = KindSet::all();
    let store = subject.wake_store();
    let page = block_on(store.due_wakes(&kinds, u64::MAX, None, 1)).expect("a page");
    assert_eq!(page.wakes.len(), 1);
    subject.commit(&numbered(0), delete_timer(KIND, NOW_MS));
    assert_eq!(subject.settle(&numbered(0), KIND, &[NOW_MS]), None);
    let page = block_on(store.due_wakes(&kinds, u64::MAX, page.next.as_ref(), 1)).expect("a page");
    assert_eq!(page.wakes.first().map(|wake| wake.at_ms), Some(NOW_MS + 1));
}

/// Thousands of wakes are all read, however the store cuts its pages.
pub fn a_page_of_wakes_may_be_cut_short(make: Make<'_>) {
    let subject = Subject::make(make);
    for index in 0..25 {
        let batch = (0..=199).fold(Vec::new(), |mut batches, kind| {
            batches.push(put_timer(TimerKind(kind), NOW_MS + u64::from(kind)));
            batches
        });
        assert_eq!(subject.group(&numbered(index), batch).committed(), 200);
    }
    assert_eq!(
        subject
            .wakes_of(&KindSet::all(), u64::MAX, usize::MAX)
            .len(),
        5_000
    );
}

/// A limit of 0 is `Invalid`.
pub fn a_limit_of_zero_wakes_is_invalid(make: Make<'_>) {
    let subject = Subject::make(make);
    let kinds = KindSet::all();
    let answer = block_on(subject.wake_store().due_wakes(&kinds, 0, None, 0));
    assert_eq!(
        answer.expect_err("a limit of 0").kind(),
        StoreErrorKind::Invalid
    );
}
