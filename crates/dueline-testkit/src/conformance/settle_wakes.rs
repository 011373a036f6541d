//! The third rule of wakes: a settle takes the wakes that were served and reads the lane's first row
//! to set the next, in one transaction.

use super::subject::{KIND, NOW_MS, OTHER, delete_timer, home, put_timer};
use super::{Make, Subject};

/// The next wake is the first row's due, or now if that has passed.
pub fn the_next_wake_is_the_first_rows_due_or_now(make: Make<'_>) {
    for (later_ms, next_ms) in [(0, 100), (99, 100), (100, 100), (101, 101), (5_000, 5_000)] {
        let subject = Subject::make(make);
        let p = home();
        subject.commit(
            &p,
            put_timer(KIND, NOW_MS + 100).append(put_timer(KIND, NOW_MS + 200)),
        );
        let served = subject.lane_wakes(&p, KIND);
        subject.clock().advance_ms(later_ms);
        assert_eq!(subject.settle(&p, KIND, &served), Some(NOW_MS + next_ms));
        assert_eq!(subject.lane_wakes(&p, KIND), [NOW_MS + next_ms]);
    }
}

/// A lane whose rows are gone is settled without a wake.
pub fn an_empty_lane_gets_no_wake(make: Make<'_>) {
    let subject = Subject::make(make);
    let p = home();
    subject.commit(
        &p,
        put_timer(KIND, NOW_MS + 100).append(put_timer(OTHER, NOW_MS + 100)),
    );
    subject.commit(&p, delete_timer(KIND, NOW_MS + 100));
    assert_eq!(subject.settle(&p, KIND, &[NOW_MS + 100]), None);
    assert_eq!(subject.lane_wakes(&p, KIND), [0u64; 0]);
    assert_eq!(
        subject.lane_wakes(&p, OTHER),
        [NOW_MS + 100],
        "another lane's wake stays"
    );
}

/// Several wakes of one lane are served together.
pub fn several_wakes_of_a_lane_are_served_together(make: Make<'_>) {
    let subject = Subject::make(make);
    let p = home();
    for due_ms in [900, 600, 300] {
        subject.commit(&p, put_timer(KIND, NOW_MS + due_ms));
    }
    let served = subject.lane_wakes(&p, KIND);
    assert_eq!(served.first(), Some(&(NOW_MS + 300)));
    subject.clock().advance_ms(300);
    subject.commit(&p, delete_timer(KIND, NOW_MS + 300));
    assert_eq!(subject.settle(&p, KIND, &served), Some(NOW_MS + 600));
    assert_eq!(subject.lane_wakes(&p, KIND), [NOW_MS + 600]);
}

/// A wake that was set since the served ones were read is not taken with them.
pub fn a_wake_that_was_not_served_stays(make: Make<'_>) {
    let subject = Subject::make(make);
    let p = home();
    subject.commit(&p, put_timer(KIND, NOW_MS + 500));
    let read_earlier = subject.lane_wakes(&p, KIND);
    subject.commit(&p, put_timer(KIND, NOW_MS + 100));
    let _next = subject.settle(&p, KIND, &read_earlier);
    assert_eq!(subject.lane_wakes(&p, KIND).first(), Some(&(NOW_MS + 100)));
}

/// A settle that serves nothing sees to it that the lane has its wake, and takes none.
pub fn a_settle_may_serve_nothing(make: Make<'_>) {
    let subject = Subject::make(make);
    let p = home();
    assert_eq!(subject.settle(&p, KIND, &[]), None);
    subject.commit(&p, put_timer(KIND, NOW_MS + 100));
    let next = subject.settle(&p, KIND, &[]);
    assert_eq!(next, Some(NOW_MS + 100));
    assert_eq!(subject.lane_wakes(&p, KIND), [NOW_MS + 100]);
}

/// Served times that are not stored are passed over; the same settle again changes nothing.
pub fn a_settle_may_be_repeated(make: Make<'_>) {
    let subject = Subject::make(make);
    let p = home();
    subject.commit(&p, put_timer(KIND, NOW_MS + 100));
    let served = [0, NOW_MS + 100, NOW_MS + 100, NOW_MS + 7_000, u64::MAX];
    for _ in 0..3 {
        assert_eq!(subject.settle(&p, KIND, &served), Some(NOW_MS + 100));
        assert_eq!(subject.lane_wakes(&p, KIND), [NOW_MS + 100]);
    }
}

/// A lane that still has due rows is settled at now, and so goes behind lanes that have waited.
pub fn a_lane_with_due_rows_left_goes_behind_the_others(make: Make<'_>) {
    let subject = Subject::make(make);
    let (p, q) = (home(), crate::partition("away"));
    subject.commit(
        &p,
        put_timer(KIND, NOW_MS + 10).append(put_timer(KIND, NOW_MS + 11)),
    );
    subject.commit(&q, put_timer(KIND, NOW_MS + 12));
    subject.clock().advance_ms(20);
    subject.commit(&p, delete_timer(KIND, NOW_MS + 10));
    assert_eq!(subject.settle(&p, KIND, &[NOW_MS + 10]), Some(NOW_MS + 20));
    let order: Vec<_> = subject
        .wakes()
        .into_iter()
        .map(|wake| (wake.partition, wake.at_ms))
        .collect();
    assert_eq!(order, [(q, NOW_MS + 12), (p, NOW_MS + 20)]);
}

/// A settle of one partition leaves the same lane of another alone.
pub fn a_settle_stays_in_its_partition(make: Make<'_>) {
    let subject = Subject::make(make);
    let (p, q) = (home(), crate::partition("away"));
    for partition in [&p, &q] {
        subject.commit(partition, put_timer(KIND, NOW_MS + 100));
    }
    subject.commit(&p, delete_timer(KIND, NOW_MS + 100));
    assert_eq!(subject.settle(&p, KIND, &[NOW_MS + 100]), None);
    assert_eq!(subject.lane_wakes(&q, KIND), [NOW_MS + 100]);
}
