//! Settles that ride in a group: behind its batches, in the same transaction.

use dueline::store::{Batch, Group, StoreErrorKind, WakeSettle};
use dueline::timers::TimerKind;

use super::subject::{KIND, NOW_MS, OTHER, delete_timer, home, put_timer};
use super::{Make, Subject};

fn settle(kind: TimerKind, served_ms: u64) -> WakeSettle {
    WakeSettle {
        kind,
        served_ms: vec![served_ms],
    }
}

/// Settles read what the group's own batches have left, and answer in their order.
pub fn settles_see_the_batches_of_their_group(make: Make<'_>) {
    let subject = Subject::make(make);
    let p = home();
    subject.commit(
        &p,
        put_timer(KIND, NOW_MS + 100).append(put_timer(OTHER, NOW_MS + 100)),
    );
    let served = NOW_MS + 100;
    let group = Group {
        batches: vec![
            delete_timer(KIND, served),
            delete_timer(OTHER, served).append(put_timer(OTHER, NOW_MS + 300)),
        ],
        settles: vec![
            settle(OTHER, served),
            settle(TimerKind(99), served),
            settle(KIND, served),
        ],
    };
    let done = subject.group(&p, group);
    assert!(done.stopped_by.is_none(), "{done:?}");
    assert_eq!(done.committed(), 2);
    assert_eq!(done.next_wakes_ms, [Some(NOW_MS + 300), None, None]);
    assert_eq!(subject.lane_wakes(&p, OTHER), [NOW_MS + 300]);
    assert_eq!(subject.lane_wakes(&p, KIND), [0u64; 0]);
}

/// A group of settles alone is as good as `settle_wake`.
pub fn a_group_may_hold_settles_alone(make: Make<'_>) {
    let subject = Subject::make(make);
    let p = home();
    subject.commit(&p, put_timer(KIND, NOW_MS + 100));
    subject.clock().advance_ms(150);
    let group = Group {
        batches: vec![],
        settles: vec![settle(KIND, NOW_MS + 100)],
    };
    let done = subject.group(&p, group);
    assert!(
        done.outcomes.is_empty() && done.stopped_by.is_none(),
        "{done:?}"
    );
    assert_eq!(done.next_wakes_ms, [Some(NOW_MS + 150)]);
    assert_eq!(subject.lane_wakes(&p, KIND), [NOW_MS + 150]);
}

/// Settles run behind a batch that lost a guard, wherever it stood.
pub fn settles_run_behind_a_lost_guard(make: Make<'_>) {
    for loser in 0..3 {
        let subject = Subject::make(make);
        let p = home();
        let timers = (0..3).fold(Batch::new(), |batch, index| {
            batch.append(put_timer(KIND, NOW_MS + 100 + index))
        });
        subject.commit(&p, timers);
        let batches = (0..3)
            .map(|index| {
                let batch = delete_timer(KIND, NOW_MS + 100 + index);
                if index == loser {
                    batch.require_present("gone")
                } else {
                    batch
                }
            })
            .collect();
        let done = subject.group(
            &p,
            Group {
                batches,
                settles: vec![settle(KIND, NOW_MS + 100)],
            },
        );
        let left_ms = NOW_MS + 100 + loser;
        assert_eq!(
            (done.outcomes.len() as u64, done.committed() as u64),
            (loser + 1, loser)
        );
        assert_eq!(done.next_wakes_ms, [Some(left_ms)]);
        assert_eq!(subject.lane_wakes(&p, KIND), [left_ms]);
    }
}

/// Settles do not run when the group ends in an error; what is committed stays awake.
pub fn settles_do_not_run_behind_an_error(make: Make<'_>) {
    let subject = Subject::make(make);
    let p = home();
    subject.commit(&p, put_timer(KIND, NOW_MS + 100));
    let oversized = Batch::new().put(vec![0; 1_025], "v");
    let group = Group {
        batches: vec![delete_timer(KIND, NOW_MS + 100), oversized],
        settles: vec![settle(KIND, NOW_MS + 100)],
    };
    let done = subject.group(&p, group);
    assert_eq!(done.committed(), 1);
    assert_eq!(
        done.stopped_by.map(|error| error.kind()),
        Some(StoreErrorKind::Invalid)
    );
    assert_eq!(done.next_wakes_ms, []);
    assert_eq!(
        subject.lane_wakes(&p, KIND),
        [NOW_MS + 100],
        "a settle would have taken it"
    );
}

/// A timer put by a batch of the group is woken for, whether or not its lane is settled.
pub fn timers_put_by_a_group_are_woken_for(make: Make<'_>) {
    let subject = Subject::make(make);
    let p = home();
    subject.commit(&p, put_timer(KIND, NOW_MS + 100));
    let group = Group {
        batches: vec![
            put_timer(OTHER, NOW_MS + 50),
            delete_timer(KIND, NOW_MS + 100).append(put_timer(KIND, NOW_MS + 40)),
            put_timer(OTHER, NOW_MS + 20).require_present("gone"),
        ],
        settles: vec![settle(KIND, NOW_MS + 100)],
    };
    let done = subject.group(&p, group);
    assert_eq!(done.committed(), 2);
    assert_eq!(done.next_wakes_ms, [Some(NOW_MS + 40)]);
    assert_eq!(subject.lane_wakes(&p, KIND).first(), Some(&(NOW_MS + 40)));
    assert_eq!(subject.lane_wakes(&p, OTHER), [NOW_MS + 50]);
}

/// One lane may be settled twice in a group.
pub fn a_lane_may_be_settled_twice_in_a_group(make: Make<'_>) {
    let subject = Subject::make(make);
    let p = home();
    subject.commit(&p, put_timer(KIND, NOW_MS + 100));
    let settles = vec![settle(KIND, NOW_MS + 100), settle(KIND, NOW_MS + 100)];
    let done = subject.group(
        &p,
        Group {
            batches: vec![],
            settles,
        },
    );
    assert_eq!(done.next_wakes_ms, [Some(NOW_MS + 100); 2]);
    assert_eq!(subject.lane_wakes(&p, KIND), [NOW_MS + 100]);
}
