//! I14, what cannot be run or read is not consumed: a node does not touch timers of kinds that it does
//! not run; what its handler cannot read goes to the dead, and a row without a readable key to quarantine,
//! byte for byte.

use std::collections::BTreeMap;

use bytes::Bytes;
use dueline::limits::KEY_BYTES_MAX;
use dueline::rows::{DeadReason, class};

use super::{Checker, Findings, Invariant, Seen};
use crate::book::{Change, Place};
use crate::{Commit, Ended, Occurrence, Octets, Source, What};

#[derive(Debug, Default)]
pub(super) struct Undecodable {
    /// Timers whose last run could not read them, and its turn.
    unread: BTreeMap<(Octets, Occurrence), u64>,
}

impl Checker for Undecodable {
    fn take(&mut self, seen: &Seen<'_>, broken: &mut Findings) {
        if let What::Fire(run) | What::Called(run) = &seen.event.what {
            let of = Occurrence {
                kind: run.kind,
                reference: run.reference.clone(),
                generation: run.generation,
            };
            let of = (run.partition.clone(), of);
            if run.ended == Ended::Undecodable {
                self.unread.insert(of, run.turn);
            } else if !self.unread.is_empty() {
                self.unread.remove(&of);
            }
        }
        let Some((commit, _)) = seen.commit() else {
            return;
        };
        if commit.source != Source::Engine {
            return;
        }
        let mut broke = |text: String| broken.add(Invariant::I14, seen.index, text);
        for (key, value) in &seen.applied.malformed {
            if !is_set_aside(commit, key, value) {
                broke(format!(
                    "a malformed row vanished: {:?}",
                    Octets(key.clone())
                ));
            }
        }
        let kinds = commit.node.and_then(|node| seen.book.registries.get(&node));
        for change in &seen.applied.changes {
            let Some(from) = change.from() else { continue };
            let is_cut = commit.cuts.contains(&from.occurrence);
            if kinds.is_some_and(|kinds| !kinds.contains(&from.occurrence.kind)) && !is_cut {
                broke(format!("a node that does not run it changed {from:?}"));
            }
            let of = (commit.partition.clone(), from.occurrence.clone());
            let was_unread = !self.unread.is_empty() && self.unread.remove(&of).is_some();
            let is_kept = from.header.is_none() && is_set_aside(commit, &from.key, &from.payload);
            if !is_cut
                && !is_kept
                && let Some(text) = consumed(change, from, was_unread)
            {
                broke(format!("{text}: {from:?}"));
            }
        }
    }
}

/// Whether the commit puts these bytes to quarantine: under those of their key, with a number behind
/// them if a row of the same key lies there already.
pub(super) fn is_set_aside(commit: &Commit, key: &[u8], value: &Bytes) -> bool {
    let named = key.get(2..).unwrap_or_default();
    let named = named.get(..KEY_BYTES_MAX - 3).unwrap_or(named);
    commit.rows.iter().any(|(to, kept)| {
        let place = to.strip_prefix(&[class::QUARANTINE, 0]);
        let is_its = place.is_some_and(|place| {
            let number = place.strip_prefix(named);
            number.is_some_and(|number| number.len() <= 3)
        });
        is_its && kept.as_ref().is_some_and(|kept| kept.0 == *value)
    })
}

/// What is wrong with what became of a timer that could not be read.
fn consumed(change: &Change, from: &Place, was_unread: bool) -> Option<String> {
    match change {
        Change::Gone { .. } if from.header.is_none() => {
            Some("a row without a readable header vanished".to_owned())
        }
        Change::Gone { .. } if was_unread => Some("a timer that was not read vanished".to_owned()),
        Change::Moved { to, .. } => {
            if to.payload != from.payload {
                return Some("a move changed the bytes of a timer".to_owned());
            }
            if from.header.is_none() && to.dead != Some(DeadReason::UndecodableHeader) {
                return Some("a row without a readable header was changed".to_owned());
            }
            // Set back by a fault of the store it is read again later; else it is among the dead.
            let wrong = to
                .dead
                .is_some_and(|why| why != DeadReason::UndecodablePayload);
            // What its run said was never committed, and the process died: its attempts are used up.
            let failure = to.header.as_ref().and_then(|it| it.failure.as_ref());
            let is_cut = failure.is_some_and(|it| it.error.contains(" was cut:"));
            let is_cut = is_cut && to.dead == Some(DeadReason::Exhausted);
            let wrong = wrong && !(from.is_claimed() && is_cut);
            (was_unread && wrong).then(|| "a timer that was not read died of it".to_owned())
        }
        _ => None,
    }
}
