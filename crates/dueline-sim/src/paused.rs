//! A pause holds: for scripted kinds and built-in ones alike.

use std::collections::BTreeMap;

use dueline::rows::PauseKey;
use dueline_history::book::Change;
use dueline_history::{Checker, Commit, Findings, Invariant, Octets, Seen, What};

/// A tick that began behind a pause fires and claims nothing of its kind.
#[derive(Debug)]
pub(crate) struct Paused {
    /// How many events there were when each turn began, the first turn first.
    turns: Vec<usize>,
    /// The pauses that stand, and the event that set each.
    lanes: BTreeMap<(Octets, u8), usize>,
}

impl Paused {
    pub(crate) fn new(turns: Vec<usize>) -> Self {
        Self {
            turns,
            lanes: BTreeMap::new(),
        }
    }

    fn note(&mut self, index: usize, commit: &Commit) {
        for (key, value) in &commit.rows {
            let Ok(pause) = PauseKey::decode(key) else {
                continue;
            };
            let lane = (commit.partition.clone(), pause.kind.0);
            match value {
                Some(_) => {
                    self.lanes.entry(lane).or_insert(index);
                }
                None => {
                    self.lanes.remove(&lane);
                }
            }
        }
    }
}

impl Checker for Paused {
    fn take(&mut self, seen: &Seen<'_>, broken: &mut Findings) {
        let What::Commit(commit) = &seen.event.what else {
            return;
        };
        self.note(seen.index, commit);
        let turn = usize::try_from(commit.turn).unwrap_or(0);
        let began = turn.checked_sub(1).and_then(|turn| self.turns.get(turn));
        let Some(began) = began else { return };
        for from in seen.applied.changes.iter().filter_map(Change::from) {
            let lane = (commit.partition.clone(), from.occurrence.kind);
            let is_own = !commit.cuts.contains(&from.occurrence) && !from.is_claimed();
            if is_own && self.lanes.get(&lane).is_some_and(|paused| paused < began) {
                let text = format!("a tick behind the pause of its kind ran {from:?}");
                broken.add(Invariant::I10, seen.index, text);
            }
        }
    }
}
