//! The first rule of wakes: a batch that puts a timer leaves its lane a wake in time.

use dueline::store::Batch;
use dueline::timers::TimerKind;

use super::subject::{KIND, NOW_MS, OTHER, delete_timer, home, pause, put_timer, timer_key};
use super::{Make, Subject};

/// The first timer of a lane sets its wake at `max(now, due)`.
pub fn the_first_timer_sets_the_wake_at_its_due_or_now(make: Make<'_>) {
    for (due_ms, wake_ms) in [
        (NOW_MS + 5_000, NOW_MS + 5_000),
        (NOW_MS + 1, NOW_MS + 1),
        (NOW_MS, NOW_MS),
        (NOW_MS - 1, NOW_MS),
        (0, NOW_MS),
    ] {
        let subject = Subject::make(make);
        subject.commit(&home(), put_timer(KIND, due_ms));
        assert_eq!(
            subject.lane_wakes(&home(), KIND),
            [wake_ms],
            "due at {due_ms}"
        );
        assert_eq!(subject.wakes().len(), 1);
    }
}

/// An earlier timer moves the lane's first wake; a later one leaves it where it is.
pub fn an_earlier_timer_wakes_the_lane_earlier(make: Make<'_>) {
    let subject = Subject::make(make);
    let p = home();
    for (due_ms, first_ms) in [(500, 500), (900, 500), (200, 200), (300, 200), (201, 200)] {
        subject.commit(&p, put_timer(KIND, NOW_MS + due_ms));
        assert_eq!(
            subject.lane_wakes(&p, KIND).first(),
            Some(&(NOW_MS + first_ms))
        );
    }
}

/// Timers put by one batch count together, whatever their order in it.
pub fn timers_of_one_batch_wake_the_lane_at_the_earliest(make: Make<'_>) {
    let subject = Subject::make(make);
    let p = home();
    let batch = [700, 300, 500]
        .into_iter()
        .fold(Batch::new(), |batch, due_ms| {
            batch.append(put_timer(KIND, NOW_MS + due_ms))
        });
    subject.commit(&p, batch.append(put_timer(OTHER, NOW_MS + 400)));
    assert_eq!(subject.lane_wakes(&p, KIND).first(), Some(&(NOW_MS + 300)));
    assert_eq!(subject.lane_wakes(&p, OTHER), [NOW_MS + 400]);
}

/// A move of a timer, a delete and a put in one batch, leaves a wake in time for the new row.
pub fn a_moved_timer_is_woken_for(make: Make<'_>) {
    let subject = Subject::make(make);
    let p = home();
    subject.commit(&p, put_timer(KIND, NOW_MS + 500));
    let earlier = delete_timer(KIND, NOW_MS + 500).append(put_timer(KIND, NOW_MS + 100));
    subject.commit(&p, earlier);
    assert_eq!(subject.lane_wakes(&p, KIND).first(), Some(&(NOW_MS + 100)));
    let later = delete_timer(KIND, NOW_MS + 100).append(put_timer(KIND, NOW_MS + 800));
    subject.commit(&p, later);
    let first = subject.lane_wakes(&p, KIND).first().copied();
    assert!(
        first.is_some_and(|at_ms| at_ms <= NOW_MS + 800),
        "{first:?}"
    );
}

/// Two lanes of a partition and one lane of two partitions have wakes of their own.
pub fn every_lane_has_wakes_of_its_own(make: Make<'_>) {
    let subject = Subject::make(make);
    let (p, q) = (home(), crate::partition("away"));
    let lanes = [
        (&p, TimerKind(1), 100),
        (&p, KIND, 200),
        (&p, TimerKind(0xFF), 300),
        (&q, KIND, 50),
        (&q, OTHER, 400),
    ];
    for (partition, kind, due_ms) in lanes {
        subject.commit(partition, put_timer(kind, NOW_MS + due_ms));
    }
    for (partition, kind, due_ms) in lanes {
        assert_eq!(subject.lane_wakes(partition, kind), [NOW_MS + due_ms]);
    }
    assert_eq!(subject.wakes().len(), lanes.len());
}

/// A batch that loses a guard leaves no wake, and neither does one that puts no timer.
pub fn no_timer_no_wake(make: Make<'_>) {
    let subject = Subject::make(make);
    let p = home();
    let lost = put_timer(KIND, NOW_MS).require_present("gone");
    assert!(!subject.apply(&p, lost.clone()).is_committed());
    assert_eq!(subject.group(&p, vec![lost]).committed(), 0);
    subject.commit(&p, delete_timer(KIND, NOW_MS));
    subject.commit(
        &p,
        Batch::new()
            .put("w", "1")
            .put("w\x01\x10", "1")
            .put("", "1"),
    );
    subject.commit(&p, Batch::new().put("n\0\x10ref", "1").put("q\0\x10", "1"));
    subject.commit(&p, pause(KIND));
    assert_eq!(subject.wakes(), []);
}

/// A put over a timer row that is already there keeps the lane awake.
pub fn a_put_over_a_timer_keeps_the_wake(make: Make<'_>) {
    let subject = Subject::make(make);
    let p = home();
    subject.commit(&p, put_timer(KIND, NOW_MS + 100));
    subject.commit(
        &p,
        Batch::new().put(timer_key(KIND, NOW_MS + 100, ""), "another value"),
    );
    assert_eq!(subject.lane_wakes(&p, KIND), [NOW_MS + 100]);
}

/// With a clock before 1970 wakes are set as if it showed 1970.
pub fn before_1970_a_lane_is_woken_at_its_due(make: Make<'_>) {
    let subject = Subject::at(make, -5_000);
    subject.commit(&home(), put_timer(KIND, 0));
    subject.commit(&home(), put_timer(OTHER, 700));
    assert_eq!(subject.lane_wakes(&home(), KIND), [0]);
    assert_eq!(subject.lane_wakes(&home(), OTHER), [700]);
}
