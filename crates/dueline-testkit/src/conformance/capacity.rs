//! A full store: puts are refused, everything else goes on. Needs [`Setup::small`](super::Setup).

use dueline::store::{Batch, BatchOutcome, Group, StoreErrorKind, WakeSettle};

use super::subject::{KIND, NOW_MS, delete_timer, home, put_timer};
use super::{Make, Setup, Subject};
use crate::{ManualClock, block_on};

const ROW_BYTES: usize = 64 * 1_024;
/// 64 MiB of rows.
const ROWS_MAX: usize = 1_024;

/// A small store filled until it refused a row; returns how many rows it took.
fn full(make: Make<'_>) -> (Subject, usize) {
    let clock = ManualClock::new(i64::try_from(NOW_MS).expect("a time"));
    let subject = make(Setup { clock, small: true });
    let p = home();
    subject.commit(&p, put_timer(KIND, NOW_MS + 100));
    for rows in 0..ROWS_MAX {
        match block_on(subject.store().apply(&p, row(rows))) {
            Ok(outcome) => assert_eq!(outcome, BatchOutcome::Committed),
            Err(error) => {
                assert_eq!(error.kind(), StoreErrorKind::Full, "{error}");
                assert!(rows >= 3, "the cases need room for three rows of 64 KiB");
                return (subject, rows);
            }
        }
    }
    panic!("the small store still took rows after 64 MiB");
}

fn name(index: usize) -> String {
    format!("row-{index:05}")
}

fn row(index: usize) -> Batch {
    Batch::new()
        .require_absent(name(index))
        .put(name(index), vec![7; ROW_BYTES])
}

/// The batch that finds the store full leaves nothing: no row, no delete, no wake.
pub fn a_batch_refused_as_full_leaves_nothing(make: Make<'_>) {
    let (subject, rows) = full(make);
    let p = home();
    assert_eq!(subject.keys(&p).len(), rows + 1);
    let batch = Batch::new()
        .put(name(rows), vec![7; ROW_BYTES])
        .put(name(rows + 1), vec![7; ROW_BYTES])
        .delete("gone")
        .append(put_timer(KIND, NOW_MS + 1));
    assert_eq!(subject.refusal(&p, batch), StoreErrorKind::Full);
    assert_eq!(subject.keys(&p).len(), rows + 1);
    assert_eq!(subject.lane_wakes(&p, KIND), [NOW_MS + 100]);
}

/// A full store still answers reads, lost guards and pure checks.
pub fn a_full_store_still_answers(make: Make<'_>) {
    let (subject, rows) = full(make);
    let p = home();
    assert_eq!(
        subject.get(&p, name(0)).map(|value| value.len()),
        Some(ROW_BYTES)
    );
    assert_eq!(subject.get(&p, name(rows)), None);
    subject.commit(&p, Batch::new().require_present(name(0)));
    let lost = Batch::new()
        .require_present("gone")
        .put("k", vec![0; ROW_BYTES]);
    let outcome = BatchOutcome::PreconditionFailed {
        index: 0,
        observed: None,
    };
    assert_eq!(subject.apply(&p, lost), outcome);
    assert!(block_on(subject.store().probe()).is_ok());
}

/// Deletes work on a full store and make room for puts.
pub fn deletes_work_on_a_full_store_and_make_room(make: Make<'_>) {
    let (subject, rows) = full(make);
    let p = home();
    for index in 0..rows {
        subject.commit(
            &p,
            Batch::new()
                .require_present(name(index))
                .delete(name(index)),
        );
    }
    subject.commit(&p, row(rows));
    assert_eq!(subject.keys(&p).len(), 2);
}

/// The engine's own moves use the reserve, so a back-off is recorded on a full store too.
pub fn the_reserve_is_for_batches_that_ask_for_it(make: Make<'_>) {
    let (subject, _) = full(make);
    let p = home();
    let mut moved = delete_timer(KIND, NOW_MS + 100).put("error-text", vec![b'x'; ROW_BYTES]);
    moved = moved.append(put_timer(KIND, NOW_MS + 50));
    assert_eq!(subject.refusal(&p, moved.clone()), StoreErrorKind::Full);
    moved.uses_reserve = true;
    subject.commit(&p, moved);
    assert_eq!(subject.lane_wakes(&p, KIND).first(), Some(&(NOW_MS + 50)));
}

/// A group stops at the batch that finds the store full: what is in front is written, and the
/// settles do not run.
pub fn a_group_stops_where_the_store_is_full(make: Make<'_>) {
    let (subject, rows) = full(make);
    let p = home();
    let group = Group {
        batches: vec![
            Batch::new()
                .delete(name(0))
                .append(delete_timer(KIND, NOW_MS + 100)),
            Batch::new()
                .put(name(rows), vec![7; ROW_BYTES])
                .put("more", vec![7; 6 * ROW_BYTES]),
            Batch::new().delete(name(1)),
        ],
        settles: vec![WakeSettle {
            kind: KIND,
            served_ms: vec![NOW_MS + 100],
        }],
    };
    let done = subject.group(&p, group);
    assert_eq!(done.outcomes, [BatchOutcome::Committed]);
    assert_eq!(
        done.stopped_by.map(|error| error.kind()),
        Some(StoreErrorKind::Full)
    );
    assert_eq!(done.next_wakes_ms, []);
    assert_eq!(subject.get(&p, name(0)), None);
    assert!(subject.get(&p, name(1)).is_some() && subject.get(&p, "more").is_none());
    assert_eq!(subject.lane_wakes(&p, KIND), [NOW_MS + 100]);
}

/// Lanes are settled on a full store too.
pub fn lanes_are_settled_on_a_full_store(make: Make<'_>) {
    let (subject, _) = full(make);
    let p = home();
    subject.clock().advance_ms(200);
    assert_eq!(
        subject.settle(&p, KIND, &[NOW_MS + 100]),
        Some(NOW_MS + 200)
    );
    assert_eq!(subject.lane_wakes(&p, KIND), [NOW_MS + 200]);
}
