//! The reports and the order of effects.

use super::{Both, Found, Unlisted, note};
use crate::{Act, After, Difference, Id, KINDS, UNKNOWN_KIND};

/// What the rows say a report must count.
#[derive(Debug, Default, PartialEq, Eq)]
struct Expected {
    fired: u64,
    failed: u64,
    raced: u64,
    held: u64,
    doubtful: u64,
}

impl Both<'_> {
    /// A malformed row stays there, and is set aside here as soon as it is due, or sooner.
    pub(super) fn malformed(&self, found: &mut Found) -> Result<(), Unlisted> {
        for (tag, due_ms) in &self.before.malformed {
            if self.theirs.malformed.get(tag) != Some(due_ms) {
                return Err(format!("the reference touched the malformed row {tag:?}"));
            }
            let stays = self.ours.malformed.get(tag) == Some(due_ms);
            let may_wait = *due_ms > self.step.now_ms
                || self.scenario.is_tight()
                || self.is_cap_reached(crate::MALFORMED_KIND)
                || self.ours.asleep.contains(&crate::MALFORMED_KIND)
                || self.is_refused().is_some();
            match (stays, self.ours.set_aside.contains(tag)) {
                (true, false) if may_wait => {}
                (false, true) => note(found, Difference::MalformedRowsAreSetAside),
                (stays, aside) => {
                    return Err(format!(
                        "malformed {tag:?}: stays {stays}, set aside {aside}"
                    ));
                }
            }
        }
        Ok(())
    }

    /// Effects commit by due and kind on both sides, under a budget here by due within each kind; within one
    /// due and kind each has its own order.
    pub(super) fn order(&self, found: &mut Found) -> Result<(), Unlisted> {
        for (name, after) in [("ours", self.ours), ("theirs", self.theirs)] {
            let place = |id: &Id| self.before.rows.get(id).map(|row| (row.due_ms, id.kind));
            let of_kind = |kind| {
                after
                    .log
                    .iter()
                    .filter(move |id| id.kind == kind)
                    .map(place)
            };
            let in_order = after.log.iter().map(place).is_sorted();
            // A lane that has used its share may open again for fires that the others leave.
            let is_reopened = name == "ours"
                && self.scenario.is_tight()
                && KINDS.iter().all(|kind| of_kind(*kind).is_sorted());
            if !in_order && !is_reopened {
                let log = &after.log;
                return Err(format!("{name} committed out of order: {log:?}"));
            }
            if !in_order {
                note(found, Difference::BudgetsAreDealtToLanes);
            }
            if after.log.len() != after.effects.len() {
                return Err(format!("{name} logged other effects than it wrote"));
            }
        }
        let common = |one: &After, other: &After| -> Vec<Id> {
            let ids = one.log.iter().filter(|id| other.effects.contains(id));
            ids.cloned().collect()
        };
        let (ours, theirs) = (
            common(self.ours, self.theirs),
            common(self.theirs, self.ours),
        );
        if ours != theirs {
            note(found, Difference::OrderWithinOneDue);
        }
        Ok(())
    }

    pub(super) fn counts(&self, found: &mut Found) -> Result<(), Unlisted> {
        let ours = Expected {
            fired: self.ours.counts.fired,
            failed: self.ours.counts.failed,
            raced: self.ours.counts.raced,
            held: self.ours.counts.held,
            doubtful: self.ours.counts.doubtful,
        };
        let theirs = Expected {
            fired: self.theirs.counts.fired,
            failed: self.theirs.counts.failed,
            raced: self.theirs.counts.raced,
            ..Expected::default()
        };
        for (name, report, rows) in [
            ("ours", ours, self.expected(self.ours, true)),
            ("theirs", theirs, self.expected(self.theirs, false)),
        ] {
            if report != rows {
                return Err(format!("{name} reports {report:?}, its rows say {rows:?}"));
            }
        }
        if self.ours.counts.set_aside != self.ours.set_aside.len() as u64 {
            return Err("quarantined is not what was set aside".to_owned());
        }
        for (name, after) in [("ours", self.ours), ("theirs", self.theirs)] {
            self.is_counter_right(name, after)?;
        }
        if self
            .step
            .fault
            .as_ref()
            .is_some_and(|fault| self.is_doubtful(fault.id()))
        {
            note(found, Difference::DoubtfulCommitsAreReadAgain);
        }
        if self.ours.counts.deferred != self.theirs.counts.deferred {
            let capped = KINDS.iter().any(|kind| self.is_capped(*kind));
            if !capped
                && !self.scenario.is_tight()
                && self.is_refused().is_none()
                && self.ours.asleep.is_empty()
            {
                return Err("deferred differs without a cap".to_owned());
            }
            note(found, Difference::DeferredCountsWhatWasRead);
        }
        if self.ours.counts.stopped != self.theirs.counts.stopped {
            if !self.scenario.is_tight() {
                return Err("stopped on a budget that is ample".to_owned());
            }
            note(found, Difference::BudgetsAreDealtToLanes);
        }
        Ok(())
    }

    /// What the timers of one side say its report must count.
    fn expected(&self, after: &After, is_ours: bool) -> Expected {
        let mut expected = Expected::default();
        for (id, _) in self.before.rows.iter().filter(|(id, _)| Self::is_known(id)) {
            if after.runs_of(id) == 0 {
                continue;
            }
            if self.is_refused() == Some(id) {
                if is_ours {
                    expected.held += 1;
                } else {
                    expected.failed += 1;
                }
            } else if self.is_doubtful(id) {
                if is_ours {
                    expected.doubtful += 1;
                } else {
                    expected.failed += 1;
                    expected.raced += 1;
                }
            } else if after.effects.contains(id) {
                expected.fired += 1;
            } else {
                match self.act(id) {
                    Act::Vanish | Act::MoveAway(_) => expected.raced += 1,
                    Act::LoseAlways | Act::LoseOnce if !is_ours => expected.raced += 1,
                    _ => expected.failed += 1,
                }
            }
        }
        expected
    }

    /// The shared counter shows one for every timer that counted and committed: no update was lost.
    fn is_counter_right(&self, name: &str, after: &After) -> Result<(), Unlisted> {
        let counted = after.effects.iter().filter(|id| self.act(id) == Act::Count);
        let counted = counted.count() as u64;
        if after.counter != counted {
            let shown = after.counter;
            return Err(format!(
                "{name}: {counted} timers counted, the counter shows {shown}"
            ));
        }
        Ok(())
    }

    pub(super) fn wakes(&self, found: &mut Found) -> Result<(), Unlisted> {
        let now_ms = self.step.now_ms;
        let rows = self.ours.rows.iter();
        let timers = rows
            .filter(|(id, _)| Self::is_known(id))
            .map(|(_, row)| row.due_ms);
        let first = timers.chain(self.ours.malformed.values().copied()).min();
        let first_ms = first.map(|due_ms| due_ms.max(now_ms));
        let wake_ms = self.ours.wake_ms;
        // A stored wake may be early, and one in the past is set at the time of some commit; the wake of a
        // tick that the store has failed may be early too.
        let latest_ms = match first_ms {
            Some(first_ms) if self.scenario.woken => Some(first_ms.max(self.ours.latest_ms)),
            _ => first_ms,
        };
        let may_be_early = self.scenario.woken || self.is_refused().is_some();
        let is_early =
            wake_ms.is_some() && first_ms.is_none_or(|first_ms| wake_ms < Some(first_ms));
        let is_late = first_ms.is_some() && (wake_ms.is_none() || wake_ms > latest_ms);
        if is_late || (is_early && !may_be_early) {
            return Err(format!(
                "our wake is {wake_ms:?}, the first row is due at {first_ms:?}"
            ));
        }
        if wake_ms != self.theirs.wake_ms {
            if !self.is_their_wake_odd() && wake_ms == first_ms && found.is_empty() {
                let theirs = self.theirs.wake_ms;
                return Err(format!("wakes differ: ours {wake_ms:?}, theirs {theirs:?}"));
            }
            note(found, Difference::WakesAreTheFirstRow);
        }
        Ok(())
    }

    /// Whether something is there for which the reference wakes by another rule than its first row.
    fn is_their_wake_odd(&self) -> bool {
        let theirs = self.theirs;
        let left_due = |(id, row): (&Id, &crate::Row)| Self::is_known(id) && self.is_due(row);
        theirs.counts.raced > 0
            || theirs.counts.stopped
            || !theirs.malformed.is_empty()
            || theirs.rows.keys().any(|id| id.kind == UNKNOWN_KIND)
            || theirs.rows.iter().any(left_due)
    }
}
