//! Group commits: batches in order, each atomic, stopping at the first that does not commit.

use dueline::store::{Batch, BatchOutcome, Group, Precondition};

use super::subject::{NOW_MS, home};
use super::{Make, Subject};

/// Every batch of a group sees what those before it have written.
pub fn batches_of_a_group_see_those_before_them(make: Make<'_>) {
    let subject = Subject::make(make);
    let p = home();
    let group = vec![
        Batch::new().require_absent("k").put("k", "1"),
        Batch::new()
            .require_equals("k", "1")
            .put("k", "2")
            .put("other", "x"),
        Batch::new().require_equals("k", "2").delete("k"),
        Batch::new().require_absent("k").require_present("other"),
    ];
    let done = subject.group(&p, group);
    assert!(done.stopped_by.is_none(), "{done:?}");
    assert_eq!(done.outcomes, vec![BatchOutcome::Committed; 4]);
    assert_eq!(subject.keys(&p), ["other"]);
}

/// Wherever the batch that loses stands, those before it are written and those behind it are not.
pub fn a_group_stops_at_the_batch_that_loses(make: Make<'_>) {
    for loser in 0..4 {
        let subject = Subject::make(make);
        let p = home();
        subject.commit(&p, Batch::new().put("held", "value"));
        let group: Vec<Batch> = (0..4)
            .map(|index| {
                let batch = Batch::new()
                    .put(format!("{index}"), "v")
                    .put("last", index.to_string());
                if index == loser {
                    batch.require_absent("held")
                } else {
                    batch
                }
            })
            .collect();
        let done = subject.group(&p, group);
        assert!(
            done.stopped_by.is_none(),
            "a lost guard is no error: {done:?}"
        );
        assert_eq!((done.outcomes.len(), done.committed()), (loser + 1, loser));
        let observed = Some("value".into());
        let lost = BatchOutcome::PreconditionFailed { index: 0, observed };
        assert_eq!(done.outcomes.last(), Some(&lost));
        let last = loser.checked_sub(1).map(|index| index.to_string().into());
        assert_eq!(subject.get(&p, "last"), last);
        let held_and_last = 1 + usize::from(loser > 0);
        assert_eq!(subject.rows(&p).len(), loser + held_and_last);
    }
}

/// A time bound stops a group as a guard does.
pub fn a_group_stops_at_a_time_bound(make: Make<'_>) {
    let subject = Subject::make(make);
    let p = home();
    let put = |key: &'static str| Batch::new().put(key, "v");
    let early = put("b").require(Precondition::NotBefore(NOW_MS + 1));
    let done = subject.group(&p, vec![put("a"), early, put("c")]);
    let outcome = BatchOutcome::TooEarly {
        backend_now_ms: NOW_MS,
    };
    assert_eq!(done.outcomes, [BatchOutcome::Committed, outcome]);
    let late = put("d").require(Precondition::NotAfter(NOW_MS - 1));
    let done = subject.group(&p, vec![late, put("e")]);
    assert_eq!(
        done.outcomes,
        [BatchOutcome::DeadlinePassed {
            backend_now_ms: NOW_MS
        }]
    );
    assert!(done.stopped_by.is_none());
    assert_eq!(subject.keys(&p), ["a"]);
}

/// A batch that loses has no effect on the guards of later groups.
pub fn a_batch_that_lost_leaves_nothing_for_later_guards(make: Make<'_>) {
    let subject = Subject::make(make);
    let p = home();
    let loser = Batch::new().put("x", "1").require_present("gone");
    let done = subject.group(&p, vec![Batch::new().put("a", "1"), loser.clone()]);
    assert_eq!(done.committed(), 1);
    subject.commit(&p, Batch::new().require_absent("x").require_present("a"));
    assert!(!subject.apply(&p, loser).is_committed());
    subject.commit(&p, Batch::new().require_absent("x"));
}

/// A group of nothing does nothing.
pub fn an_empty_group_is_no_error(make: Make<'_>) {
    let subject = Subject::make(make);
    let done = subject.group(&home(), Group::default());
    assert!(
        done.outcomes.is_empty() && done.next_wakes_ms.is_empty(),
        "{done:?}"
    );
    assert!(done.stopped_by.is_none(), "{done:?}");
}

/// A group may hold as many batches as a tick can fire.
pub fn a_group_may_hold_a_thousand_batches(make: Make<'_>) {
    let subject = Subject::make(make);
    let p = home();
    let count = dueline::limits::GROUP_TIMERS_MAX;
    let batches: Vec<Batch> = (0..count)
        .map(|index| {
            let observed = index.checked_sub(1).map(|before| before.to_string().into());
            Batch::new()
                .require_unchanged("count", observed)
                .put("count", index.to_string())
        })
        .collect();
    let done = subject.group(&p, batches);
    assert!(done.stopped_by.is_none(), "{:?}", done.stopped_by);
    assert_eq!(done.committed(), count);
    assert_eq!(
        subject.get(&p, "count"),
        Some((count - 1).to_string().into())
    );
}
