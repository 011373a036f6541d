//! What is due when: the stored wakes, seen through the holds.

use std::ops::ControlFlow;
use std::task::{Context, Poll};

use dueline::store::{LaneWake, Partition, StoreError, Wake};
use dueline::timers::{KindSet, TimerKind};

use super::ObjectStore;
use super::state::State;
use crate::hold::TurnEnd;
use crate::mutants::{Mutant, planted};

/// Wakes read at a time while partitions are held back.
const WAKES_PER_PAGE: usize = 64;
/// Most wakes served by one tick.
const WAKES_PER_TICK: usize = 256;
/// How long an object whose first timer has a kind without a handler here may be left alone, in
/// milliseconds: a deployment that has the handler again finds its timers within this time by itself.
const UNKNOWN_LOOK_MS: u64 = 3_600_000;

/// A partition to be ticked, and the wakes that are served by that.
#[derive(Debug)]
pub(crate) struct Turn {
    pub(crate) partition: Partition,
    pub(crate) wakes: Vec<LaneWake>,
}

impl ObjectStore {
    /// The earliest time at which a lane of these kinds wants to be looked at, in milliseconds since
    /// 1970: its first wake, or the end of its partition's hold. Read in the present turn.
    pub(super) fn head(
        &self,
        state: &mut State,
        kinds: &KindSet,
    ) -> Result<Option<u64>, StoreError> {
        let is_first_enough = state.holds.is_empty();
        let limit = if is_first_enough { 1 } else { WAKES_PER_PAGE };
        let mut earliest: Option<u64> = None;
        self.walk(state, kinds, u64::MAX, limit, &mut |wake, held_ms| {
            if earliest.is_some_and(|earliest| earliest <= wake.at_ms) {
                return ControlFlow::Break(());
            }
            let at_ms = wake.at_ms.max(held_ms);
            earliest = Some(earliest.map_or(at_ms, |earliest| earliest.min(at_ms)));
            if is_first_enough {
                return ControlFlow::Break(());
            }
            ControlFlow::Continue(())
        })?;
        Ok(earliest)
    }

    /// When the alarm has to come at the latest, in milliseconds since 1970: for the head of the kinds
    /// that run here, and now and then for others. Only the first wake of all counts: behind one of a
    /// kind that runs here the next look at the heads is not later than it has to be.
    pub(super) fn alarm_head(&self, state: &mut State) -> Result<Option<u64>, StoreError> {
        let Some((first_ms, kind)) = self.first_wake(state)? else {
            return Ok(None);
        };
        let is_known = state.kinds.contains(kind);
        if is_known && state.holds.is_empty() {
            return Ok(Some(first_ms));
        }
        let kinds = state.kinds;
        let head = self.head(state, &kinds)?;
        if is_known || planted(Mutant::AlarmForgetsUnknown) {
            return Ok(head);
        }
        if planted(Mutant::AlarmSpinsForUnknown) {
            return Ok(Some(first_ms));
        }
        let look_ms = self.runtime.now_ms().saturating_add(UNKNOWN_LOOK_MS);
        let look_ms = first_ms.max(look_ms);
        Ok(Some(head.map_or(look_ms, |head| head.min(look_ms))))
    }

    /// The first wake of all: its time and its kind.
    fn first_wake(&self, state: &mut State) -> Result<Option<(u64, TimerKind)>, StoreError> {
        let (mut first, mut next_kind, mut is_orphan) = (None, 0, false);
        self.read(|reads| {
            while let Some(head) = reads.wake_head(next_kind)? {
                next_kind = u16::from(head.kind.0) + 1;
                is_orphan |= head.is_orphan;
                let other = (head.at_ms, head.kind);
                first = Some(first.map_or(other, |first| other.min(first)));
            }
            Ok(())
        })?;
        if !is_orphan {
            return Ok(first);
        }
        // One without a partition is passed by, and goes with the next transaction.
        let found = self.read(|reads| reads.due_wakes(&KindSet::all(), u64::MAX, None, 1))?;
        state.note_orphans(found.orphans);
        let first = found.page.wakes.first();
        Ok(first.map(|wake| (wake.at_ms, wake.kind)))
    }

    /// The head of these kinds in a turn of its own, for the handler, which waits for it.
    pub(crate) fn next_head(&self, kinds: &KindSet) -> Result<Option<u64>, StoreError> {
        let mut state = self.lock();
        state.is_lowered = false;
        let head = self.head(&mut state, kinds)?;
        state.awaited_ms = head.unwrap_or(u64::MAX);
        Ok(head)
    }

    /// What is due, a turn for each partition, in the order of their first wakes.
    pub(crate) fn due_turns(&self, kinds: &KindSet) -> Result<Vec<Turn>, StoreError> {
        let mut state = self.lock();
        let now_ms = self.runtime.now_ms();
        let mut turns: Vec<Turn> = Vec::new();
        let mut left = WAKES_PER_TICK;
        self.walk(
            &mut state,
            kinds,
            now_ms,
            WAKES_PER_TICK,
            &mut |wake, held_ms| {
                if held_ms > now_ms {
                    return ControlFlow::Continue(());
                }
                let of_lane = LaneWake {
                    kind: wake.kind,
                    at_ms: wake.at_ms,
                };
                match turns
                    .iter_mut()
                    .find(|turn| turn.partition == wake.partition)
                {
                    Some(turn) => turn.wakes.push(of_lane),
                    None => turns.push(Turn {
                        partition: wake.partition,
                        wakes: vec![of_lane],
                    }),
                }
                left -= 1;
                if left == 0 {
                    ControlFlow::Break(())
                } else {
                    ControlFlow::Continue(())
                }
            },
        )?;
        Ok(turns)
    }

    /// Shows the wakes up to a time in their order, each with the end of its partition's hold (0 if it
    /// is not held), until it is told to stop.
    fn walk(
        &self,
        state: &mut State,
        kinds: &KindSet,
        until_ms: u64,
        limit: usize,
        show: &mut dyn FnMut(Wake, u64) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        let now = self.runtime.monotonic();
        let now_ms = self.runtime.now_ms();
        let mut after = None;
        loop {
            let found =
                self.read(|reads| reads.due_wakes(kinds, until_ms, after.as_ref(), limit))?;
            state.note_orphans(found.orphans);
            for wake in found.page.wakes {
                let left = state.holds.left(&wake.partition, now);
                let held_ms = u64::try_from(left.as_millis())
                    .ok()
                    .filter(|left_ms| *left_ms > 0)
                    .map_or(0, |left_ms| now_ms.saturating_add(left_ms));
                if show(wake, held_ms) == ControlFlow::Break(()) {
                    return Ok(());
                }
            }
            after = found.page.next;
            if after.is_none() {
                return Ok(());
            }
        }
    }

    /// Takes note of how a partition's turn ended.
    pub(crate) fn turn_ended(&self, partition: &Partition, end: TurnEnd) {
        let now = self.runtime.monotonic();
        self.lock().holds.ended(partition, end, now);
    }

    /// Ready once something was put that is due before the head that was read last.
    pub(crate) fn poll_lowered(&self, context: &mut Context<'_>) -> Poll<()> {
        let mut state = self.lock();
        if std::mem::take(&mut state.is_lowered) {
            return Poll::Ready(());
        }
        state.waiting = Some(context.waker().clone());
        Poll::Pending
    }
}
