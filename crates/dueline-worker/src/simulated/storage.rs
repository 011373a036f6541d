use std::fmt;
use std::future::{poll_fn, ready};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;

use dueline::BoxFuture;
use dueline::runtime::Clock;
use dueline::sql::{SqlConn, schema};
use dueline::store::{Batch, Partition, StoreError, Wake};
use dueline::timers::KindSet;

use super::database::Database;
use super::faults::{StorageCall, StorageFaults};
use super::turns::{TurnRecord, Turns};
use crate::storage::{AlarmWrite, ObjectStorage, SqlTask};

/// What was asked of a storage since its beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StorageCounts {
    /// Statements, without those that begin and end transactions.
    pub statements: u64,
    /// Rows that queries returned.
    pub rows_read: u64,
    /// Rows that statements changed.
    pub rows_written: u64,
    /// Transactions.
    pub transactions: u64,
    /// Reads of the alarm.
    pub alarm_reads: u64,
    /// Writes of the alarm.
    pub alarm_writes: u64,
    /// Waits for durability.
    pub syncs: u64,
}

/// The database and the alarm of one simulated object, for its instances.
#[derive(Clone)]
pub struct SimulatedStorage {
    inner: Arc<Mutex<Inner>>,
    effects: Arc<Mutex<Option<SimulatedEffects>>>,
}

/// What an object in memory does for an [`effect_mark`](crate::effect_mark), by the mark's number.
pub type SimulatedEffects = Arc<dyn Fn(u64, &dyn SqlConn) -> Result<(), String> + Send + Sync>;

#[derive(Debug)]
pub(super) struct Inner {
    pub(super) database: Database,
    pub(super) turns: Turns,
    /// The stored alarm.
    pub(super) alarm_ms: Option<u64>,
    /// Whether the stored alarm is that whose handler runs, to be deleted when that ends well.
    pub(super) deletes_alarm: bool,
    /// How many turns are durable.
    pub(super) synced: u64,
    /// How many turns were durable, or ended and not lost.
    pub(super) ended: u64,
    faults: StorageFaults,
    counts: StorageCounts,
    actor: u8,
    records_wakes: bool,
    /// The stored wakes, while nothing has been written since they were read.
    wakes: Option<Vec<Wake>>,
    /// Whether the tables were seen, and nothing was lost since.
    has_tables: bool,
}

impl SimulatedStorage {
    /// An empty database with this clock.
    ///
    /// # Errors
    /// `Unavailable` if SQLite does not open a database in memory.
    pub(super) fn new(clock: Arc<dyn Clock>) -> Result<Self, StoreError> {
        let inner = Inner {
            database: Database::new(clock)?,
            turns: Turns::default(),
            alarm_ms: None,
            deletes_alarm: false,
            synced: 0,
            ended: 0,
            faults: StorageFaults::none(),
            counts: StorageCounts::default(),
            actor: 0,
            records_wakes: false,
            wakes: None,
            has_tables: false,
        };
        Ok(Self {
            inner: Arc::new(Mutex::new(inner)),
            effects: Arc::default(),
        })
    }

    /// Whose turns those to come are; said again in their [`TurnRecord`]s.
    pub fn set_actor(&self, actor: u8) {
        self.lock().actor = actor;
    }

    /// Lets calls fail from now on.
    pub fn set_faults(&self, faults: StorageFaults) {
        self.lock().faults = faults;
    }

    /// Whether turns record the wakes that are stored at their ends.
    pub fn record_wakes(&self, records_wakes: bool) {
        self.lock().records_wakes = records_wakes;
    }

    /// What is done for the marks of batches from now on.
    pub fn set_effects(&self, effects: SimulatedEffects) {
        *self.effects.lock().unwrap_or_else(PoisonError::into_inner) = Some(effects);
    }

    /// What was asked so far.
    pub fn counts(&self) -> StorageCounts {
        let inner = self.lock();
        let (rows_read, rows_written) = inner.database.rows();
        StorageCounts {
            statements: inner.database.statements(),
            rows_read,
            rows_written,
            ..inner.counts
        }
    }

    /// The stored alarm, whoever is served.
    pub fn alarm_ms(&self) -> Option<u64> {
        self.lock().alarm_ms
    }

    /// All stored wakes, in the order of their times.
    ///
    /// # Errors
    /// As SQLite says.
    pub fn wakes(&self) -> Result<Vec<Wake>, StoreError> {
        self.lock().wakes().map(<[Wake]>::to_vec)
    }

    /// The earliest stored wake of these kinds, in milliseconds since 1970.
    ///
    /// # Errors
    /// As SQLite says.
    pub fn first_wake_ms(&self, kinds: &KindSet) -> Result<Option<u64>, StoreError> {
        let mut inner = self.lock();
        let wakes = inner.wakes()?;
        let first = wakes.iter().find(|wake| kinds.contains(wake.kind));
        Ok(first.map(|wake| wake.at_ms))
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for SimulatedStorage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SimulatedStorage").finish_non_exhaustive()
    }
}

