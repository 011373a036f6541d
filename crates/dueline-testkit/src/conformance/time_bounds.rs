//! `NotAfter` and `NotBefore` go by the backend's own clock at the commit.

use dueline::store::{Batch, BatchOutcome, Precondition};

use super::subject::{NOW_MS, home};
use super::{Make, Subject};
use crate::block_on;

fn not_after(ms: u64) -> Batch {
    Batch::new().require(Precondition::NotAfter(ms))
}

fn not_before(ms: u64) -> Batch {
    Batch::new().require(Precondition::NotBefore(ms))
}

fn passed(backend_now_ms: u64) -> BatchOutcome {
    BatchOutcome::DeadlinePassed { backend_now_ms }
}

fn early(backend_now_ms: u64) -> BatchOutcome {
    BatchOutcome::TooEarly { backend_now_ms }
}

/// Both bounds hold at equality and fail one millisecond beyond it, with the clock's time.
pub fn bounds_hold_at_equality_and_fail_a_millisecond_beyond(make: Make<'_>) {
    let subject = Subject::make(make);
    let p = home();
    subject.commit(&p, not_after(NOW_MS).put("a", "1"));
    assert_eq!(
        subject.apply(&p, not_after(NOW_MS - 1).put("b", "1")),
        passed(NOW_MS)
    );
    subject.commit(&p, not_before(NOW_MS).put("c", "1"));
    assert_eq!(
        subject.apply(&p, not_before(NOW_MS + 1).put("d", "1")),
        early(NOW_MS)
    );
    assert_eq!(subject.keys(&p), ["a", "c"]);
}

/// The same batch passes or fails as the clock goes, forward and back.
pub fn bounds_go_by_the_clock_at_the_commit(make: Make<'_>) {
    let subject = Subject::make(make);
    let p = home();
    let window = not_before(NOW_MS + 10).append(not_after(NOW_MS + 20));
    assert_eq!(subject.apply(&p, window.clone()), early(NOW_MS));
    subject.clock().advance_ms(10);
    subject.commit(&p, window.clone());
    subject.clock().advance_ms(11);
    assert_eq!(subject.apply(&p, window.clone()), passed(NOW_MS + 21));
    subject.clock().jump_wall_ms(-1);
    subject.commit(&p, window);
}

/// A bound is decided at its place in the list: a failing guard before it wins, one behind it loses.
pub fn a_bound_is_decided_at_its_place_in_the_list(make: Make<'_>) {
    let subject = Subject::make(make);
    let p = home();
    let guard_lost = BatchOutcome::PreconditionFailed {
        index: 0,
        observed: None,
    };
    for (bound, outcome) in [
        (not_after(NOW_MS - 1), passed(NOW_MS)),
        (not_before(NOW_MS + 1), early(NOW_MS)),
    ] {
        let guard = Batch::new().require_present("gone");
        assert_eq!(
            subject.apply(&p, guard.clone().append(bound.clone())),
            guard_lost
        );
        assert_eq!(subject.apply(&p, bound.append(guard)), outcome);
    }
    let both = not_before(NOW_MS + 1).append(not_after(NOW_MS - 1));
    assert_eq!(subject.apply(&p, both), early(NOW_MS));
    let both = not_after(NOW_MS - 1).append(not_before(NOW_MS + 1));
    assert_eq!(subject.apply(&p, both), passed(NOW_MS));
}

/// The ends of the range of times are times like any other.
pub fn bounds_may_lie_at_the_ends_of_time(make: Make<'_>) {
    let subject = Subject::at(make, 0);
    let p = home();
    subject.commit(&p, not_after(0).append(not_before(0)));
    subject.commit(&p, not_after(u64::MAX));
    for far in [u64::MAX, i64::MAX as u64, i64::MAX as u64 + 1] {
        assert_eq!(subject.apply(&p, not_before(far)), early(0));
    }
    subject.clock().set_wall_ms(i64::MAX);
    let last = i64::MAX as u64;
    subject.commit(&p, not_after(last).append(not_before(last)));
    assert_eq!(subject.apply(&p, not_after(last - 1)), passed(last));
    assert_eq!(subject.apply(&p, not_before(last + 1)), early(last));
}

/// On a clock before 1970 no bound holds, whatever it says; batches without bounds still commit.
pub fn before_1970_every_bound_fails(make: Make<'_>) {
    for wall_ms in [-1, i64::MIN] {
        let subject = Subject::at(make, wall_ms);
        let p = home();
        for bound_ms in [0, NOW_MS, u64::MAX] {
            let batch = not_after(bound_ms).put("late", "1");
            assert_eq!(subject.apply(&p, batch), passed(u64::MAX));
            let batch = not_before(bound_ms).put("early", "1");
            assert_eq!(subject.apply(&p, batch), early(0));
        }
        subject.commit(&p, Batch::new().put("free", "1"));
        assert_eq!(subject.keys(&p), ["free"]);
    }
}

/// `probe` shows the clock that the bounds go by.
pub fn probe_shows_the_clock_of_the_bounds(make: Make<'_>) {
    let subject = Subject::make(make);
    assert_eq!(
        block_on(subject.store().probe()).expect("an answer"),
        NOW_MS
    );
    subject.clock().jump_wall_ms(-7);
    assert_eq!(
        block_on(subject.store().probe()).expect("an answer"),
        NOW_MS - 7
    );
}
