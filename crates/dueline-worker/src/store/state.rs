use std::task::{Context, Poll, Waker};

use dueline::sql::{OrphanWake, Writer};
use dueline::store::StoreError;
use dueline::timers::KindSet;

use super::ObjectStore;
use crate::alarm::{Alarm, KnownAlarm, LOST_AFTER_MS};
use crate::error::AlarmError;
use crate::hold::Holds;
use crate::mutants::{Mutant, planted};
use crate::report::Restored;
use crate::storage::AlarmWrite;

/// What one instance of the object keeps in memory.
#[derive(Debug)]
pub(super) struct State {
    pub(super) kinds: KindSet,
    pub(super) writer: Writer,
    pub(super) alarm: Alarm,
    pub(super) holds: Holds,
    pub(super) orphans: Vec<OrphanWake>,
    /// Whether the last transaction changed wakes.
    pub(super) has_changed_wakes: bool,
    /// Whether the handler of the alarm runs in this instance.
    pub(super) is_serving: bool,
    /// Whether the ticks under way are cautious.
    pub(super) is_cautious: bool,
    /// Whether the mark of an alarm that set another is in the database.
    pub(super) is_marked: bool,
    /// Whether the last instance left that mark.
    pub(super) was_marked: bool,
    /// The head for which the handler waits, in milliseconds since 1970.
    pub(super) awaited_ms: u64,
    /// Whether something was put that is due before it.
    pub(super) is_lowered: bool,
    /// The handler, while it waits for calls.
    pub(super) waiting: Option<Waker>,
    /// Alarms that were delivered while another was being served.
    pub(super) queue: Vec<Waker>,
}

impl State {
    pub(super) fn new(writer: Writer, is_marked: bool) -> Self {
        Self {
            kinds: KindSet::new(),
            writer,
            alarm: Alarm::new(),
            holds: Holds::default(),
            orphans: Vec::new(),
            has_changed_wakes: false,
            is_serving: false,
            is_cautious: false,
            is_marked,
            was_marked: is_marked,
            awaited_ms: 0,
            is_lowered: false,
            waiting: None,
            queue: Vec::new(),
        }
    }

    /// Something due at this time was committed: the handler, if it waits for something later, looks.
    pub(super) fn note_put(&mut self, due_ms: u64) {
        if self.is_serving && due_ms < self.awaited_ms {
            self.is_lowered = true;
            if let Some(waiting) = self.waiting.take() {
                waiting.wake();
            }
        }
    }

    fn end_serving(&mut self) {
        self.is_serving = false;
        self.is_cautious = false;
        self.waiting = None;
        for queued in std::mem::take(&mut self.queue) {
            queued.wake();
        }
    }
}

/// What became of the alarm when its handler ended.
pub(crate) struct Rearmed {
    /// Where it is set now; `None` if nothing is pending.
    pub(crate) next_ms: Option<u64>,
    /// The write, if one was needed.
    pub(crate) write: Option<AlarmWrite>,
}

impl ObjectStore {
    /// The handler of the alarm begins, as soon as no other runs in this instance.
    pub(crate) fn poll_serving(
        &self,
        scheduled_at_ms: Option<u64>,
        context: &mut Context<'_>,
    ) -> Poll<()> {
        let mut state = self.lock();
        if state.is_serving {
            let queue = &mut state.queue;
            if !queue.iter().any(|queued| queued.will_wake(context.waker())) {
                queue.push(context.waker().clone());
            }
            return Poll::Pending;
        }
        state.is_serving = true;
        state.is_lowered = false;
        state.alarm.begin(scheduled_at_ms);
        Poll::Ready(())
    }

    /// The handler was cut or ended with an error: nothing is known of the alarm.
    pub(crate) fn stop_serving(&self) {
        let mut state = self.lock();
        if state.is_serving {
            state.end_serving();
            state.alarm.note(KnownAlarm::Unknown);
        }
    }

