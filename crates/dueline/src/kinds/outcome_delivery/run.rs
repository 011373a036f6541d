//! What one run of an outbox has come to, and the batch that settles it.

use super::dead_rows::{Dead, DeadOutcomeReason};
use super::progress::Progress;
use super::rows::{GONE, Gone, Pending, STATE, State};
use super::sink::RunSummary;
use super::{APPEND_WAKE_MS, OutboxName, ROWS_PER_RUN_MAX};
use crate::kinds::observed::Observed;
use crate::kinds::owner::{drained, later_due_ms};
use crate::kinds::row::Row;
use crate::limits::HANDLER_OPS_MAX;
use crate::mutants::{Mutant, planted};
use crate::store::{Batch, StoreError, Value};
use crate::timers::{DueTimer, Fired, TimerCtx};

/// Operations of a settling batch beside those of the outcomes: two rows, each guarded and put.
const OUTBOX_OPS: usize = 4;
/// Most operations for one outcome: the one that is set aside is deleted and put.
const OUTCOME_OPS_MAX: usize = 2;
const _: () = assert!(OUTBOX_OPS + ROWS_PER_RUN_MAX + OUTCOME_OPS_MAX <= HANDLER_OPS_MAX);

/// The two rows of an outbox as they were read.
#[derive(Debug)]
pub(super) struct Seen {
    pub(super) state: Observed<State>,
    pub(super) gone: Observed<Gone>,
}

impl Seen {
    pub(super) async fn read(ctx: &TimerCtx<'_>, name: &OutboxName) -> Result<Self, StoreError> {
        let (state, gone) = (STATE.key(&[name.as_bytes()]), GONE.key(&[name.as_bytes()]));
        let keys = [state.clone(), gone.clone()];
        let found = ctx.reads().get_many(ctx.partition(), &keys).await?;
        let mut found = found.into_iter();
        Ok(Self {
            state: Observed::of(state, found.next().flatten())?,
            gone: Observed::of(gone, found.next().flatten())?,
        })
    }

    /// The state, if the timer of this stamp is to empty the outbox.
    pub(super) fn owned_by(&self, stamp: u64) -> Option<State> {
        let state = self.state.row?;
        (state.is_owned && state.stamp == stamp).then_some(state)
    }
}

/// An outcome that leaves the outbox.
#[derive(Debug)]
struct Leaving {
    sequence: u64,
    bytes: u64,
    /// The dead row that it becomes; `None` if it was delivered.
    dead: Option<Value>,
}

/// When the outbox is to be looked at again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// Not at all: everything was looked at and nothing stays.
    Drained,
    /// At once: there is more.
    Now,
    /// When the first of those that wait may be tried again, in milliseconds since 1970.
    At(u64),
    /// After a back-off.
    BackOff {
        delay_ms: u64,
        /// Whether the sink asked for it, so that nothing shortens it.
        is_asked: bool,
    },
}

/// What the calls of one run have come to.
#[derive(Debug)]
pub(super) struct Ran {
    seen: Seen,
    /// The state that was seen, `seen.state`'s row.
    state: State,
    leaving: Vec<Leaving>,
    /// Bytes that the settling batch puts.
    put_bytes: usize,
    rewritten: Option<(u64, Pending)>,
    pub(super) progress: Progress,
    pub(super) next: Next,
    pub(super) summary: RunSummary,
}

impl Ran {
    pub(super) fn begin(seen: Seen, state: State, progress: Progress, summary: RunSummary) -> Self {
        Self {
            seen,
            state,
            leaving: Vec::new(),
            put_bytes: 0,
            rewritten: None,
            progress,
            next: Next::Now,
            summary,
        }
    }

    /// The state of the outbox before the calls.
    pub(super) fn state(&self) -> &State {
        &self.state
    }

    /// How many outcomes leave.
    pub(super) fn leaving(&self) -> usize {
        self.leaving.len()
    }

    /// Whether more waits, by what was counted, than leaves in this run: the place in the outbox where it went
    /// on cannot be right if nothing is left behind it.
    pub(super) fn is_more_waiting(&self) -> bool {
        self.summary.backlog.rows > self.leaving.len() as u64
    }

    /// Whether the settling batch has room for one more row of this many bytes, whatever becomes of it.
    pub(super) fn has_room_for(&self, bytes: usize) -> bool {
        const PUT_BYTES_MAX: usize = 768 * 1_024;
        let dead = self.leaving.iter().filter(|leaving| leaving.dead.is_some());
        let ops = OUTBOX_OPS + self.leaving.len() + dead.count();
        ops + OUTCOME_OPS_MAX <= HANDLER_OPS_MAX
            && self.put_bytes.saturating_add(bytes) <= PUT_BYTES_MAX
    }

    pub(super) fn delivered(&mut self, sequence: u64, bytes: usize) {
        self.summary.delivered += 1;
        self.leaving.push(Leaving {
            sequence,
            bytes: bytes as u64,
            dead: None,
        });
    }

