//! A new scheduling before its generation is drawn, and the batch that writes it.

use bytes::Bytes;

use super::named::{NameEntry, corrupt};
use super::plan::{Plan, PlanGuards, SeenName};
use super::{ScheduleOutcome, Scheduled, TimerState};
use crate::mutants::{Mutant, planted};
use crate::rows::{Flags, Header, NameKey, NameRow, TimerKey, TimerRow};
use crate::store::{Batch, Value};
use crate::timers::{Timer, TimerError, TimerKind, Timers};

#[derive(Debug)]
pub(super) struct Draft {
    pub(super) kind: TimerKind,
    pub(super) reference: Bytes,
    /// The due of the key.
    pub(super) due_ms: u64,
    pub(super) row: TimerRow,
    pub(super) outcome: ScheduleOutcome,
}

impl Draft {
    /// The timer as it was asked for.
    pub(super) fn as_asked(timer: &Timer, seen: Option<&NameEntry>) -> Self {
        Self {
            kind: timer.kind,
            reference: timer.reference.clone(),
            due_ms: timer.due_at_ms,
            row: TimerRow {
                header: Header {
                    flags: Flags {
                        named: timer.named,
                        ..Flags::default()
                    },
                    attempt: 0,
                    original_due_ms: timer.due_at_ms,
                    failure: None,
                },
                payload: timer.payload.clone(),
            },
            outcome: outcome_over(seen),
        }
    }

    /// The timer as a kick leaves a pending or retrying one.
    pub(super) fn kicked(
        timer: &Timer,
        seen: &NameEntry,
        value: &Value,
    ) -> Result<Self, TimerError> {
        let old = TimerRow::decode(value).map_err(|error| corrupt("the timer's row", error))?;
        let mut draft = Self::as_asked(timer, Some(seen));
        if seen.state() == TimerState::Retrying {
            draft.due_ms = seen.row.due_ms;
            if planted(Mutant::KickShortensBackOff) {
                draft.due_ms = timer.due_at_ms.min(seen.row.due_ms);
            }
            draft.row.header = old.header;
        } else {
            // The key may lie away from the due as asked (floored by a tick, fired by hand), so
            // each keeps the earlier of its own.
            draft.due_ms = timer.due_at_ms.min(seen.row.due_ms);
            let header = &mut draft.row.header;
            header.original_due_ms = timer.due_at_ms.min(old.header.original_due_ms);
            header.flags.recurring = old.header.flags.recurring;
        }
        Ok(draft)
    }
}

/// What a new scheduling over this name is called.
pub(super) fn outcome_over(seen: Option<&NameEntry>) -> ScheduleOutcome {
    match seen.map(NameEntry::state) {
        None | Some(TimerState::Dead) => ScheduleOutcome::Created,
        Some(_) => ScheduleOutcome::Replaced,
    }
}

impl Timers {
    /// Draws a generation and writes the batch: the name's guard first, then the new key's.
    pub(super) fn place(&self, draft: Draft, seen: Option<&NameEntry>) -> Plan {
        let generation = self.draw_other_than(seen);
        let key = TimerKey {
            kind: draft.kind,
            due_ms: draft.due_ms,
            generation,
            reference: draft.reference.clone(),
        };
        // Written as whoever moves the timer will guard it.
        let name_row = NameRow::of(&key, &draft.row.header);
        let key = key.encode();
        let mut batch = Batch::new();
        if draft.row.header.flags.named {
            let name = NameKey {
                kind: draft.kind,
                reference: draft.reference,
            }
            .encode();
            if !planted(Mutant::KicksRace) {
                let value = seen.map(|entry| entry.value.clone());
                batch = batch.require_unchanged(name.clone(), value);
            }
            batch = batch.put(name, name_row.encode());
        }
        if let Some(entry) = seen.filter(|_| !planted(Mutant::ReplaceLeavesRow)) {
            batch = batch.delete(entry.target());
        }
        if !planted(Mutant::ScheduleWithoutAbsent) {
            batch = batch.require_absent(key.clone());
        }
        batch = batch.put(key, draft.row.encode());
        Plan {
            guards: PlanGuards {
                named: draft.row.header.flags.named,
                count: batch.preconditions.len(),
                seen: SeenName::of(seen),
            },
            batch,
            scheduled: Scheduled {
                generation,
                due_at_ms: draft.due_ms,
                state: name_row.state.into(),
                outcome: draft.outcome,
            },
        }
    }

    /// A generation other than the one it replaces, which another process may have drawn.
    fn draw_other_than(&self, seen: Option<&NameEntry>) -> u64 {
        let generation = self.runtime().draw_generation();
        if seen.is_some_and(|entry| entry.row.generation == generation) {
            return self.runtime().draw_generation();
        }
        generation
    }
}
