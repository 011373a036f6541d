use std::sync::Arc;

use dueline::runtime::Clock;
use dueline::store::StoreError;

use super::scheduler::Scheduler;
use super::storage::SimulatedStorage;
use super::turns::TurnRecord;
use crate::report::AlarmInfo;

/// What the platform does when it is time for an alarm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// The handler is to run.
    Run(AlarmInfo),
    /// The alarm had been changed; the stored one comes in its own time.
    Cancelled,
    /// There is none.
    Nothing,
}

/// How an alarm's handler ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AlarmEnd {
    /// It returned.
    Well,
    /// It threw, or trapped: tried again, a limited number of times.
    Failed,
    /// The platform itself failed: tried again, and not counted.
    Cut,
}

/// One Durable Object as the outside sees it: what is durable, and when its alarm is delivered.
#[derive(Debug)]
pub struct SimulatedObject {
    storage: SimulatedStorage,
    scheduler: Scheduler,
    /// What the instance believes the scheduler to have: at this time or before.
    scheduled_ms: Option<u64>,
    /// The stored alarm of the last durable turn.
    durable_alarm_ms: Option<u64>,
}

impl SimulatedObject {
    /// An object without rows, whose database goes by this clock.
    ///
    /// # Errors
    /// `Unavailable` if SQLite does not open a database in memory.
    pub fn new(clock: Arc<dyn Clock>) -> Result<Self, StoreError> {
        Ok(Self {
            storage: SimulatedStorage::new(clock)?,
            scheduler: Scheduler::default(),
            scheduled_ms: None,
            durable_alarm_ms: None,
        })
    }

    /// What an instance is given.
    pub fn storage(&self) -> &SimulatedStorage {
        &self.storage
    }

    /// Ends a turn: what it wrote is committed. An alarm that is earlier than the scheduler's is told
    /// to it first. Whether anything was written.
    ///
    /// # Errors
    /// As SQLite says.
    pub fn end_turn(&mut self) -> Result<bool, StoreError> {
        let alarm_ms = {
            let mut inner = self.storage.lock();
            if !inner.end_turn()? {
                return Ok(false);
            }
            inner.alarm_ms
        };
        if is_earlier(alarm_ms, self.scheduled_ms) {
            self.tell(alarm_ms);
        }
        Ok(true)
    }

    /// All turns that have ended are durable; only now a later alarm is told to the scheduler.
    ///
    /// # Errors
    /// As SQLite says.
    pub fn sync(&mut self) -> Result<Vec<TurnRecord>, StoreError> {
        let records = self.storage.lock().sync()?;
        if let Some(last) = records.last() {
            self.durable_alarm_ms = last.alarm_ms;
            if is_earlier(self.scheduled_ms, last.alarm_ms) {
                self.tell(last.alarm_ms);
            }
        }
        Ok(records)
    }

    /// How many turns have ended and are not durable.
    pub fn unsynced(&self) -> usize {
        self.storage.lock().turns.unsynced()
    }

    /// The instance is gone, and with it the turn under way and all un-synced turns but this many of the
    /// first. An alarm that was being served was cut.
    ///
    /// # Errors
    /// As SQLite says.
    pub fn crash(&mut self, kept: usize, now_ms: u64) -> Result<Vec<TurnRecord>, StoreError> {
        let records = self.take_back(kept)?;
        if self.scheduler.is_running() {
            self.scheduler.ended(Some(false), now_ms);
        }
        Ok(records)
    }

    /// The turn under way and all un-synced turns but this many of the first are taken back, the alarm with
    /// them, and the instance lives on: so ends a transaction of its application that is given up.
    ///
    /// # Errors
    /// As SQLite says.
    pub fn take_back(&mut self, kept: usize) -> Result<Vec<TurnRecord>, StoreError> {
        let mut inner = self.storage.lock();
        let alarm_ms = inner.alarm_ms;
        let inner = &mut *inner;
        inner.forget();
        let (records, alarm_ms) = inner.turns.lose_all_but(&inner.database, kept, alarm_ms)?;
        inner.synced += records.len() as u64;
        inner.ended = inner.synced;
        inner.alarm_ms = alarm_ms;
        inner.deletes_alarm = false;
        self.durable_alarm_ms = alarm_ms;
        self.scheduled_ms = alarm_ms;
        Ok(records)
    }

