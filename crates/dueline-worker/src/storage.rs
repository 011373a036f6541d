use std::fmt;
use std::time::Duration;

use dueline::sql::SqlConn;
use dueline::store::{Batch, Partition, StoreError};
use dueline::timers::RunReport;
use dueline::{BoxFuture, MaybeSendSync};

/// Work on the database of an object, done within the call that takes it.
pub type SqlTask<'t> = dyn FnMut(&dyn SqlConn) -> Result<(), StoreError> + 't;

/// The rest of a write of the alarm. The write took its place among the object's writes when it was
/// asked for; this only says whether the platform has taken it.
pub type AlarmWrite = BoxFuture<'static, Result<(), StoreError>>;

/// What the platform gives one Durable Object: a database and one alarm.
///
/// # Turns
/// An object runs on one thread, and code between two waits is not interrupted: a *turn*. All that
/// is written in one turn, the alarm included, becomes durable together or not at all, and turns
/// become durable in their order. Nothing that the object sends out (an answer, a request of its own)
/// leaves before what it wrote until then is durable; that is the platform's output gate. So a commit
/// is final for the object at once, and if the platform cannot make it durable it throws the object
/// away, memory and unsent answers with it.
///
/// # What is synchronous
/// | method | on the platform | takes effect |
/// |---|---|---|
/// | [`read`](Self::read) | `sql.exec` | at the call |
/// | [`transaction`](Self::transaction) | `transactionSync` | at the call |
/// | [`set_alarm`](Self::set_alarm) | `setAlarm` | at the call; its promise is [`AlarmWrite`] |
/// | [`delete_alarm`](Self::delete_alarm) | `deleteAlarm` | at the call; the same |
/// | [`get_alarm`](Self::get_alarm) | `getAlarm` | when its promise is awaited, in a later turn |
/// | [`sync`](Self::sync) | `sync` | when its promise is awaited, in a later turn |
pub trait ObjectStorage: MaybeSendSync + fmt::Debug {
    /// Lends the database for reading.
    ///
    /// # Errors
    /// What the task returns, and `Unavailable` if the database cannot be asked.
    fn read(&self, task: &mut SqlTask<'_>) -> Result<(), StoreError>;

    /// Runs the task in a transaction, which an error of the task rolls back. The task runs at most
    /// once. Never called within another task.
    ///
    /// # Errors
    /// As [`read`](Self::read); `Full`. After an error nothing is written.
    fn transaction(&self, task: &mut SqlTask<'_>) -> Result<(), StoreError>;

    /// The alarm, in milliseconds since 1970. While the alarm's handler runs, `None` unless it has been
    /// set since the handler began.
    ///
    /// The answer is that of a later turn: whatever is decided by it is decided again from the rows.
    fn get_alarm(&self) -> BoxFuture<'static, Result<Option<u64>, StoreError>>;

    /// Sets the alarm, in place of the one there is.
    ///
    /// The alarm whose handler runs goes when the handler ends well, unless another was set since it
    /// began. One set for the very time that is being served may be taken for that one.
    ///
    /// # Errors
    /// If it was refused at once: nothing is written. A refusal that comes later is the error of the
    /// [`AlarmWrite`].
    fn set_alarm(&self, at_ms: u64) -> Result<AlarmWrite, StoreError>;

    /// Takes the alarm away.
    ///
    /// # Errors
    /// As [`set_alarm`](Self::set_alarm).
    fn delete_alarm(&self) -> Result<AlarmWrite, StoreError>;

    /// Ready once everything written so far is durable. Awaited only behind a crash, where a claim must
    /// outlive whatever its handler does next.
    fn sync(&self) -> BoxFuture<'static, Result<(), StoreError>>;

    /// Does what an [`effect_mark`](crate::effect_mark) of this number stands for: called inside the
    /// transaction, whose connection it is given, when the guards of the batch that carries the mark have
    /// held. Whatever it writes to the object's database commits with that batch. It may be called again if a transaction is rolled back
    /// for another batch's sake. It must not come back to the store.
    ///
    /// # Errors
    /// Why it could not be done. The batch is refused with this text, what was written for it is rolled
    /// back, and its timer has failed. An object without effects, the default, refuses every mark.
    fn effect(&self, number: u64, conn: &dyn SqlConn) -> Result<(), String> {
        let _ = conn;
        Err(format!("this object knows no effect {number}"))
    }

    /// Told of the batches that a transaction has committed, in the turn that wrote them. For a host
    /// that watches its object; most need not.
    fn committed(&self, partition: &Partition, batches: &[Batch]) {
        let _ = (partition, batches);
    }

    /// Told of each turn of a partition when it has ended: in which tick of its alarm, counted from 1, when
    /// it began by the monotonic clock, and what it did. For a host that watches its object, too.
    fn ticked(&self, tick: u32, partition: &Partition, began: Duration, report: &RunReport) {
        let _ = (tick, partition, began, report);
    }
}
