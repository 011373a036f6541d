//! What a tick's limits must give, whoever of the due timers they let run.

use std::collections::BTreeSet;

use super::{Both, Unlisted};
use crate::{After, Id, KINDS, MALFORMED_KIND};

impl<'a> Both<'a> {
    pub(super) fn budgets(&self) -> Result<(), Unlisted> {
        for (name, after) in [("ours", self.ours), ("theirs", self.theirs)] {
            for kind in KINDS {
                self.is_within_cap(name, after, kind)?;
                self.is_prefix(name, after, kind)?;
            }
        }
        let ran = self.ran(self.ours).count();
        if u32::try_from(ran).unwrap_or(u32::MAX) > self.scenario.budget.fired {
            return Err(format!("{ran} timers ran here, over the budget"));
        }
        self.is_no_lane_starved()
    }

    fn ran(&self, after: &'a After) -> impl Iterator<Item = &'a Id> {
        let ids: BTreeSet<&Id> = after.runs.iter().map(|run| &run.id).collect();
        ids.into_iter()
    }

    /// As many of a kind run as its cap allows; under ample budgets no fewer.
    fn is_within_cap(&self, name: &str, after: &'a After, kind: u8) -> Result<(), Unlisted> {
        let ran = self.ran(after).filter(|id| id.kind == kind).count();
        let due = self.due().filter(|(id, _)| id.kind == kind).count();
        let most = usize::try_from(self.cap(kind))
            .unwrap_or(usize::MAX)
            .min(due);
        let is_cut = self.scenario.is_tight()
            || self.is_refused().is_some()
            || self.ours.asleep.contains(&kind);
        if ran > most || (ran < most && !is_cut) {
            return Err(format!(
                "{name}: {ran} of kind {kind} ran, {due} were due, at most {most}"
            ));
        }
        Ok(())
    }

    /// Within a kind nothing runs while something due before it waits.
    fn is_prefix(&self, name: &str, after: &'a After, kind: u8) -> Result<(), Unlisted> {
        let of_kind = || self.due().filter(move |(id, _)| id.kind == kind);
        let ran = of_kind().filter(|(id, _)| after.runs_of(id) > 0);
        let waits = of_kind().filter(|(id, _)| after.runs_of(id) == 0);
        let last_ran_ms = ran.map(|(_, row)| row.due_ms).max();
        let first_waits_ms = waits.map(|(_, row)| row.due_ms).min();
        match (last_ran_ms, first_waits_ms) {
            (Some(ran_ms), Some(waits_ms)) if ran_ms > waits_ms => Err(format!(
                "{name}: kind {kind} ran what was due at {ran_ms} before what was due at {waits_ms}"
            )),
            _ => Ok(()),
        }
    }

    /// Every kind that has something due runs at least one timer here, if the budget has one for each.
    fn is_no_lane_starved(&self) -> Result<(), Unlisted> {
        let kinds: BTreeSet<u8> = self.due().map(|(id, _)| id.kind).collect();
        let enough =
            u32::try_from(kinds.len() + 1).unwrap_or(u32::MAX) <= self.scenario.budget.fired;
        for kind in kinds {
            let ran = self.ran(self.ours).any(|id| id.kind == kind);
            let excused = self.ours.asleep.contains(&kind)
                || self.is_refused().is_some()
                || (kind == MALFORMED_KIND && !self.before.malformed.is_empty());
            if enough && !ran && !excused {
                return Err(format!("kind {kind} had timers due and ran none here"));
            }
        }
        Ok(())
    }
}
