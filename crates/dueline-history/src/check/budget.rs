//! I9, a budget is kept: the ticks of one turn together do no more than its budget allows, and none
//! takes longer than it may.

use std::collections::{BTreeMap, BTreeSet};

use dueline::rows::lane_head;

use super::{Checker, Findings, Invariant, Seen};
use crate::{Octets, Tick, What};

#[derive(Debug, Default)]
pub(super) struct Budgets {
    /// What each turn has done so far.
    turns: BTreeMap<u64, Done>,
    /// The lanes that a partition has ever had: finding them may be read beyond the budget.
    lanes: BTreeMap<Octets, BTreeSet<u8>>,
}

#[derive(Debug, Default)]
struct Done {
    runs: u64,
    per_kind: BTreeMap<u8, u64>,
    scanned: u64,
    finding: u64,
}

/// How many rows may be read to find a lane and its first row: its pause, a seek, its place in the first
/// page, and its own page.
const ROWS_TO_FIND_A_LANE: u64 = 4;

impl Checker for Budgets {
    fn take(&mut self, seen: &Seen<'_>, broken: &mut Findings) {
        match &seen.event.what {
            What::Commit(commit) => {
                for (key, _) in &commit.rows {
                    let Some(head) = lane_head(key) else { continue };
                    if let Some(lanes) = self.lanes.get_mut(&commit.partition) {
                        lanes.insert(head.kind.0);
                    } else {
                        let lanes = BTreeSet::from([head.kind.0]);
                        self.lanes.insert(commit.partition.clone(), lanes);
                    }
                }
            }
            What::Tick(tick) => {
                let mut broke = |text: String| {
                    broken.add(Invariant::I9, seen.index, format!("{text}: {tick:?}"));
                };
                if let Some(most) = seen.book.rules.budget {
                    let given = tick.budget;
                    if given.fired > most.fired
                        || given.per_kind > most.per_kind
                        || given.scanned > most.scanned
                        || given.elapsed_ms > most.elapsed_ms
                    {
                        broke(format!("a budget over {most:?}"));
                    }
                    let until_ms = tick
                        .budget
                        .elapsed_ms
                        .saturating_add(seen.book.rules.overrun_ms);
                    if tick.elapsed_ms > until_ms {
                        broke(format!("took longer than {until_ms} ms"));
                    }
                }
                self.add(tick, broke);
            }
            _ => {}
        }
    }
}

impl Budgets {
    fn add(&mut self, tick: &Tick, mut broke: impl FnMut(String)) {
        let lanes = self.lanes.get(&tick.partition).map_or(0, BTreeSet::len) as u64;
        let done = self.turns.entry(tick.turn).or_default();
        done.scanned += tick.scanned;
        done.finding += ROWS_TO_FIND_A_LANE * (lanes + 1);
        for counts in &tick.kinds {
            let runs = counts.progressed();
            done.runs += runs;
            let of_kind = done.per_kind.entry(counts.kind).or_default();
            *of_kind += runs;
            if *of_kind > tick.budget.per_kind {
                broke(format!(
                    "{of_kind} runs of kind {} in one turn",
                    counts.kind
                ));
            }
        }
        if done.runs > tick.budget.fired {
            broke(format!("{} runs in one turn", done.runs));
        }
        if done.scanned > tick.budget.scanned.saturating_add(done.finding) {
            broke(format!("{} rows read in one turn", done.scanned));
        }
    }
}
