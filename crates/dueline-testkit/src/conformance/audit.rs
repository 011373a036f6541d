//! The audit finds nothing to mend in a healthy store.

use dueline::store::{AuditPage, Batch, Partition, StoreErrorKind};
use dueline::timers::TimerKind;

use super::subject::{KIND, NOW_MS, OTHER, delete_timer, home, pause, put_timer, resume};
use super::{Make, Subject};
use crate::block_on;

/// Walks the whole store; returns how many partitions were looked at and how many repairs made.
#[track_caller]
pub(super) fn audit(subject: &Subject, limit: usize) -> (usize, usize) {
    let (mut partitions, mut repairs) = (0, 0);
    let mut after: Option<Partition> = None;
    loop {
        let page: AuditPage =
            block_on(subject.wake_store().audit_wakes(after.as_ref(), limit)).expect("an audit");
        assert!(page.partitions <= limit);
        partitions += page.partitions;
        repairs += page.repairs.len();
        if page.next.is_none() {
            return (partitions, repairs);
        }
        assert_ne!(page.next, after, "a page moves its cursor on");
        after = page.next;
    }
}

/// Nothing is mended after puts, moves, pauses and settles, and no wake is added.
pub fn a_healthy_store_needs_no_repair(make: Make<'_>) {
    let subject = Subject::make(make);
    let names = ["a", "b", "c", "d", "e"].map(crate::partition);
    for (index, p) in names.iter().enumerate() {
        let due_ms = NOW_MS + 10 * index as u64;
        subject.commit(
            p,
            put_timer(KIND, due_ms).append(put_timer(OTHER, due_ms + 1)),
        );
        subject.commit(p, put_timer(TimerKind::INVALID, due_ms).put("w\0", "bare"));
    }
    subject.commit(&names[0], pause(KIND));
    subject.clock().advance_ms(25);
    assert_eq!(subject.settle(&names[0], KIND, &[NOW_MS]), None);
    subject.commit(
        &names[1],
        delete_timer(KIND, NOW_MS + 10).append(put_timer(KIND, NOW_MS + 5)),
    );
    subject.commit(&names[2], pause(OTHER));
    subject.commit(&names[2], resume(OTHER));
    subject.commit(&names[3], Batch::new().put("state", "no timer"));
    let wakes = subject.wakes();
    for limit in [1, 2, 5, 100] {
        assert_eq!(audit(&subject, limit), (5, 0), "steps of {limit}");
    }
    subject.clock().advance_ms(1_000_000);
    assert_eq!(audit(&subject, 2), (5, 0));
    assert_eq!(subject.wakes(), wakes);
}

/// An audit of an empty store, and one behind the last partition, end at once.
pub fn an_audit_of_nothing_ends_at_once(make: Make<'_>) {
    let subject = Subject::make(make);
    assert_eq!(audit(&subject, 10), (0, 0));
    subject.commit(&home(), put_timer(KIND, NOW_MS));
    assert_eq!(audit(&subject, 10), (1, 0));
    let behind = block_on(subject.wake_store().audit_wakes(Some(&home()), 10)).expect("an audit");
    assert_eq!(behind, AuditPage::default());
}

/// When the clock has gone back since a lane was settled, its wake may be later than it would be
/// set now: the audit mends it.
pub fn a_wake_left_late_by_a_clock_step_is_mended(make: Make<'_>) {
    let subject = Subject::make(make);
    let p = home();
    subject.commit(&p, put_timer(KIND, NOW_MS));
    subject.clock().advance_ms(3_600_000);
    assert_eq!(
        subject.settle(&p, KIND, &[NOW_MS]),
        Some(NOW_MS + 3_600_000)
    );
    subject.clock().jump_wall_ms(-3_000_000);
    assert_eq!(audit(&subject, 10), (1, 1));
    assert_eq!(
        subject.lane_wakes(&p, KIND).first(),
        Some(&(NOW_MS + 600_000))
    );
    assert_eq!(audit(&subject, 10), (1, 0));
}

/// A limit of 0 is `Invalid`.
pub fn an_audit_of_zero_partitions_is_invalid(make: Make<'_>) {
    let subject = Subject::make(make);
    let answer = block_on(subject.wake_store().audit_wakes(None, 0));
    assert_eq!(
        answer.expect_err("a limit of 0").kind(),
        StoreErrorKind::Invalid
    );
}
