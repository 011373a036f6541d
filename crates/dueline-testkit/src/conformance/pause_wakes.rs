//! The second rule of wakes: a lane that is resumed gets its wake in the same transaction.

use dueline::store::Batch;

use super::subject::{KIND, NOW_MS, OTHER, delete_timer, home, pause, put_timer, resume};
use super::{Make, Subject};

/// A paused lane is settled without a wake, and resuming it sets one at `max(now, due)`.
pub fn a_resumed_lane_is_woken_at_its_first_row_or_now(make: Make<'_>) {
    for (due_ms, later_ms, wake_ms) in [(500, 100, 500), (500, 500, 500), (500, 900, 900)] {
        let subject = Subject::make(make);
        let p = home();
        subject.commit(&p, put_timer(KIND, NOW_MS + due_ms));
        subject.commit(&p, pause(KIND));
        assert_eq!(subject.settle(&p, KIND, &[NOW_MS + due_ms]), None);
        assert_eq!(
            subject.lane_wakes(&p, KIND),
            [0u64; 0],
            "a paused lane sleeps"
        );
        subject.clock().advance_ms(later_ms);
        subject.commit(&p, resume(KIND));
        assert_eq!(subject.lane_wakes(&p, KIND), [NOW_MS + wake_ms]);
    }
}

/// A timer put while its lane is paused is found when the lane is resumed.
pub fn a_timer_put_during_a_pause_is_found_afterwards(make: Make<'_>) {
    let subject = Subject::make(make);
    let p = home();
    subject.commit(&p, pause(KIND));
    subject.commit(&p, put_timer(KIND, NOW_MS + 300));
    let wakes = subject.lane_wakes(&p, KIND);
    assert_eq!(subject.settle(&p, KIND, &wakes), None);
    subject.commit(&p, put_timer(KIND, NOW_MS + 700));
    let wakes = subject.lane_wakes(&p, KIND);
    assert_eq!(subject.settle(&p, KIND, &wakes), None);
    subject.commit(&p, resume(KIND));
    assert_eq!(subject.lane_wakes(&p, KIND), [NOW_MS + 300]);
}

/// A batch that resumes a lane may also put and delete its timers: what counts is what it leaves.
pub fn a_batch_may_resume_and_write_timers(make: Make<'_>) {
    let writes = [
        resume(KIND).append(put_timer(KIND, NOW_MS + 200)),
        put_timer(KIND, NOW_MS + 200).append(resume(KIND)),
        resume(KIND)
            .append(delete_timer(KIND, NOW_MS + 100))
            .append(put_timer(KIND, NOW_MS + 200)),
    ];
    for (batch, wake_ms) in writes.into_iter().zip([100, 100, 200]) {
        let subject = Subject::make(make);
        let p = home();
        subject.commit(&p, put_timer(KIND, NOW_MS + 100).append(pause(KIND)));
        let wakes = subject.lane_wakes(&p, KIND);
        assert_eq!(subject.settle(&p, KIND, &wakes), None);
        subject.commit(&p, batch);
        let first = subject.lane_wakes(&p, KIND).first().copied();
        assert!(
            first.is_some_and(|at_ms| at_ms <= NOW_MS + wake_ms),
            "{first:?}"
        );
    }
}

/// Of a pause and a resume in one batch the last in the list stays, for the wakes too.
pub fn a_pause_and_a_resume_in_one_batch_end_as_the_last_says(make: Make<'_>) {
    let subject = Subject::make(make);
    let p = home();
    subject.commit(&p, put_timer(KIND, NOW_MS + 100));
    subject.commit(&p, pause(KIND).append(resume(KIND)));
    assert_eq!(
        subject.settle(&p, KIND, &[NOW_MS + 100]),
        Some(NOW_MS + 100),
        "not paused"
    );
    subject.commit(&p, pause(KIND));
    assert_eq!(subject.settle(&p, KIND, &[NOW_MS + 100]), None);
    subject.commit(&p, resume(KIND).append(pause(KIND)));
    let wakes = subject.lane_wakes(&p, KIND);
    assert_eq!(subject.settle(&p, KIND, &wakes), None, "paused");
    subject.commit(&p, pause(KIND).append(resume(KIND)));
    assert_eq!(subject.lane_wakes(&p, KIND), [NOW_MS + 100], "resumed");
}

/// Within a group a lane may be resumed by one batch and settled at the end.
pub fn a_lane_resumed_within_a_group_is_woken(make: Make<'_>) {
    let subject = Subject::make(make);
    let p = home();
    subject.commit(&p, put_timer(KIND, NOW_MS + 100).append(pause(KIND)));
    let wakes = subject.lane_wakes(&p, KIND);
    assert_eq!(subject.settle(&p, KIND, &wakes), None);
    let done = subject.group(&p, vec![Batch::new().put("a", "1"), resume(KIND)]);
    assert_eq!(done.committed(), 2);
    assert_eq!(subject.lane_wakes(&p, KIND), [NOW_MS + 100]);
}

/// A pause stops one kind in one partition; the others go on.
pub fn a_pause_stops_one_lane_only(make: Make<'_>) {
    let subject = Subject::make(make);
    let (p, q) = (home(), crate::partition("away"));
    let both = put_timer(KIND, NOW_MS + 100).append(put_timer(OTHER, NOW_MS + 100));
    subject.commit(&p, both.append(pause(KIND)));
    subject.commit(&q, put_timer(KIND, NOW_MS + 100));
    let served = [NOW_MS + 100];
    assert_eq!(subject.settle(&p, KIND, &served), None);
    assert_eq!(subject.settle(&p, OTHER, &served), Some(served[0]));
    assert_eq!(subject.settle(&q, KIND, &served), Some(served[0]));
}

/// Resuming a lane that is empty, or that was not paused, is no error.
pub fn a_needless_resume_is_no_error(make: Make<'_>) {
    let subject = Subject::make(make);
    let p = home();
    subject.commit(&p, resume(KIND));
    subject.commit(&p, pause(KIND));
    subject.commit(&p, resume(KIND));
    let wakes = subject.lane_wakes(&p, KIND);
    assert_eq!(subject.settle(&p, KIND, &wakes), None);
    assert_eq!(subject.wakes(), []);
}

/// A resume that loses its guard leaves the lane paused and without a wake.
pub fn a_resume_that_loses_its_guard_wakes_nobody(make: Make<'_>) {
    let subject = Subject::make(make);
    let p = home();
    subject.commit(&p, put_timer(KIND, NOW_MS + 100).append(pause(KIND)));
    let wakes = subject.lane_wakes(&p, KIND);
    assert_eq!(subject.settle(&p, KIND, &wakes), None);
    assert!(
        !subject
            .apply(&p, resume(KIND).require_present("gone"))
            .is_committed()
    );
    assert_eq!(subject.wakes(), []);
}