    /// Whether the last instance was stopped while its alarm was being served. True once.
    pub(crate) fn take_left_mark(&self) -> bool {
        std::mem::take(&mut self.lock().was_marked)
    }

    /// Whether each commit of the turns to come is to be durable before it is answered.
    pub(crate) fn be_cautious(&self, is_cautious: bool) {
        self.lock().is_cautious = is_cautious;
    }

    pub(crate) fn forget_alarm(&self) {
        self.lock().alarm.note(KnownAlarm::Unknown);
    }

    /// Reads the earliest head of all lanes and sets the alarm for it, in one turn; the handler is over.
    pub(crate) fn rearm(&self) -> Result<Rearmed, AlarmError> {
        let mut state = self.lock();
        state.end_serving();
        let done = self.rearm_with(&mut state, None);
        if done.is_err() {
            state.alarm.note(KnownAlarm::Unknown);
        }
        done
    }

    /// As [`rearm`](Self::rearm), with a head that was read earlier: only a planted bug has one.
    pub(crate) fn rearm_with_stale(&self, head: Option<u64>) -> Result<Rearmed, AlarmError> {
        let mut state = self.lock();
        state.end_serving();
        self.rearm_with(&mut state, Some(head))
    }

    fn rearm_with(
        &self,
        state: &mut State,
        stale: Option<Option<u64>>,
    ) -> Result<Rearmed, AlarmError> {
        self.clear_mark(state);
        let head = match stale {
            Some(head) => head,
            None => self.alarm_head(state).map_err(AlarmError::Heads)?,
        };
        let Some(due_ms) = head else {
            return self.unset(state);
        };
        let at_ms = state.alarm.place(due_ms, self.runtime.now_ms());
        let write = if state.alarm.known == KnownAlarm::At(at_ms) {
            None
        } else {
            Some(self.set(state, at_ms).map_err(AlarmError::Alarm)?)
        };
        Ok(Rearmed {
            next_ms: Some(at_ms),
            write,
        })
    }

    /// Nothing is pending. The alarm is not left to the platform, which keeps one that was set while it was
    /// being served, as the constructor may have done; the platform's own delete would cost the same.
    fn unset(&self, state: &mut State) -> Result<Rearmed, AlarmError> {
        if planted(Mutant::AlarmLeftWithNothingPending) && state.alarm.known == KnownAlarm::None {
            return Ok(Rearmed {
                next_ms: None,
                write: None,
            });
        }
        let write = match self.storage.delete_alarm() {
            Ok(write) => {
                state.alarm.note(KnownAlarm::None);
                Some(write)
            }
            Err(error) if planted(Mutant::AlarmDeleteThrown) => {
                return Err(AlarmError::Alarm(error));
            }
            // What stays comes once for nothing. A retry would hold up what is put next.
            Err(error) => {
                tracing::warn!(%error, "an alarm that nothing needs stays");
                state.alarm.note(KnownAlarm::Unknown);
                None
            }
        };
        Ok(Rearmed {
            next_ms: None,
            write,
        })
    }

    /// Sets the alarm so that what is due at this time is not late, if it is not set so already.
    pub(super) fn lower(
        &self,
        state: &mut State,
        due_ms: u64,
    ) -> Result<Option<AlarmWrite>, StoreError> {
        let now_ms = self.runtime.now_ms();
        // One that is long over and not being served was lost, and must not pass for this timer's.
        let is_lost = match state.alarm.known {
            KnownAlarm::At(at_ms) => at_ms.saturating_add(LOST_AFTER_MS) < now_ms,
            KnownAlarm::Unknown | KnownAlarm::None => false,
        };
        let is_lost = is_lost && !state.is_serving && !planted(Mutant::AlarmLongOverIsTrusted);
        if !is_lost && state.alarm.is_set_for(due_ms, now_ms) {
            return Ok(None);
        }
        // What is stored counts too: nothing may be known of the alarm that is replaced.
        let head = self.alarm_head(state)?;
        let earliest_ms = head.map_or(due_ms, |head| head.min(due_ms));
        let at_ms = state.alarm.place(earliest_ms, now_ms);
        self.set(state, at_ms).map(Some)
    }

