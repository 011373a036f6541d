//! I3, no early fire: an effect has its due behind it by the store's clock, and by the true time but for
//! the skew that is declared; a call goes out no earlier.

use super::{Checker, Findings, Invariant, Seen};
use crate::book::{Change, Place};
use crate::{Occurrence, What};

#[derive(Debug, Default)]
pub(super) struct Early;

impl Checker for Early {
    fn take(&mut self, seen: &Seen<'_>, broken: &mut Findings) {
        let mut broke = |text: String| broken.add(Invariant::I3, seen.index, text);
        let skew_ms = seen.book.rules.skew_ms;
        let is_truly_early = |due_ms: u64| {
            skew_ms.is_some_and(|skew_ms| seen.event.at_ms.saturating_add(skew_ms) < due_ms)
        };
        if let What::Called(run) = &seen.event.what {
            let occurrence = Occurrence {
                kind: run.kind,
                reference: run.reference.clone(),
                generation: run.generation,
            };
            let partition = seen.book.partitions.get(&run.partition);
            let place = partition.and_then(|it| it.places.get(&occurrence));
            // A timer that is gone was called in time or not at all: it went by a commit.
            let may_fire_at_ms = place.map_or(run.due_ms, |place| place.may_fire_at_ms());
            let is_gone = partition.is_some_and(|it| it.gone.contains_key(&occurrence));
            let is_early = seen.book.latest_store_ms < may_fire_at_ms;
            if !is_gone && (is_early || is_truly_early(may_fire_at_ms)) {
                broke(format!("was called early: {run:?}"));
            }
        }
        let Some((commit, _)) = seen.commit() else {
            return;
        };
        for change in &seen.applied.changes {
            let Change::Gone { from } = change else {
                continue;
            };
            let is_effect = commit
                .effects
                .iter()
                .any(|mark| mark.occurrence == from.occurrence);
            if is_effect
                && (is_early(from, commit.store_ms, seen.book.latest_store_ms)
                    || is_truly_early(from.may_fire_at_ms()))
            {
                broke(format!(
                    "took effect early, at {}: {from:?}",
                    commit.store_ms
                ));
            }
        }
    }
}

/// A claimed timer was found due when it was claimed, so for it the latest time seen counts: a clock may
/// step back while a call runs.
fn is_early(from: &Place, store_ms: u64, latest_ms: u64) -> bool {
    if from.is_claimed() {
        latest_ms < from.may_fire_at_ms()
    } else {
        store_ms < from.may_fire_at_ms() || store_ms < from.at_ms
    }
}
