//! Compares what one tick did on both sides. A difference passes under its name and its rule, or fails.

mod budgets;
mod report;
mod rules;
mod timers;

use std::collections::{BTreeMap, BTreeSet};

use crate::{Act, After, Difference, Fault, Id, KINDS, Row, Scenario, Script, Step};

/// One tick, seen from both sides.
#[derive(Clone, Copy, Debug)]
pub struct Both<'a> {
    /// The setting.
    pub scenario: &'a Scenario,
    /// What handlers do.
    pub script: &'a Script,
    /// What happened.
    pub step: &'a Step,
    /// The rows that both began with.
    pub before: &'a After,
    /// What Dueline left.
    pub ours: &'a After,
    /// What the reference left.
    pub theirs: &'a After,
}

/// The differences of a tick, and how often each was seen.
pub type Found = BTreeMap<Difference, u64>;

/// Why two ticks differ in a way that is not meant.
pub type Unlisted = String;

/// Compares a tick.
///
/// # Errors
/// What differs, if it is not one of [`Difference`].
pub fn judge(both: &Both<'_>) -> Result<Found, Unlisted> {
    let mut found = Found::new();
    if both.ours.dead != 0 {
        return Err(format!(
            "{} timers are dead under a policy for ever",
            both.ours.dead
        ));
    }
    both.timers(&mut found)?;
    both.budgets()?;
    both.malformed(&mut found)?;
    both.order(&mut found)?;
    both.counts(&mut found)?;
    both.wakes(&mut found)?;
    Ok(found)
}

fn note(found: &mut Found, difference: Difference) {
    *found.entry(difference).or_default() += 1;
}

/// What became of one timer on one side.
#[derive(Clone, Copy, Debug)]
struct Side<'a> {
    row: Option<&'a Row>,
    runs: usize,
    committed: bool,
    now_ms: u64,
}

impl<'a> Both<'a> {
    fn side(&self, after: &'a After, id: &Id) -> Side<'a> {
        Side {
            row: after.rows.get(id),
            runs: after.runs_of(id),
            committed: after.effects.contains(id),
            now_ms: after
                .first_run(id)
                .map_or(self.step.now_ms, |run| run.now_ms),
        }
    }

    fn act(&self, id: &Id) -> Act {
        self.script.act(self.step.tick, id)
    }

    fn is_due(&self, row: &Row) -> bool {
        row.due_ms <= self.step.now_ms
    }

    fn is_refused(&self) -> Option<&'a Id> {
        match &self.step.fault {
            Some(Fault::Refused(id)) => Some(id),
            _ => None,
        }
    }

    fn is_doubtful(&self, id: &Id) -> bool {
        matches!(&self.step.fault, Some(Fault::AnswerLost(of)) if of == id)
    }

    /// Most runs of a kind in the tick.
    fn cap(&self, kind: u8) -> u32 {
        let own = self.scenario.cap(kind).unwrap_or(u32::MAX);
        own.min(self.scenario.budget.per_kind)
    }

    /// The due timers of kinds with a handler.
    fn due(&self) -> impl Iterator<Item = (&'a Id, &'a Row)> {
        let both = *self;
        both.before
            .rows
            .iter()
            .filter(move |(id, row)| KINDS.contains(&id.kind) && both.is_due(row))
    }

    /// How many timers of a kind are due.
    fn due_of(&self, kind: u8) -> u32 {
        let due = self.due().filter(|(id, _)| id.kind == kind).count();
        u32::try_from(due).unwrap_or(u32::MAX)
    }

    /// Whether more of a kind are due than may run.
    fn is_capped(&self, kind: u8) -> bool {
        self.due_of(kind) > self.cap(kind)
    }

    /// Whether the timers of a kind use its cap up, so that a row behind them waits.
    fn is_cap_reached(&self, kind: u8) -> bool {
        self.due_of(kind) >= self.cap(kind)
    }

    fn ids(&self) -> BTreeSet<&'a Id> {
        [self.before, self.ours, self.theirs]
            .into_iter()
            .flat_map(|after| after.rows.keys())
            .collect()
    }
}

/// A row as the reference can hold it: its attempts stop at 8.
fn as_theirs(row: Option<&Row>) -> Option<Row> {
    row.map(|row| Row {
        attempt: row.attempt.min(8),
        ..row.clone()
    })
}