    fn set(&self, state: &mut State, at_ms: u64) -> Result<AlarmWrite, StoreError> {
        let write = self.storage.set_alarm(at_ms);
        state.alarm.note(if write.is_ok() {
            KnownAlarm::At(at_ms)
        } else {
            KnownAlarm::Unknown
        });
        write
    }

    /// Which write of the alarm was the last, and whether its handler runs: to be asked before the
    /// platform is asked for the alarm.
    fn alarm_version(&self) -> (u64, bool) {
        let state = self.lock();
        (state.alarm.version, state.is_serving)
    }

    /// Asks the platform for the alarm and sets it again if it is not as it has to be.
    pub(crate) async fn see_to_alarm(&self) -> Result<Restored, AlarmError> {
        let (version, is_serving) = self.alarm_version();
        if is_serving {
            return Ok(Restored::Serving);
        }
        let asked = self.storage.get_alarm();
        let found = asked.await.map_err(AlarmError::Alarm)?;
        let (restored, write) = self.restore(found, version)?;
        if let Some(write) = write
            && let Err(error) = write.await
        {
            self.forget_alarm();
            return Err(AlarmError::Alarm(error));
        }
        Ok(restored)
    }

    /// Whether the alarm that the platform has just told is the one that this instance set or read, and will
    /// come; or is being served.
    pub(crate) fn is_alarm_sound(&self, found: Option<u64>) -> bool {
        let state = self.lock();
        state.is_serving || state.alarm.is_as_known(found, self.runtime.now_ms())
    }

    /// Sets the alarm again if it is missing, too late, or lost, in the turn in which the heads are
    /// read. `found` is what the platform said, `version` what was current when it was asked.
    fn restore(
        &self,
        found: Option<u64>,
        version: u64,
    ) -> Result<(Restored, Option<AlarmWrite>), AlarmError> {
        let mut state = self.lock();
        if state.is_serving {
            return Ok((Restored::Serving, None));
        }
        if state.alarm.version != version || planted(Mutant::AlarmNotRestored) {
            // It was set in the meantime, by the heads of that turn.
            return Ok((Restored::Sound, None));
        }
        let now_ms = self.runtime.now_ms();
        let is_found_lost = found.is_some_and(|at_ms| state.alarm.is_lost(at_ms, now_ms));
        if state.alarm.is_as_known(found, now_ms) {
            return Ok((Restored::Sound, None));
        }
        let head = self.alarm_head(&mut state).map_err(AlarmError::Heads)?;
        let Some(due_ms) = head else {
            // One that is lost must not pass for the alarm of what is put next.
            state.alarm.note(match found {
                Some(_) if is_found_lost && !planted(Mutant::AlarmLostWithNothingPending) => {
                    KnownAlarm::Unknown
                }
                Some(at_ms) => KnownAlarm::At(at_ms),
                None => KnownAlarm::None,
            });
            return Ok((Restored::Sound, None));
        };
        let wanted_ms = state.alarm.place(due_ms, now_ms);
        let is_put_off = planted(Mutant::AlarmPutOffForUnknown) && found != Some(wanted_ms);
        match found {
            Some(at_ms) if at_ms <= wanted_ms && !is_found_lost && !is_put_off => {
                state.alarm.note(KnownAlarm::At(at_ms));
                Ok((Restored::Sound, None))
            }
            _ => {
                let write = self.set(&mut state, wanted_ms).map_err(AlarmError::Alarm)?;
                if due_ms <= now_ms {
                    self.leave_mark(&mut state);
                }
                Ok((Restored::Set { at_ms: wanted_ms }, Some(write)))
            }
        }
    }
}