impl Inner {
    fn wakes(&mut self) -> Result<&[Wake], StoreError> {
        if self.wakes.is_none() {
            if !self.has_tables {
                let version = schema::version(&self.database)?;
                self.has_tables = version.is_some_and(|version| version > 0);
            }
            self.wakes = Some(if self.has_tables {
                self.database.wakes()?
            } else {
                Vec::new()
            });
        }
        Ok(self.wakes.as_deref().unwrap_or_default())
    }

    /// What was known of the database may be lost.
    pub(super) fn forget(&mut self) {
        self.wakes = None;
        self.has_tables = false;
    }

    pub(super) fn begin_turn(&mut self) -> Result<(), StoreError> {
        self.turns.begin(&self.database, self.alarm_ms, self.actor)
    }

    /// Ends the open turn. Whether there was one.
    pub(super) fn end_turn(&mut self) -> Result<bool, StoreError> {
        if !self.turns.is_open() {
            return Ok(false);
        }
        let wakes = if self.records_wakes {
            self.wakes()?.to_vec()
        } else {
            Vec::new()
        };
        let (now_ms, alarm_ms) = (self.database.wall_ms(), self.alarm_ms);
        self.turns.end(|record| {
            record.now_ms = now_ms;
            record.wakes = wakes;
            record.alarm_ms = alarm_ms;
        });
        self.ended += 1;
        Ok(true)
    }

    pub(super) fn sync(&mut self) -> Result<Vec<TurnRecord>, StoreError> {
        let records = self.turns.sync(&self.database)?;
        self.synced += records.len() as u64;
        Ok(records)
    }

    fn write_alarm(&mut self, alarm_ms: Option<u64>) -> Result<AlarmWrite, StoreError> {
        self.counts.alarm_writes += 1;
        self.faults.check(StorageCall::SetAlarm)?;
        if let Err(refused) = self.faults.check(StorageCall::ConfirmAlarm) {
            return Ok(Box::pin(ready(Err(refused))));
        }
        self.begin_turn()?;
        self.alarm_ms = alarm_ms;
        self.deletes_alarm = false;
        Ok(Box::pin(ready(Ok(()))))
    }
}

impl ObjectStorage for SimulatedStorage {
    fn read(&self, task: &mut SqlTask<'_>) -> Result<(), StoreError> {
        let mut inner = self.lock();
        inner.faults.check(StorageCall::Read)?;
        task(&inner.database)
    }

    fn transaction(&self, task: &mut SqlTask<'_>) -> Result<(), StoreError> {
        let mut inner = self.lock();
        inner.counts.transactions += 1;
        inner.faults.check(StorageCall::Transaction)?;
        inner.begin_turn()?;
        inner.wakes = None;
        inner.database.control("SAVEPOINT inside")?;
        let done = task(&inner.database);
        if done.is_err() {
            inner.database.control("ROLLBACK TO inside")?;
        }
        inner.database.control("RELEASE inside")?;
        done
    }

    fn get_alarm(&self) -> BoxFuture<'static, Result<Option<u64>, StoreError>> {
        let storage = self.clone();
        let mut given_way = false;
        // The answer is that of a later turn.
        Box::pin(poll_fn(move |context| {
            if !given_way {
                given_way = true;
                context.waker().wake_by_ref();
                return Poll::Pending;
            }
            let mut inner = storage.lock();
            inner.counts.alarm_reads += 1;
            if let Err(refused) = inner.faults.check(StorageCall::GetAlarm) {
                return Poll::Ready(Err(refused));
            }
            let alarm_ms = inner.alarm_ms.filter(|_| !inner.deletes_alarm);
            Poll::Ready(Ok(alarm_ms))
        }))
    }

    fn set_alarm(&self, at_ms: u64) -> Result<AlarmWrite, StoreError> {
        self.lock().write_alarm(Some(at_ms))
    }

    fn delete_alarm(&self) -> Result<AlarmWrite, StoreError> {
        self.lock().write_alarm(None)
    }

    fn sync(&self) -> BoxFuture<'static, Result<(), StoreError>> {
        let storage = self.clone();
        let mut inner = self.lock();
        inner.counts.syncs += 1;
        if let Err(refused) = inner.faults.check(StorageCall::Sync) {
            return Box::pin(ready(Err(refused)));
        }
        let open = u64::from(inner.turns.is_open());
        let wanted = inner.ended + open;
        Box::pin(poll_fn(move |context| {
            if storage.lock().synced >= wanted {
                return Poll::Ready(Ok(()));
            }
            // Whoever simulates polls again behind its next sync.
            context.waker().wake_by_ref();
            Poll::Pending
        }))
    }

    fn effect(&self, number: u64, conn: &dyn SqlConn) -> Result<(), String> {
        // Not with the other state: the transaction that calls this holds it.
        let effects = self.effects.lock().unwrap_or_else(PoisonError::into_inner);
        let effects = effects.clone();
        match effects {
            Some(effects) => effects(number, conn),
            None => Err(format!("this object knows no effect {number}")),
        }
    }

    fn committed(&self, partition: &Partition, batches: &[Batch]) {
        self.lock().turns.note_commits(partition, batches);
    }
}
