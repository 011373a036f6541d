//! Timer by timer: did it run, what became of its row, did its effects commit.

use super::{Both, Found, Side, Unlisted, as_theirs, note};
use crate::{Difference, Id, KINDS, Row, UNKNOWN_KIND};

impl Both<'_> {
    pub(super) fn timers(&self, found: &mut Found) -> Result<(), Unlisted> {
        for id in self.ids() {
            let (ours, theirs) = (self.side(self.ours, id), self.side(self.theirs, id));
            let before = self.before.rows.get(id);
            let judged = match before {
                None => self.is_born_alike(id, ours, theirs),
                Some(row) if !self.is_due(row) => untouched(row, ours).and(untouched(row, theirs)),
                Some(row) if id.kind == UNKNOWN_KIND => self.is_unknown(row, ours, theirs, found),
                Some(row) => self.is_run_alike(id, row, ours, theirs, found),
            };
            judged.map_err(|why| {
                let act = self.act(id);
                format!("{id:?} ({act:?}): {why}\n  before {before:?}\n  ours   {ours:?}\n  theirs {theirs:?}")
            })?;
            let counted_on = ours.row.is_some_and(|row| row.attempt > 8) && ours.runs > 0;
            if counted_on {
                note(found, Difference::AttemptsAreCountedOn);
            }
        }
        Ok(())
    }

    /// A timer that a handler scheduled: there on both sides, or where its handler committed.
    fn is_born_alike(&self, id: &Id, ours: Side<'_>, theirs: Side<'_>) -> Result<(), Unlisted> {
        let same = as_theirs(ours.row) == theirs.row.cloned();
        let parent = id
            .reference
            .iter()
            .rposition(|byte| *byte == b'.')
            .map(|end| Id::new(id.kind, id.reference.slice(..end)));
        let Some(parent) = parent else {
            return Err("a timer that nobody scheduled".to_owned());
        };
        let (by_us, by_them) = (
            self.ours.effects.contains(&parent),
            self.theirs.effects.contains(&parent),
        );
        match (by_us, by_them) {
            (true, true) if same => Ok(()),
            (true, false) if theirs.row.is_none() => Ok(()),
            (false, true) if ours.row.is_none() => Ok(()),
            _ => Err("scheduled by a handler, and not alike".to_owned()),
        }
    }

    /// A kind without a handler: left alone here, moved by a back-off there.
    fn is_unknown(
        &self,
        before: &Row,
        ours: Side<'_>,
        theirs: Side<'_>,
        found: &mut Found,
    ) -> Result<(), Unlisted> {
        untouched(before, ours)?;
        if untouched(before, theirs).is_ok() {
            return if self.scenario.is_tight() {
                Ok(())
            } else {
                Err("an unknown kind was not moved by the reference".to_owned())
            };
        }
        note(found, Difference::UnknownKindsAreLeft);
        let moved = self.backed_off(before, self.step.now_ms);
        expect(theirs, Some(&moved), false)
    }

    fn is_run_alike(
        &self,
        id: &Id,
        before: &Row,
        ours: Side<'_>,
        theirs: Side<'_>,
        found: &mut Found,
    ) -> Result<(), Unlisted> {
        match (ours.runs, theirs.runs) {
            (0, 0) => {
                untouched(before, ours).and(untouched(before, theirs))?;
                let may_wait = self.is_capped(id.kind)
                    || self.ours.asleep.contains(&id.kind)
                    || self.scenario.is_tight()
                    || self.is_refused().is_some_and(|of| of.kind == id.kind);
                if may_wait {
                    Ok(())
                } else {
                    Err("due, and run by nobody".to_owned())
                }
            }
            (0, _) => {
                untouched(before, ours)?;
                self.is_run_by_one(id, before, true, found)
            }
            (_, 0) => {
                untouched(before, theirs)?;
                self.is_run_by_one(id, before, false, found)
            }
            _ => {
                self.is_told_alike(id)?;
                self.is_settled_alike(id, before, ours, theirs, found)
            }
        }
    }

    fn is_told_alike(&self, id: &Id) -> Result<(), Unlisted> {
        let told = |after: &crate::After| after.first_run(id).map(|run| run.told_ms);
        let now = |after: &crate::After| after.first_run(id).map(|run| run.now_ms);
        if told(self.ours) != told(self.theirs) {
            return Err("told different dues".to_owned());
        }
        if now(self.theirs) != Some(self.step.now_ms) {
            return Err("the reference ran at another time than the tick's".to_owned());
        }
        Ok(())
    }

    /// A timer that ran on one side alone.
    fn is_run_by_one(
        &self,
        id: &Id,
        before: &Row,
        by_them: bool,
        found: &mut Found,
    ) -> Result<(), Unlisted> {
        let refused = self.is_refused().is_some_and(|of| of.kind == id.kind);
        if refused && by_them && self.ours.counts.held > 0 {
            note(found, Difference::UnavailableStoreHoldsTheLane);
            return Ok(());
        }
        if by_them && self.ours.asleep.contains(&id.kind) {
            note(found, Difference::StoredWakesWaitForTheClock);
            return Ok(());
        }
        if self.scenario.is_tight() {
            note(found, Difference::BudgetsAreDealtToLanes);
            return Ok(());
        }
        // Under a cap each side runs as many of the kind, by due; only within one due may it be others.
        let (here, there) = if by_them {
            (self.ours, self.theirs)
        } else {
            (self.theirs, self.ours)
        };
        let exchanged = self.is_capped(id.kind)
            && self.due().any(|(other, row)| {
                other.kind == id.kind
                    && row.due_ms == before.due_ms
                    && here.runs_of(other) > 0
                    && there.runs_of(other) == 0
            });
        if exchanged {
            note(found, Difference::OrderWithinOneDue);
            return Ok(());
        }
        Err("run by one side alone".to_owned())
    }

    /// Kinds that have a handler and nothing that ends a tick early: what every rule starts from.
    pub(super) fn is_known(id: &Id) -> bool {
        KINDS.contains(&id.kind)
    }
}

pub(super) fn untouched(before: &Row, side: Side<'_>) -> Result<(), Unlisted> {
    if side.committed || as_theirs(side.row).as_ref() != Some(before) {
        return Err("touched, though it did not run".to_owned());
    }
    Ok(())
}

pub(super) fn expect(side: Side<'_>, row: Option<&Row>, committed: bool) -> Result<(), Unlisted> {
    if side.committed == committed && as_theirs(side.row).as_ref() == row {
        return Ok(());
    }
    Err(format!(
        "not as its rule says: row {row:?}, committed {committed}"
    ))
}