    /// The instance has trapped: what it wrote stays, its memory is gone. An alarm that was being served
    /// has failed.
    ///
    /// # Errors
    /// As SQLite says.
    pub fn trap(&mut self, now_ms: u64) -> Result<(), StoreError> {
        self.end_turn()?;
        self.storage.lock().deletes_alarm = false;
        if self.scheduler.is_running() {
            self.scheduler.ended(Some(true), now_ms);
        }
        Ok(())
    }

    /// When the platform delivers the alarm next, in milliseconds since 1970; `None` without one, and
    /// while its handler runs.
    pub fn next_alarm_ms(&self) -> Option<u64> {
        self.scheduler.next_ms()
    }

    /// Whether an alarm failed and waits to be tried again: an earlier one that is set meanwhile is told to
    /// the platform, and delivered only behind it.
    pub fn waits_for_retry(&self) -> bool {
        self.scheduler.waits_for_retry()
    }

    /// The wait before the first retry of an alarm from now on, in milliseconds; each further one is twice
    /// as long. Default 2,000, as the platform has it.
    pub fn set_retry_first_ms(&mut self, retry_first_ms: u64) {
        self.scheduler.retry_first_ms = retry_first_ms;
    }

    /// Whether the handler of the alarm runs.
    pub fn is_serving(&self) -> bool {
        self.scheduler.is_running()
    }

    /// The platform loses the alarm, unless it is being served. Whether there was one.
    pub fn lose_alarm(&mut self) -> bool {
        self.scheduler.lose()
    }

    /// Delivers the alarm, whatever the time.
    pub fn deliver(&mut self, now_ms: u64) -> Delivery {
        if self.scheduler.is_running() {
            return Delivery::Nothing;
        }
        let Some((scheduled_ms, retry_count)) = self.scheduler.start() else {
            return Delivery::Nothing;
        };
        let mut inner = self.storage.lock();
        if inner.alarm_ms == Some(scheduled_ms) {
            inner.deletes_alarm = true;
        } else if inner.turns.keep_alarm(self.durable_alarm_ms) {
            // The object was set to another time, or to none, and that is durable.
            let stored = inner.alarm_ms.filter(|at_ms| scheduled_ms < *at_ms);
            drop(inner);
            if stored.is_some() {
                self.tell(stored);
            }
            self.scheduler.ended(None, now_ms);
            return Delivery::Cancelled;
        } else {
            inner.deletes_alarm = false;
            drop(inner);
            // The delivery itself tells what the scheduler had.
            self.scheduled_ms = Some(scheduled_ms);
        }
        Delivery::Run(AlarmInfo {
            retry_count,
            is_retry: retry_count > 0,
            scheduled_at_ms: Some(scheduled_ms),
        })
    }

    /// The handler has ended. A handler that ended well is heard of only when what it wrote is durable, so
    /// that comes first; the turns that it made durable are returned.
    ///
    /// # Errors
    /// As SQLite says.
    pub fn alarm_ended(
        &mut self,
        end: AlarmEnd,
        now_ms: u64,
    ) -> Result<Vec<TurnRecord>, StoreError> {
        self.end_turn()?;
        {
            let mut inner = self.storage.lock();
            if std::mem::take(&mut inner.deletes_alarm) && end == AlarmEnd::Well {
                inner.begin_turn()?;
                inner.alarm_ms = None;
            }
        }
        self.end_turn()?;
        let records = if end == AlarmEnd::Well {
            self.sync()?
        } else {
            Vec::new()
        };
        self.scheduler.ended(
            match end {
                AlarmEnd::Well => None,
                AlarmEnd::Failed => Some(true),
                AlarmEnd::Cut => Some(false),
            },
            now_ms,
        );
        Ok(records)
    }

    fn tell(&mut self, alarm_ms: Option<u64>) {
        self.scheduled_ms = alarm_ms;
        match alarm_ms {
            Some(at_ms) => self.scheduler.set(at_ms),
            None => self.scheduler.delete(),
        }
    }
}

/// Whether an alarm comes before another; none never comes.
fn is_earlier(one: Option<u64>, other: Option<u64>) -> bool {
    one.unwrap_or(u64::MAX) < other.unwrap_or(u64::MAX)
}
