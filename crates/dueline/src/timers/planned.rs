//! From what a handler said to the batch that makes it so.

use std::time::Duration;

use super::moves::{Move, NameGuard, guard_count, guards, move_batch, name_key};
use super::slots::Slot;
use super::timer::validate_due;
use super::{DueTimer, Fired, HandlerError, RetryPolicy};
use crate::limits::{
    BATCH_BYTES_MAX, BATCH_BYTES_RESERVED, DUE_MS_MAX, HANDLER_OPS_MAX, PAYLOAD_BYTES_MAX,
};
use crate::mutants::{Mutant, planted};
use crate::rows::{
    DeadReason, Failure, Flags, Header, NameRow, TimerKey, TimerRow, class, is_of_class,
};
use crate::runtime::Runtime;
use crate::store::{Batch, Key, Partition, Precondition, validate_batch};

/// What a batch does to its timer once it commits.
#[derive(Debug)]
pub(crate) enum Effect {
    Fired,
    Rescheduled,
    Failed,
    Dead,
    /// The run begins to count at this moment of the monotonic clock.
    Claimed {
        slot: Slot,
        to: Move,
        since: Duration,
    },
    Quarantined,
}

/// A batch that is ready to be committed.
#[derive(Debug)]
pub(crate) struct Planned {
    pub(crate) batch: Batch,
    pub(crate) effect: Effect,
    /// How many preconditions at the front are the engine's own.
    pub(crate) own_guards: usize,
    /// The engine's move, to be made a millisecond later if its place is taken.
    pub(crate) to: Option<Move>,
}

/// What planning needs beside the timer.
#[derive(Clone, Debug)]
pub(crate) struct Planning<'a> {
    pub(crate) partition: &'a Partition,
    pub(crate) runtime: &'a Runtime,
    pub(crate) policy: RetryPolicy,
    pub(crate) codec_version: u16,
    pub(crate) name: NameGuard,
    /// Time bounds in front of everything.
    pub(crate) front: Vec<Precondition>,
    /// New dues before this are floored to it in the key, in milliseconds since 1970.
    pub(crate) floor_ms: u64,
}

