//! I8, lateness is bounded: while nothing goes wrong, a timer that can run is served within the bound of
//! its due, or of the moment from which it could run.

use std::collections::BTreeMap;

use dueline::rows::PauseKey;
use dueline::timers::TimerKind;

use super::{Checker, Findings, Invariant, Seen};
use crate::book::{Book, Place};
use crate::{Octets, Source, What};

#[derive(Debug, Default)]
pub(super) struct Lateness {
    /// When a kind was resumed in a partition.
    resumed_ms: BTreeMap<(Octets, u8), u64>,
    /// Since when some node runs a kind.
    runs_since_ms: BTreeMap<u8, u64>,
}

impl Checker for Lateness {
    fn take(&mut self, seen: &Seen<'_>, broken: &mut Findings) {
        let at_ms = seen.event.at_ms;
        if let What::Registry { .. } | What::Stopped { .. } = &seen.event.what {
            self.runs_since_ms.retain(|kind, _| seen.book.runs(*kind));
            for kind in seen.book.registries.values().flatten() {
                self.runs_since_ms.entry(*kind).or_insert(at_ms);
            }
        }
        let Some((commit, _)) = seen.commit() else {
            return;
        };
        for (key, value) in &commit.rows {
            if value.is_none()
                && let Ok(pause) = PauseKey::decode(key)
            {
                let lane = (commit.partition.clone(), pause.kind.0);
                self.resumed_ms.insert(lane, at_ms);
            }
        }
        if commit.source != Source::Engine {
            return;
        }
        for from in seen.applied.changes.iter().filter_map(|it| it.from()) {
            let due = self.served_by_ms(seen.book, &commit.partition, from);
            if let Some(until_ms) = due.filter(|until_ms| at_ms > *until_ms) {
                let late_ms = at_ms - until_ms;
                let text = format!("was served {late_ms} ms later than the bound: {from:?}");
                broken.add(Invariant::I8, seen.index, text);
            }
        }
    }

    fn end(&mut self, book: &Book, length: usize, broken: &mut Findings) {
        for (name, partition) in &book.partitions {
            for place in partition.alive() {
                let kind = place.occurrence.kind;
                if !book.runs(kind) || partition.is_paused(TimerKind(kind)) {
                    continue;
                }
                let due = self.served_by_ms(book, name, place);
                if due.is_some_and(|until_ms| book.latest_ms > until_ms) {
                    let text = format!("was not served within the bound: {place:?}");
                    broken.add(Invariant::I8, length, text);
                }
            }
        }
    }
}

impl Lateness {
    /// By when this row must be served; `None` if there is no bound now.
    fn served_by_ms(&self, book: &Book, partition: &Octets, place: &Place) -> Option<u64> {
        let bound_ms = book.rules.lateness_ms?;
        let since_ms = book.liveness_since_ms?;
        if place.dead.is_some() {
            return None;
        }
        let kind = place.occurrence.kind;
        let lane = (partition.clone(), kind);
        let from_ms = place
            .at_ms
            .max(place.put.at_ms)
            .max(since_ms)
            .max(self.resumed_ms.get(&lane).copied().unwrap_or(0))
            .max(self.runs_since_ms.get(&kind).copied().unwrap_or(0));
        let skew_ms = book.rules.skew_ms.unwrap_or(0);
        Some(from_ms.saturating_add(bound_ms).saturating_add(skew_ms))
    }
}
