//! What may become of a timer that ran on both sides: the same, or what the rule of a difference says,
//! on each side exactly.

use bytes::Bytes;

use super::timers::expect;
use super::{Both, Found, Side, Unlisted, as_theirs, note};
use crate::{Act, BACK_OFF, Difference, Id, Row};

impl Both<'_> {
    pub(super) fn is_settled_alike(
        &self,
        id: &Id,
        before: &Row,
        ours: Side<'_>,
        theirs: Side<'_>,
        found: &mut Found,
    ) -> Result<(), Unlisted> {
        if self.is_refused() == Some(id) {
            note(found, Difference::UnavailableStoreHoldsTheLane);
            expect(ours, Some(before), false)?;
            return expect(theirs, Some(&self.backed_off(before, theirs.now_ms)), false);
        }
        let act = self.act(id);
        self.are_runs_meant(act, ours, theirs, found)?;
        if let Some(named) = self.meant(act) {
            note(found, named);
            return self.obeys(named, act, before, ours, theirs);
        }
        let alike =
            as_theirs(ours.row) == theirs.row.cloned() && ours.committed == theirs.committed;
        if alike {
            return Ok(());
        }
        if self.ours.ended_ms > self.step.now_ms && !ours.committed {
            note(found, Difference::TimeIsReadForEachFire);
            expect(ours, Some(&self.failed_here(before, ours)), false)?;
            return expect(theirs, Some(&self.backed_off(before, theirs.now_ms)), false);
        }
        Err("settled otherwise".to_owned())
    }

    /// The difference that an act shows whenever it runs on both sides.
    fn meant(&self, act: Act) -> Option<Difference> {
        match act {
            Act::LoseOnce | Act::LoseAlways | Act::Late => {
                Some(Difference::LostGuardsArePlannedAgain)
            }
            Act::Past(_) => Some(Difference::PastReschedulesAreFloored),
            Act::SameDue => Some(Difference::RescheduleToTheSameDue),
            Act::Operations(93..=98) => Some(Difference::HandlerOperationsLimit),
            Act::OwnRow => Some(Difference::OwnRowIsRefused),
            _ => None,
        }
    }

    fn obeys(
        &self,
        named: Difference,
        act: Act,
        before: &Row,
        ours: Side<'_>,
        theirs: Side<'_>,
    ) -> Result<(), Unlisted> {
        let ours_failed = self.failed_here(before, ours);
        let theirs_failed = self.backed_off(before, theirs.now_ms);
        let floored = self.again(self.step.now_ms.saturating_add(1));
        match (named, act) {
            (_, Act::LoseOnce) => {
                expect(ours, None, true)?;
                expect(theirs, Some(&theirs_failed), false)
            }
            (Difference::PastReschedulesAreFloored, Act::Past(ms)) => {
                let asked_ms = self.step.now_ms.saturating_sub(ms);
                expect(ours, Some(&floored), true)?;
                // To the due it was told it is refused there.
                if asked_ms == before.original_ms {
                    return expect(theirs, Some(&theirs_failed), false);
                }
                expect(theirs, Some(&self.again(asked_ms)), true)
            }
            (Difference::RescheduleToTheSameDue, _) => {
                expect(ours, Some(&floored), true)?;
                expect(theirs, Some(&theirs_failed), false)
            }
            (Difference::HandlerOperationsLimit | Difference::OwnRowIsRefused, _) => {
                expect(ours, Some(&ours_failed), false)?;
                expect(theirs, None, true)
            }
            _ => {
                expect(ours, Some(&ours_failed), false)?;
                expect(theirs, Some(&theirs_failed), false)
            }
        }
    }

    /// A handler runs once a tick, but for what is planned again here.
    fn are_runs_meant(
        &self,
        act: Act,
        ours: Side<'_>,
        theirs: Side<'_>,
        found: &mut Found,
    ) -> Result<(), Unlisted> {
        if theirs.runs != 1 {
            return Err("the reference ran it more than once".to_owned());
        }
        let wanted = match act {
            Act::LoseAlways | Act::Late => 4,
            Act::LoseOnce => 2,
            _ => 1,
        };
        if ours.runs == wanted {
            return Ok(());
        }
        if self.scenario.group_max > 1 && ours.runs > wanted && self.is_guard_lost() {
            note(found, Difference::GroupsRunAgain);
            return Ok(());
        }
        Err(format!("ran {} times here, not {wanted}", ours.runs))
    }

    /// Whether a timer ran here whose commit loses a guard, so that those behind it run again.
    fn is_guard_lost(&self) -> bool {
        self.ours.runs.iter().any(|run| {
            matches!(
                self.act(&run.id),
                Act::LoseAlways | Act::LoseOnce | Act::Late | Act::Vanish | Act::MoveAway(_)
            )
        })
    }

    /// The row after a failed run here. Its back-off counts from when the failure was noted: in the run, or
    /// after runs that were planned again and those of the group between them.
    fn failed_here(&self, before: &Row, side: Side<'_>) -> Row {
        let earliest = self.backed_off(before, side.now_ms);
        let latest = self.backed_off(before, self.ours.ended_ms);
        let found_ms = side.row.map_or(earliest.due_ms, |row| row.due_ms);
        Row {
            due_ms: found_ms.clamp(earliest.due_ms, latest.due_ms),
            ..earliest
        }
    }

    /// The row after a failed run.
    pub(super) fn backed_off(&self, before: &Row, now_ms: u64) -> Row {
        let attempt = before.attempt.saturating_add(1);
        Row {
            due_ms: now_ms.saturating_add(BACK_OFF.base_delay_ms(attempt)),
            attempt: attempt.min(8),
            ..before.clone()
        }
    }

    /// The row of a timer that scheduled itself again.
    fn again(&self, due_ms: u64) -> Row {
        Row {
            due_ms,
            original_ms: due_ms,
            attempt: 0,
            payload: Bytes::from_static(b"again"),
        }
    }
}