impl Planning<'_> {
    /// The batch of what a handler said, or why it is refused: that is a failure of the handler.
    pub(crate) fn fired(&self, timer: &DueTimer, fired: Fired) -> Result<Planned, String> {
        match fired {
            Fired::Done(effects) => {
                self.check(timer, &effects, 0)?;
                self.sound(self.done(timer, effects))
            }
            Fired::Reschedule {
                due_at_ms,
                payload,
                batch,
            } => {
                validate_due(due_at_ms).map_err(|error| error.to_string())?;
                if payload.len() > PAYLOAD_BYTES_MAX {
                    return Err(format!(
                        "a payload has at most {PAYLOAD_BYTES_MAX} bytes, the one of this \
                         reschedule has {}",
                        payload.len()
                    ));
                }
                self.check(timer, &batch, payload.len())?;
                let row = TimerRow {
                    header: Header {
                        flags: Flags {
                            claimed: false,
                            ..timer.flags()
                        },
                        attempt: 0,
                        original_due_ms: if planted(Mutant::RescheduleFromNow) {
                            due_at_ms.max(self.floor_ms)
                        } else {
                            due_at_ms
                        },
                        failure: None,
                    },
                    payload,
                };
                self.sound(self.rescheduled(timer, due_at_ms, &row, batch))
            }
            Fired::Retry { after_ms, reason } => Ok(self.failed(timer, &reason, after_ms)),
            Fired::Dead { reason, batch } => {
                self.check(timer, &batch, timer.payload().len())?;
                let failure = Failure::new(self.runtime.now_ms(), &reason);
                let attempt = attempts_after(timer);
                let to = Move::dead(timer, DeadReason::Handler, 0, attempt, failure);
                self.sound(self.moved(timer, to, Effect::Dead, batch))
            }
        }
    }

    /// The batch of a run that ended in an error.
    pub(crate) fn error(&self, timer: &DueTimer, error: &HandlerError) -> Planned {
        if error.is_undecodable() {
            self.undecodable(timer, error.text())
        } else if error.is_uncharged() {
            self.set_back(timer, error.text())
        } else {
            self.failed(timer, error.text(), None)
        }
    }

    /// The batch of a failed run: to its next attempt, or to the dead class after the last.
    pub(crate) fn failed(&self, timer: &DueTimer, reason: &str, after_ms: Option<u64>) -> Planned {
        let attempt = attempts_after(timer);
        let now_ms = self.runtime.now_ms();
        let failure = Failure::new(now_ms, reason);
        if self.policy.is_exhausted(attempt) {
            if planted(Mutant::ExhaustedVanishes) {
                return self.done(timer, Batch::new());
            }
            let to = Move::dead(timer, DeadReason::Exhausted, 0, attempt, failure);
            return self.moved(timer, to, Effect::Dead, Batch::new());
        }
        let delay_ms = after_ms.map_or_else(|| self.delay_ms(timer, attempt), |ms| ms.max(1));
        let to = Move::retry(timer, now_ms.saturating_add(delay_ms), attempt, failure);
        self.moved(timer, to, Effect::Failed, Batch::new())
    }

    /// The batch of a run that failed for a reason that is not the handler's: attempts as they
    /// were.
    pub(crate) fn set_back(&self, timer: &DueTimer, reason: &str) -> Planned {
        let now_ms = self.runtime.now_ms();
        let attempt = attempts_after(timer);
        let due_ms = now_ms.saturating_add(self.delay_ms(timer, attempt));
        let failure = Failure::new(now_ms, reason);
        let charged = u16::from(planted(Mutant::StoreFaultCharged));
        let to = Move::retry(timer, due_ms, attempt.saturating_sub(1) + charged, failure);
        self.moved(timer, to, Effect::Failed, Batch::new())
    }

    /// The batch of a payload that does not decode: to the dead class, no attempt charged.
    fn undecodable(&self, timer: &DueTimer, reason: &str) -> Planned {
        if planted(Mutant::UndecodableConsumed) {
            return self.done(timer, Batch::new());
        }
        let attempt = attempts_after(timer).saturating_sub(1);
        let failure = Failure::new(self.runtime.now_ms(), reason);
        let reason = DeadReason::UndecodablePayload;
        let to = Move::dead(timer, reason, self.codec_version, attempt, failure);
        self.moved(timer, to, Effect::Dead, Batch::new())
    }

    /// The batch of one of the engine's moves, with the effects that ride along.
    pub(crate) fn moved(
        &self,
        timer: &DueTimer,
        to: Move,
        effect: Effect,
        effects: Batch,
    ) -> Planned {
        let uses_reserve = !effects.has_put();
        let alone = effects.is_empty();
        let mut batch = move_batch(timer, &self.name, &to, self.front.clone(), effects);
        batch.uses_reserve = uses_reserve && !planted(Mutant::MoveWithoutReserve);
        Planned {
            own_guards: self.own_guards(),
            batch,
            effect,
            to: alone.then_some(to),
        }
    }

    fn done(&self, timer: &DueTimer, effects: Batch) -> Planned {
        let mut batch = self.guarded(timer, effects).delete(timer.key().encode());
        if let NameGuard::Row { key, .. } = &self.name {
            batch = batch.delete(key.clone());
        }
        Planned {
            batch,
            effect: Effect::Fired,
            own_guards: self.own_guards(),
            to: None,
        }
    }

    fn rescheduled(
        &self,
        timer: &DueTimer,
        due_at_ms: u64,
        row: &TimerRow,
        effects: Batch,
    ) -> Planned {
        let key = TimerKey {
            due_ms: due_at_ms.max(self.floor_ms).min(DUE_MS_MAX),
            generation: if planted(Mutant::RescheduleKeepsGeneration) {
                timer.generation()
            } else {
                self.runtime.draw_generation()
            },
            ..timer.key().clone()
        };
        let mut batch = self
            .guarded(timer, effects)
            .require_absent(key.encode())
            .delete(timer.key().encode())
            .put(key.encode(), row.encode());
        if let NameGuard::Row { key: name, .. } = &self.name {
            batch = batch.put(name.clone(), NameRow::of(&key, &row.header).encode());
        }
        let own_guards = self.own_guards();
        Planned {
            batch,
            effect: Effect::Rescheduled,
            own_guards,
            to: None,
        }
    }

    /// The handler's batch behind the engine's guards.
    fn guarded(&self, timer: &DueTimer, effects: Batch) -> Batch {
        let mut preconditions = self.front.clone();
        preconditions.extend(guards(timer, &self.name));
        preconditions.extend(effects.preconditions);
        Batch {
            preconditions,
            writes: effects.writes,
            uses_reserve: false,
        }
    }

    fn own_guards(&self) -> usize {
        self.front.len() + guard_count(&self.name)
    }

    fn delay_ms(&self, timer: &DueTimer, attempt: u16) -> u64 {
        self.policy
            .delay_ms(attempt, &timer.occurrence_id(self.partition))
    }

    /// Refuses what a handler must not return.
    fn check(&self, timer: &DueTimer, effects: &Batch, row_bytes: usize) -> Result<(), String> {
        if effects.ops() > HANDLER_OPS_MAX {
            return Err(format!(
                "a handler's batch has at most {HANDLER_OPS_MAX} preconditions and writes, this \
                 one has {}",
                effects.ops()
            ));
        }
        let most = BATCH_BYTES_MAX
            .saturating_sub(BATCH_BYTES_RESERVED)
            .saturating_sub(row_bytes);
        if effects.bytes() > most {
            return Err(format!(
                "a handler's batch has at most {most} bytes here, this one has {}",
                effects.bytes()
            ));
        }
        let is_own = |key: &Key| {
            let is_row = is_of_class(key, class::TIMER) && *key == timer.key().encode();
            let is_name = is_of_class(key, class::NAME) && *key == name_key(timer);
            is_row || is_name && timer.is_named()
        };
        if effects.writes.iter().any(|write| is_own(write.key()))
            && !planted(Mutant::HandlerWritesOwnName)
        {
            return Err(
                "a handler's batch must not write the row or the name of the timer that \
                        fires; return Fired::Reschedule to schedule it again"
                    .to_owned(),
            );
        }
        Ok(())
    }

    fn sound(&self, planned: Planned) -> Result<Planned, String> {
        match validate_batch(&planned.batch) {
            Ok(()) => Ok(planned),
            Err(error) => Err(error.to_string()),
        }
    }
}

/// How many runs have failed once this one has: a claimed run was counted when it was claimed.
pub(crate) fn attempts_after(timer: &DueTimer) -> u16 {
    if planted(Mutant::RetryNeverCharged) {
        return timer.attempt().saturating_sub(1);
    }
    timer.attempt() + u16::from(planted(Mutant::RetryChargedTwice))
}
