//! I12, recurrence counts from the due as asked: a handler sees that due, whatever happened since, and
//! what it schedules next lies where it said, by the distance of its kind.

use super::{Checker, Findings, Invariant, Seen};
use crate::book::{Applied, Change};
use crate::{Commit, EffectMark, Recurring, Source};

#[derive(Debug, Default)]
pub(super) struct Recurrence;

impl Checker for Recurrence {
    fn take(&mut self, seen: &Seen<'_>, broken: &mut Findings) {
        let Some((commit, _)) = seen.commit() else {
            return;
        };
        let mut broke = |text: String| broken.add(Invariant::I12, seen.index, text);
        for change in &seen.applied.changes {
            if let Change::Moved { from, to } = change
                && commit.source == Source::Engine
                && from.header.is_some()
                && from.due_ms() != to.due_ms()
            {
                broke(format!(
                    "a move changed the due as asked: {from:?} became {to:?}"
                ));
            }
        }
        for mark in &commit.effects {
            if let Some(from) = seen.applied.before(&mark.occurrence)
                && from.due_ms() != mark.due_ms
            {
                broke(format!(
                    "its handler saw {} as its due: {from:?}",
                    mark.due_ms
                ));
            }
            let Some(next_due_ms) = mark.next_due_ms else {
                continue;
            };
            if let Some(text) = wrong_next(seen.applied, mark, next_due_ms) {
                broke(text);
            }
            let rules = &seen.book.rules.recurring;
            let rule = rules.iter().find(|it| it.kind == mark.occurrence.kind);
            if let Some(rule) = rule
                && !is_right_distance(*rule, commit, mark.due_ms, next_due_ms)
            {
                broke(format!(
                    "goes on at {next_due_ms}, which is not {rule:?}: {mark:?}"
                ));
            }
        }
    }
}

/// What is wrong with the row that the timer goes on as.
fn wrong_next(applied: &Applied, mark: &EffectMark, next_due_ms: u64) -> Option<String> {
    let Some(next) = applied.next_of(&mark.occurrence) else {
        return Some(format!(
            "was to go on at {next_due_ms} and does not: {mark:?}"
        ));
    };
    let is_right = next.due_ms() == next_due_ms && next.at_ms >= next_due_ms && next.attempt() == 0;
    (!is_right).then(|| format!("was to go on at {next_due_ms} and became {next:?}"))
}

fn is_right_distance(rule: Recurring, commit: &Commit, due_ms: u64, next_due_ms: u64) -> bool {
    let Some(distance_ms) = next_due_ms.checked_sub(due_ms) else {
        return false;
    };
    if distance_ms == rule.every_ms {
        return true;
    }
    let is_multiple = distance_ms > 0 && distance_ms.checked_rem(rule.every_ms) == Some(0);
    // Only what is over already may be left out.
    let last_left_out_ms = next_due_ms.saturating_sub(rule.every_ms);
    rule.may_skip && is_multiple && last_left_out_ms <= commit.store_ms
}
