//! I15, the rows of a store are those of what is alive: after every commit a name points at its timer and
//! a timer has its name; a store that is read holds what its commits wrote, byte for byte, and no wake
//! without a lane once all is at rest.

use dueline::rows::{NameKey, NameRow, class, is_of_class, lane_head};
use dueline::timers::TimerKind;

use super::{Checker, Findings, Invariant, Seen};
use crate::book::PartitionBook;
use crate::{Octets, Scan, Source, What};

#[derive(Debug, Default)]
pub(super) struct Hygiene;

impl Checker for Hygiene {
    fn take(&mut self, seen: &Seen<'_>, broken: &mut Findings) {
        let mut broke = |text: String| broken.add(Invariant::I15, seen.index, text);
        if let Some((commit, partition)) = seen.commit() {
            for (kind, reference) in &seen.applied.names {
                if let Some(text) = disagreement(partition, *kind, reference) {
                    broke(text);
                }
            }
            for change in &seen.applied.changes {
                if let crate::book::Change::Moved { from, to } = change
                    && commit.source == Source::Engine
                    && from.header.is_some()
                    && from.is_named() != to.is_named()
                {
                    broke(format!("a move changed whether it is named: {from:?}"));
                }
            }
        }
        if let What::Scan(scan) = &seen.event.what {
            let empty = PartitionBook::default();
            let known = seen.book.partitions.get(&scan.partition);
            compare(known.unwrap_or(&empty), scan, &mut broke);
        }
    }
}

/// How a name and the timers of that name disagree.
fn disagreement(partition: &PartitionBook, kind: u8, reference: &Octets) -> Option<String> {
    let name = NameKey {
        kind: TimerKind(kind),
        reference: reference.0.clone(),
    };
    let found = partition.rows.get(&name.encode());
    let found = found.map(|row| NameRow::decode(&row.value));
    let mut rows = partition.named(kind, reference);
    let (first, second) = (rows.next(), rows.next());
    let agree = match (first, second, &found) {
        (None, None, None) => true,
        (Some(row), None, Some(Ok(found))) => row.name_row() == Some(*found),
        _ => false,
    };
    (!agree).then(|| {
        format!(
            "a name and its timer disagree: {name:?} is {found:?}, the timer {first:?} {second:?}"
        )
    })
}

/// The store holds what its commits wrote. A timer that is missing is lost, which is another rule.
fn compare(partition: &PartitionBook, scan: &Scan, broke: &mut impl FnMut(String)) {
    for (key, value) in &scan.rows {
        match partition.rows.get(&key.0) {
            None => broke(format!("a row that nobody wrote: {key:?}")),
            Some(known) if known.value != value.0 => {
                broke(format!("a row with other bytes than were written: {key:?}"));
            }
            Some(_) => {}
        }
    }
    let is_timer = |key: &[u8]| is_of_class(key, class::TIMER) || is_of_class(key, class::DEAD);
    for key in partition.rows.keys().filter(|key| !is_timer(key)) {
        if scan
            .rows
            .binary_search_by(|(found, _)| found.0.cmp(key))
            .is_err()
        {
            broke(format!(
                "a row is not in the store: {:?}",
                Octets(key.clone())
            ));
        }
    }
    if scan
        .rows
        .windows(2)
        .any(|pair| matches!(pair, [a, b] if a.0 >= b.0))
    {
        broke("the rows of a scan are not in the order of their keys".to_owned());
    }
    if !scan.at_rest {
        return;
    }
    for wake in &scan.wakes {
        let is_its = |(key, _): &(Octets, Octets)| {
            lane_head(key).is_some_and(|head| head.kind.0 == wake.kind)
        };
        if !scan.rows.iter().any(is_its) {
            broke(format!("a wake of a lane that is empty: {wake:?}"));
        }
    }
}