    /// Sets an outcome aside; `value` is its row.
    pub(super) fn set_aside(
        &mut self,
        sequence: u64,
        (reason, error): (DeadOutcomeReason, &str),
        (attempt, value): (u16, Value),
        now_ms: u64,
    ) {
        tracing::warn!(
            partition = %self.summary.partition,
            outbox = %self.summary.outbox,
            sequence,
            ?reason,
            error,
            "an outcome was set aside"
        );
        self.summary.set_aside += 1;
        let bytes = Pending::backlog_bytes(&value);
        let dead = Dead::new(reason, error, value, now_ms)
            .after_attempts(attempt)
            .encode();
        self.put_bytes += dead.len();
        self.leaving.push(Leaving {
            sequence,
            bytes,
            dead: Some(dead),
        });
    }

    /// Keeps an outcome whose delivery failed, with its attempt.
    pub(super) fn keep(&mut self, sequence: u64, pending: Pending) {
        self.rewritten = Some((sequence, pending));
    }

    /// How old an outcome is that the run looks at.
    pub(super) fn note_age(&mut self, written_at_ms: u64, now_ms: u64) {
        let age_ms = now_ms.saturating_sub(written_at_ms);
        self.summary.lag_ms = self.summary.lag_ms.max(age_ms);
    }

    /// What becomes of the timer, by the outbox as it is now. Everything that leaves is guarded by what
    /// had left before the calls: if somebody else settled meanwhile, nothing of this run is taken.
    pub(super) fn settle(&self, ctx: &TimerCtx<'_>, timer: &DueTimer, now: &Seen) -> Fired {
        let Some(state) = now.owned_by(self.progress.stamp) else {
            return drained();
        };
        let is_stale = now.gone.bytes != self.seen.gone.bytes;
        if is_stale && !planted(Mutant::OutboxTakesStaleRun) {
            let again = Progress::beginning(self.progress.stamp);
            return reschedule(timer, ctx.now_ms(), &again, Batch::new());
        }
        let is_new = state.rows_in != self.state.rows_in;
        if self.next == Next::Drained && !is_new {
            let all = Gone {
                rows: state.rows_in,
                bytes: state.bytes_in,
            };
            return Fired::Done(self.close(now, state, self.effects(all)));
        }
        let batch = self.effects(self.left());
        let (due_ms, asked_until_ms) = self.due(ctx.now_ms(), is_new);
        if due_ms <= ctx.now_ms().saturating_add(APPEND_WAKE_MS) {
            return reschedule(timer, due_ms, &self.progress, batch);
        }
        // An append that comes before this commit makes it lose; one that comes after sees the sleep.
        let asleep = State {
            sleeps_until_ms: due_ms,
            not_before_ms: asked_until_ms,
            ..state
        };
        let batch = if planted(Mutant::OutboxSleepsUnguarded) {
            batch
        } else {
            now.state.replace(batch, Some(&asleep))
        };
        reschedule(timer, due_ms, &self.progress, batch)
    }

    /// Gives the outbox up: the next append schedules a timer.
    fn close(&self, now: &Seen, state: State, batch: Batch) -> Batch {
        let closed = State {
            is_owned: false,
            sleeps_until_ms: 0,
            not_before_ms: 0,
            ..state
        };
        if planted(Mutant::OutboxClosesUnguarded) {
            return batch.put(now.state.key.clone(), closed.encode());
        }
        now.state.replace(batch, Some(&closed))
    }

    /// What has left with this run.
    fn left(&self) -> Gone {
        let before = self.seen.gone.row.unwrap_or_default();
        let bytes: u64 = self.leaving.iter().map(|leaving| leaving.bytes).sum();
        Gone {
            rows: before.rows.saturating_add(self.leaving.len() as u64),
            bytes: before.bytes.saturating_add(bytes),
        }
    }

    /// The rows that leave and the one that is kept, under the guard of what had left before.
    fn effects(&self, left: Gone) -> Batch {
        let name = self.summary.outbox.as_bytes();
        let gone = &self.seen.gone;
        let mut batch = if planted(Mutant::OutboxTakesStaleRun) {
            Batch::new().put(gone.key.clone(), left.encode())
        } else if gone.row.unwrap_or_default() == left {
            gone.guard(Batch::new())
        } else {
            gone.replace(Batch::new(), Some(&left))
        };
        for leaving in &self.leaving {
            batch = batch.delete(Pending::key(name, leaving.sequence));
            if let Some(dead) = &leaving.dead {
                batch = batch.put(Dead::key(name, leaving.sequence), dead.clone());
            }
        }
        if let Some((sequence, pending)) = &self.rewritten {
            batch = batch.put(Pending::key(name, *sequence), pending.encode());
        }
        batch
    }

    /// When the timer is due again, and until when the sink asked not to be called.
    fn due(&self, now_ms: u64, is_new: bool) -> (u64, u64) {
        match self.next {
            Next::Drained | Next::Now => (now_ms, 0),
            Next::At(_) if is_new => (now_ms, 0),
            Next::At(due_ms) => (due_ms, 0),
            Next::BackOff { delay_ms, is_asked } => {
                let due_ms = now_ms.saturating_add(delay_ms);
                if is_asked {
                    (due_ms, due_ms)
                } else if is_new {
                    (due_ms.min(now_ms.saturating_add(APPEND_WAKE_MS)), 0)
                } else {
                    (due_ms, 0)
                }
            }
        }
    }
}

/// The timer again, always at another due than the one it had.
fn reschedule(timer: &DueTimer, due_at_ms: u64, progress: &Progress, batch: Batch) -> Fired {
    Fired::Reschedule {
        due_at_ms: later_due_ms(timer, due_at_ms),
        payload: progress.encode(),
        batch,
    }
}
