use super::rows::{Aside, Record, set_aside_key, ticket_key};
use super::{Ticket, TicketId};
use crate::kinds::owner::{Turn, turn};
use crate::kinds::row::Row;
use crate::mutants::{Mutant, planted};
use crate::store::{Batch, Key, Partition, ReadStore, StoreError, Value};
use crate::timers::DueTimer;

/// A ticket as it was read, whether it decodes or not, and the row that sets it aside.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) id: TicketId,
    ticket_key: Key,
    ticket_bytes: Option<Value>,
    aside_key: Key,
    aside_bytes: Option<Value>,
}

impl Found {
    pub(super) async fn read(
        reads: &dyn ReadStore,
        partition: &Partition,
        id: TicketId,
    ) -> Result<Self, StoreError> {
        let keys = [ticket_key(id), set_aside_key(id)];
        let mut values = reads.get_many(partition, &keys).await?.into_iter();
        let [ticket_key, aside_key] = keys;
        Ok(Self {
            id,
            ticket_key,
            ticket_bytes: values.next().flatten(),
            aside_key,
            aside_bytes: values.next().flatten(),
        })
    }

    pub(super) fn is_gone(&self) -> bool {
        self.ticket_bytes.is_none()
    }

    pub(super) fn bytes(&self) -> Option<&Value> {
        self.ticket_bytes.as_ref()
    }

    /// The ticket; `None` if it is not open, `Corrupt` if it does not decode.
    pub(super) fn ticket(&self) -> Result<Option<Ticket>, StoreError> {
        let record = self.ticket_bytes.as_ref().map(Record::read).transpose()?;
        Ok(record.map(|record| Ticket::new(self.id, record)))
    }

    /// Why the ticket is set aside; one of these rows that does not decode counts as none.
    pub(super) fn aside(&self) -> Option<Aside> {
        Aside::decode(self.aside_bytes.as_ref()?).ok()
    }

    pub(super) fn is_set_aside(&self) -> bool {
        self.aside_bytes.is_some()
    }

    /// Whether this timer is the one the ticket waits for, and whether its time has come.
    ///
    /// The timer's own due is the time to go by: the engine fires it then or later by the store's clock,
    /// while the clock of this process may be ahead, or behind.
    pub(super) fn turn(&self, timer: &DueTimer) -> Turn {
        let ticket = self.ticket().ok().flatten();
        let record = ticket.as_ref().map(Ticket::record);
        // If the row that knows does not decode any timer will do: none must be the last to drain.
        let owner_due_ms = match (&self.aside_bytes, record) {
            (Some(bytes), _) => Aside::decode(bytes).ok().map(|row| row.timer_due_ms),
            (None, record) => record.map(|record| record.timer_due_ms),
        }
        .unwrap_or_else(|| timer.due_at_ms());
        let until_ms = record.map_or(0, |record| record.expires_at_ms);
        turn(timer, timer.due_at_ms(), owner_due_ms, until_ms)
    }

    /// Requires that both rows are as they were read.
    pub(super) fn guard(&self, batch: Batch) -> Batch {
        if planted(Mutant::TicketEndsTwice) {
            return batch;
        }
        batch
            .require_unchanged(self.ticket_key.clone(), self.ticket_bytes.clone())
            .require_unchanged(self.aside_key.clone(), self.aside_bytes.clone())
    }

    /// The ticket with this record, set aside or not as before.
    pub(super) fn put(&self, record: &Record) -> Batch {
        self.guard(Batch::new())
            .put(self.ticket_key.clone(), record.encode())
    }

    /// The ticket with this record, no longer set aside.
    pub(super) fn put_back(&self, record: &Record) -> Batch {
        self.without_aside(self.put(record))
    }

    /// Neither of the rows any more.
    pub(super) fn remove(&self) -> Batch {
        let mut batch = self.guard(Batch::new());
        if self.ticket_bytes.is_some() {
            batch = batch.delete(self.ticket_key.clone());
        }
        self.without_aside(batch)
    }

    /// The ticket as it is, set aside like this.
    pub(super) fn set_aside(&self, aside: &Aside) -> Batch {
        self.guard(Batch::new())
            .put(self.aside_key.clone(), aside.encode())
    }

    fn without_aside(&self, batch: Batch) -> Batch {
        if self.aside_bytes.is_some() {
            batch.delete(self.aside_key.clone())
        } else {
            batch
        }
    }
}
